"""Processes find their number in the variables of the launcher that started them."""

import pytest

from heatsim.commands.ranks import ranks_to_start
from heatsim.errors import InputError
from heatsim.parallel import environment
from heatsim.parallel.process import Process, cores_of
from heatsim.scenario import Scenario


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for names in environment._LAUNCHERS:
        for name in names:
            monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variables", "size", "rank"),
    [
        ({}, 1, 0),
        # mpiexec of MPICH or Intel MPI; of Open MPI
        ({"PMI_SIZE": "4", "PMI_RANK": "0"}, 4, 0),
        ({"PMI_SIZE": "4", "PMI_RANK": "3"}, 4, 3),
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}, 2, 1),
        # srun: with PMIx, which sets nothing that names the size; with PMI-2, which does
        ({"SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "5", "SLURM_NTASKS": "8", "PMIX_RANK": "5"}, 8, 5),
        ({"SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "0", "PMI_SIZE": "8", "PMI_RANK": "0"}, 8, 0),
        # the batch script of a job with 8 tasks, and a step of one task
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, 1, 0),
        ({"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, 1, 0),
        # mpiexec in a step of srun with one task a machine
        ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0", "PMI_SIZE": "6", "PMI_RANK": "2"}, 6, 2),
        (
            {"PMI_SIZE": "1", "PMI_RANK": "0", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "2"},
            *(3, 2),
        ),
        # half of a pair says nothing
        ({"PMI_RANK": "3"}, 1, 0),
        ({"PMI_SIZE": "x", "PMI_RANK": "0"}, 1, 0),
    ],
)
def test_launchers(variables: dict[str, str], size: int, rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert environment.size() == size
    assert environment.is_first() == (rank == 0)


def test_ranks_of_srun_do_not_start_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "3")
    monkeypatch.setenv("SLURM_PROCID", "1")
    scenario: Scenario = None  # type: ignore[assignment]
    assert ranks_to_start("3", scenario) == ranks_to_start("all", scenario) == 1
    with pytest.raises(InputError, match="--ranks = 2, but the launcher started 3 processes; leave --ranks out"):
        ranks_to_start("2", scenario)


@pytest.mark.parametrize(
    ("cores", "expected"),
    [
        ([range(8)] * 2, [4, 4]),  # a launcher that does not bind ranks to cores
        ([range(3)] * 2, [1, 1]),
        ([range(2)] * 3, [0, 0, 0]),  # fewer cores than ranks
        ([range(4), range(4, 6)], [4, 2]),
        ([range(4), range(3, 6), range(6, 7)], [2, 1, 1]),
    ],
)
def test_ranks_of_a_machine_share_cores(cores: list[range], expected: list[int]) -> None:
    here = [Process("a", "", number, frozenset(of)) for number, of in enumerate(cores)]
    elsewhere = [Process("b", "", number, frozenset(range(2))) for number in range(1)]
    processes = [*here, *elsewhere]
    assert [cores_of(rank, processes) for rank in range(len(processes))] == [*expected, 2]
