"""Cases by their seeds, each with its verdict and its time, in several processes."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import active_children, get_context
from typing import NamedTuple

import numba
import numpy as np
from adversary.judge import Verdict, judge
from adversary.random_cases import random_case


class Trial(NamedTuple):
    """How a case went, and how long it took in s of its processor."""

    verdict: Verdict
    seconds: float


def trial(seed: int) -> Trial:
    """Try one case. A traceback is a fault like others."""
    numba.set_num_threads(1)
    case, started = random_case(seed), time.process_time()
    try:
        verdict = judge(case)
    except Exception as error:
        verdict = Verdict(case, (f"crashed: {type(error).__name__}: {error}",), np.inf)
    return Trial(verdict, time.process_time() - started)


def trials(seeds: Sequence[int], workers: int) -> Iterator[Trial]:
    """All cases, in the order in which they end."""
    if workers == 1:
        yield from map(trial, seeds)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        try:
            for done in as_completed([pool.submit(trial, seed) for seed in seeds]):
                yield done.result()
        except BaseException:  # a signal: what waits is dropped, what runs ends
            pool.shutdown(wait=False, cancel_futures=True)
            for process in active_children():
                process.kill()
            raise
