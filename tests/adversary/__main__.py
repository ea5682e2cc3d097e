"""python tests/adversary [--cases N] [--first SEED] [--show N] [--only TEXT]: try random cases, print the worst."""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numba
import tomli_w

sys.path.insert(0, str(Path(__file__).parents[1]))
from adversary.judge import judge
from adversary.random_cases import random_case

parser = argparse.ArgumentParser()
parser.add_argument("--cases", type=int, default=100)
parser.add_argument("--first", type=int, default=0, help="the seed of the first case")
parser.add_argument("--show", type=int, default=1, help="how many of the worst cases to print as TOML")
parser.add_argument("--only", default="", help="a part of the name of a kind")
chosen = parser.parse_args()
numba.set_num_threads(1)

verdicts, kinds, failed, started = [], Counter[str](), Counter[str](), time.perf_counter()
for seed in range(chosen.first, chosen.first + chosen.cases):
    case = random_case(seed)
    if chosen.only and chosen.only not in " ".join(case.kinds):
        continue
    verdict = judge(case)
    verdicts.append(verdict)
    for kind in {*case.kinds, verdict.method}:
        kinds[kind] += 1
        failed[kind] += bool(verdict.faults)
    if verdict.faults:
        print(seed, verdict.method, ", ".join(case.kinds), *(f"\n    {fault}" for fault in verdict.faults), flush=True)
print(f"\n{time.perf_counter() - started:.0f} s; failed of all, by kind:")
for kind, count in sorted(kinds.items()):
    print(f"  {failed[kind]:5} of {count:5}  {kind}")
wrong = sorted((verdict for verdict in verdicts if verdict.faults), key=lambda verdict: -verdict.error)
print(f"{len(wrong)} of {len(verdicts)} cases failed")
for verdict in wrong[: chosen.show]:
    print(f"\n# seed {verdict.case.seed}: {'; '.join(verdict.faults)}\n{tomli_w.dumps(verdict.case.document)}")
