"""Groups: runs that can form an ensemble, as many as fit the memory, and at least one group for every worker."""

from pathlib import Path

import pytest
import study_text
from cuda_host import gpu

from heatsim import device
from heatsim.study.definition import read
from heatsim.study.groups import RunsLeft, fits_ensemble, make_groups, run_bytes
from heatsim.study.worker_processes import default_workers

PARAMETERS = """
[study]
method = "grid"
[study.parameters]
"material.conductivity" = [10.0, 20.0, 30.0, 40.0]
"""


def test_runs_of_other_kinds_are_apart(tmp_path: Path) -> None:
    study = PARAMETERS + '"domain.cells.0" = [8, 9]\n"boundaries.x_max.type" = ["temperature"]\n'
    _, problems = read(study_text.write(tmp_path, study))
    assert make_groups(problems, problems, "cuda", 1 << 30, 1) == [[1, 3, 5, 7], [2, 4, 6, 8]]
    # Both faces of z must be periodic, or neither.
    keys, values = '["boundaries.z_min.type", "boundaries.z_max.type"]', '["insulated", "periodic"]'
    faces = f"[[study.linked]]\nkeys = {keys}\nvalues = {values}\n"
    _, problems = read(study_text.write(tmp_path, PARAMETERS + faces))
    assert make_groups(problems, problems, "cuda", 1 << 30, 1) == [[1, 3, 5, 7], [2, 4, 6, 8]]


def test_runs_with_different_face_conditions_share_a_group(tmp_path: Path) -> None:
    mixed = PARAMETERS + '"boundaries.y_min" = [{ type = "insulated" }, { type = "flux", value = 1.0 }]\n'
    _, problems = read(study_text.write(tmp_path, mixed))
    assert make_groups(problems, problems, "cuda", 1 << 30, 1) == [[1, 2, 3, 4, 5, 6, 7, 8]]


def test_a_gpu_gets_as_many_as_fit_and_each_worker_some(tmp_path: Path) -> None:
    _, problems = read(study_text.write(tmp_path, PARAMETERS))
    assert make_groups(problems, problems, "cuda", 1 << 30, 1) == [[1, 2, 3, 4]]
    assert make_groups(problems, problems, "cuda", 1 << 30, 2) == [[1, 2], [3, 4]]
    room_for_three = 5 * run_bytes(problems[1])
    assert make_groups(problems, problems, "cuda", room_for_three, 1) == [[1, 2], [3, 4]]
    assert make_groups(problems, problems, "cuda", 1, 1) == [[1], [2], [3], [4]]


def test_cores_are_kept_busy_to_the_end(tmp_path: Path) -> None:
    study = PARAMETERS + f'"material.density" = {[1000.0 + n for n in range(10)]}\n'
    _, problems = read(study_text.write(tmp_path, study))
    groups = make_groups(problems, range(3, 41), "cpu", 1 << 30, 2)
    assert sorted(number for group in groups for number in group) == list(range(3, 41))
    # Each group is a quarter of the remaining runs: the last ones end at about the same time.
    assert sorted(map(len, groups), reverse=True) == [10, 7, 6, 4, 3, 2, 2, 1, 1, 1, 1]


def test_runs_that_step_by_sweeps_form_ensembles_of_one_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An implicit step solves equations, and a steady state has no steps."""
    monkeypatch.setattr(device, "choose", lambda wanted: gpu.host_device())
    methods = PARAMETERS + '"time.method" = ["euler", "stabilized", "implicit", "steady"]\n"solver.kernel" = ["auto"]\n'
    _, problems = read(study_text.write(tmp_path, methods))
    fitting = {problem.scenario.time.method: fits_ensemble(problem, "cuda") for problem in problems.values()}
    assert fitting == {"euler": True, "stabilized": True, "implicit": False, "steady": False}
    groups = make_groups(problems, problems, "cuda", 1 << 30, 1)
    methods_of_groups = [{problems[number].scenario.time.method for number in group} for group in groups]
    assert methods_of_groups[:2] == [{"euler"}, {"stabilized"}]
    # Runs that cannot advance together are groups of one.
    assert methods_of_groups[2:].count({"implicit"}) == methods_of_groups[2:].count({"steady"}) == 4


def test_each_run_chooses_its_method(tmp_path: Path) -> None:
    """The grid of a run decides here: more cells along an axis make Euler's steps shorter."""
    study = PARAMETERS.replace('"material.conductivity" = [10.0, 20.0, 30.0, 40.0]', '"domain.cells.2" = [1, 100]')
    _, problems = read(study_text.write(tmp_path, study), ["time.end=1000.0", "time.method=auto", "time.tolerance=30"])
    methods = {problem.grid.cells[2]: problem.scenario.time.method for problem in problems.values()}
    assert methods[1] == "euler"
    assert methods[100] != "euler"
    assert len(make_groups(problems, problems, "cuda", 1 << 30, 1)) == 2


