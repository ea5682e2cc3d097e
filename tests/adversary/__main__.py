"""python tests/adversary [--cases N] [--first SEED] [--workers N] [--show N] [--only TEXT]: try random cases.

Prints a line for each case that is wrong or that takes long, and a summary at the end.
"""

import argparse
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the workers too: their threads would take each other's cores
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import tomli_w
from adversary.random_cases import random_case
from adversary.trials import Trial, trials

SLOW = 10.0  # s; a case that takes longer gets a line


def main() -> None:
    parser = argparse.ArgumentParser(prog="python tests/adversary")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first case")
    parser.add_argument("--workers", type=int, default=1, help="processes that try cases")
    parser.add_argument("--show", type=int, default=0, help="how many of the worst cases to print as TOML")
    parser.add_argument("--only", default="", help="a part of the name of a kind")
    chosen = parser.parse_args()
    seeds = list(range(chosen.first, chosen.first + chosen.cases))
    if chosen.only:
        seeds = [seed for seed in seeds if chosen.only in " ".join(random_case(seed).kinds)]

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    started, found = time.perf_counter(), list[Trial]()
    for one in trials(seeds, chosen.workers):
        found.append(one)
        verdict, seconds = one
        if verdict.faults:
            print(f"WRONG {verdict} [{seconds:.1f} s]", flush=True)
        elif seconds > SLOW:
            print(f"SLOW  {verdict} [{seconds:.1f} s]", flush=True)
    _summarise(found, chosen, time.perf_counter() - started)


def _summarise(found: list[Trial], chosen: argparse.Namespace, passed: float) -> None:
    kinds, failed = Counter[str](), Counter[str]()
    for verdict, _ in found:
        for kind in {*verdict.case.kinds, verdict.method}:
            kinds[kind] += 1
            failed[kind] += bool(verdict.faults)
    print("\nwrong of all, by kind:")
    for kind, count in sorted(kinds.items()):
        print(f"  {failed[kind]:5} of {count:5}  {kind or 'no method'}")
    wrong = sorted((verdict for verdict, _ in found if verdict.faults), key=lambda verdict: -verdict.error)
    for verdict in wrong[: chosen.show]:
        print(f"\n# {verdict}\n{tomli_w.dumps(verdict.case.document)}")
    seconds = np.array([seconds for _, seconds in found])
    errors = np.array([v.error for v, _ in found if not v.faults and "euler" not in v.method and v.method != "refused"])
    refused = sum(verdict.method == "refused" for verdict, _ in found)
    print(
        f"\n{len(found)} cases, seeds {chosen.first} to {chosen.first + chosen.cases - 1}: {len(wrong)} wrong "
        f"({', '.join(str(verdict.case.seed) for verdict in wrong) or 'none'}), {refused} refused rightly"
    )
    if len(errors):
        print(
            f"error / tolerance of those with a tolerance that are right: median {np.median(errors):.2f}, "
            f"99 % {np.quantile(errors, 0.99):.2f}, largest {errors.max():.2f}"
        )
    print(
        f"{passed:.0f} s with {chosen.workers} processes; {seconds.sum():.0f} s of processor time, median "
        f"{np.median(seconds):.2f} s a case, {(seconds > SLOW).sum()} above {SLOW:.0f} s, longest {seconds.max():.0f} s"
    )


if __name__ == "__main__":
    main()
