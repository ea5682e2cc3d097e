"""What all tests share: a GPU or the reason why there is none, and scenarios run in a folder of their own."""

import gc
import os
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from pathlib import Path

import pytest
from covering import SLOW, covering
from cuda_host.gpu import function_on_host, host_device
from hypothesis import settings

from heatsim import device
from heatsim.device import Device
from heatsim.errors import DeviceError
from heatsim.kernels import compiled
from heatsim.kernels.emulation import machine
from heatsim.observers.table import TableObserver
from heatsim.run import work_time
from heatsim.run.simulation import Simulation

Simulate = Callable[..., Simulation]

# They come first: no process is left alone with a long file at the end, and few processes compile the same code. The
# first one compiles most of the kernels for CPUs while others do what needs none of them.
LONGEST = (
    *("adversary/test_adversary.py", "kernels/test_nvrtc.py", "kernels/test_kernels.py", "ranks/test_jobs.py"),
    *("study/test_study_cluster.py", "kernels/test_composite_kernels.py", "test_render.py", "test_stabilized_runs.py"),
    "test_verification.py",
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: needs a GPU; skipped without one, failed if HEATSIM_REQUIRE_GPU=1")
    config.addinivalue_line("markers", "slow: left out unless HEATSIM_SLOW=1, or on a GPU")
    config.addinivalue_line(
        "markers", "quick(*ids): of its cases only these are not slow; the ids as pytest writes them"
    )
    config.addinivalue_line("markers", "each_value: every value of a parameter is in a case that is not slow")
    config.addinivalue_line("markers", "each_pair: any two values of parameters are in a case that is not slow")
    settings.register_profile("heatsim", deadline=None)  # no test fails because a machine is busy
    settings.load_profile("heatsim")
    machine.build_folder()  # the worker processes of pytest-xdist, which are started later, use the same
    # The processes that tests start share the bytecode of the package, like its compiled kernels, as a user's do.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Workers of pytest-xdist and processes that tests start share the cores, which waiting threads would take.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(50_000, 20, 20)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") is not None:
        require_gpu()
    elif _left_out(item):
        pytest.skip("slow; set HEATSIM_SLOW=1 to run it")


def _left_out(item: pytest.Item) -> bool:
    """Whether a test is slow and shall not run."""
    return not SLOW and item.get_closest_marker("slow") is not None and item.get_closest_marker("gpu") is None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    whole = not any("::" in argument for argument in config.args)  # otherwise some cases are missing
    cases: dict[tuple[Path, str], list[pytest.Function]] = {}
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and not any(item.iter_markers("gpu"))
            and not any(item.iter_markers("slow"))
        ):
            cases.setdefault((item.path, item.originalname), []).append(item)
    if whole:
        for family in cases.values():
            _mark_slow(family)
        # Those that are asked for by name are skipped, with the reason; two thousand skips would take some seconds.
        if left_out := [item for item in items if _left_out(item)]:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if not _left_out(item)]
    here = Path(__file__).parent
    places = {here / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(LONGEST)))


def _mark_slow(cases: list[pytest.Function]) -> None:
    """Mark the cases of a test that run with HEATSIM_SLOW=1 only."""
    strength = 1 if any(cases[0].iter_markers("each_value")) else 2 if any(cases[0].iter_markers("each_pair")) else 0
    chosen = {case.callspec.id for case in cases} if hasattr(cases[0], "callspec") else set()
    if strength:
        rows = {tuple(map(_hashable, case.callspec.params.values())): case.callspec.id for case in cases}
        chosen = {rows[row] for row in covering(rows, strength)}
    for mark in cases[0].iter_markers("quick"):
        missing = set(mark.args) - chosen
        if missing:
            raise pytest.UsageError(f"{cases[0].nodeid}: the mark quick names no cases of it: {sorted(missing)}")
        chosen = set(mark.args)
    for case in cases:
        if chosen and case.callspec.id not in chosen:
            case.add_marker(pytest.mark.slow)


def _hashable(value: object) -> Hashable:
    return value if isinstance(value, Hashable) else repr(value)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """After each file, what it keeps counts as no garbage: searches of later tests would take a second each."""
    yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def require_gpu() -> None:
    """Skip the test that runs, with the reason, where no GPU can be used; fail it if HEATSIM_REQUIRE_GPU=1."""
    reason = _why_no_gpu()
    if reason and os.environ.get("HEATSIM_REQUIRE_GPU") == "1":
        pytest.fail(f"HEATSIM_REQUIRE_GPU=1, but {reason}", pytrace=False)
    if reason:
        pytest.skip(reason)


@cache
def _why_no_gpu() -> str:
    """Empty if a GPU can be used."""
    try:
        device.choose("cuda")
    except DeviceError as error:
        return str(error)
    return ""


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is tried out on this machine otherwise decides nothing here, nor the other way round."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEATSIM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        # Plans of small runs know the time of a step after a few of them.
        patch.setattr(work_time, "SECONDS", 0.02)
        patch.setattr(work_time, "LONGEST", 0.06)
        # No test cuts the power: a dozen waits for the disk take longer than a small run.
        patch.setattr(os, "fsync", os.fstat)
        find = machine.find_compiler
        patch.setattr(machine, "find_compiler", lambda: _compiler_or_skip(find))
        yield


def _compiler_or_skip(find: Callable[[], str]) -> str:
    """Skip the test that runs where there is no g++; fail it if CI=true or HEATSIM_REQUIRE_GXX=1."""
    try:
        return find()
    except DeviceError as error:
        if os.environ.get("CI") == "true" or os.environ.get("HEATSIM_REQUIRE_GXX") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(params=["cpu", "host", pytest.param("cuda", marks=pytest.mark.gpu)])
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Device:
    """The CPU, the host in the part of a GPU, and a GPU, for functions of .cu files that stand alone."""
    return _device(request.param, monkeypatch)


@pytest.fixture(params=["host", pytest.param("cuda", marks=pytest.mark.gpu)])
def where_cuda(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Device:
    """As ``where``, without the CPU."""
    return _device(request.param, monkeypatch)


def _device(name: str, monkeypatch: pytest.MonkeyPatch) -> Device:
    if name != "host":
        return device.choose(name)
    monkeypatch.setattr(compiled, "function", function_on_host)
    return host_device()


@pytest.fixture
def frozen_again() -> Iterator[None]:
    """After a rehearsal of ranks, what earlier tests keep counts as no garbage again."""
    yield
    gc.freeze()


@pytest.fixture
def one_thread() -> Iterator[None]:
    """numba on one core: steps of a few thousand cells are done before a second core has woken up."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.fixture
def one_core() -> Iterator[None]:
    """What starts meanwhile has one core: then one process draws beside a run, not one for each core."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture
def each_row_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are made at their due time, so that a watcher can compare what follows from them."""
    monkeypatch.setattr(TableObserver, "_rows_at_once", 1)


@pytest.fixture
def simulate(tmp_path: Path) -> Simulate:
    """Runs a scenario's text to its end: simulate(text, "key.path=value", …), in a folder of its own each time."""
    runs = 0

    def run(text: str, *overrides: str) -> Simulation:
        nonlocal runs
        runs += 1
        path = tmp_path / f"case_{runs}.toml"
        path.write_text(text, encoding="utf-8")
        simulation = Simulation.from_scenario(path, overrides, output=tmp_path / f"run_{runs}")
        simulation.run()
        return simulation

    return run