@pytest.mark.parametrize(
    ("runs", "cores", "gpus", "fitting", "workers"),
    [
        (200, 8, 0, 100, 8),  # one a core
        (200, 8, 0, 3, 3),  # whose fields fit the memory
        (200, 16, 1, 100, 8),
        (24, 16, 1, 100, 2),  # a dozen runs each
        (1, 16, 1, 100, 1),
        (200, 4, 1, 100, 2),  # two cores each
        (200, 2, 4, 100, 4),  # each GPU has one
        (200, 16, 1, 1, 1),  # one run fills the GPU
        (200, 64, 2, 100, 16),
    ],
)
def test_default_number_of_workers(runs: int, cores: int, gpus: int, fitting: int, workers: int) -> None:
    assert default_workers(runs, cores, gpus, fitting) == workers


COMPOSITE = """
[[sources]]
name = "heater"
power = 1.0
box = { min = [0.0, 0.0, 0.0], max = [0.02, 0.02, 0.01] }
"""


def test_bodies_with_sources_are_dealt_to_gpus_like_others(tmp_path: Path) -> None:
    _, problems = read(study_text.write(tmp_path, PARAMETERS + COMPOSITE))
    assert make_groups(problems, problems, "cuda", 1 << 30, 2) == [[1, 2], [3, 4]]
    assert RunsLeft(problems, "cuda", 1 << 30).cut(1) == [1, 2, 3, 4]


def test_bodies_that_need_other_kernels_or_methods_are_not_together(tmp_path: Path) -> None:
    """A contact needs another kernel variant, and composite bodies do not form ensembles with stabilized steps."""
    _, problems = read(study_text.write(tmp_path, PARAMETERS + COMPOSITE))
    _, stabilized = read(study_text.write(tmp_path, PARAMETERS + COMPOSITE), ["time.method=stabilized"])
    _, plain = read(study_text.write(tmp_path, PARAMETERS))
    assert make_groups(stabilized, stabilized, "cuda", 1 << 30, 2) == [[1], [2], [3], [4]]
    mixed = {1: problems[1], 2: plain[2], 3: problems[3], 4: plain[4]}
    assert make_groups(mixed, mixed, "cuda", 1 << 30, 1) == [[1, 3], [2, 4]]


def test_groups_are_shares_of_the_runs_that_are_left(tmp_path: Path) -> None:
    study = PARAMETERS + f'"material.density" = {[1000.0 + n for n in range(10)]}\n'
    _, problems = read(study_text.write(tmp_path, study))
    left = RunsLeft(problems, "cpu", 1 << 30)
    assert left.cut(2) == list(range(1, 11))
    # Two more workers have joined: a group is an eighth of 30 runs.
    assert left.cut(4) == [11, 12, 13, 14]
    left.put_back([2, 4])
    assert left.cut(4) == [2, 4, 15, 16]
    assert len(left) == 24
    together = RunsLeft(problems, "cuda", 1 << 30)
    sizes = [len(together.cut(4)) for _ in range(5)]
    assert sizes == [8, 8, 8, 8, 8]
    assert len(together) == 0
    few = RunsLeft(problems, "cuda", 5 * run_bytes(problems[1]))
    assert len(few.cut(4)) == 3
