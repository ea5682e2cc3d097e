"""Read the environment variables that a launcher such as mpiexec or srun sets for its processes."""

import os

# The number of processes and the number of this one: of Open MPI; of MPICH, Intel MPI and others; of srun. The
# innermost launcher comes first: mpiexec may run within srun, and srun may set PMI_SIZE too. SLURM sets SLURM_PROCID
# also in the batch script itself, but not the size of a step.
_LAUNCHERS = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
)


def size() -> int:
    """The number of processes in this job; 1 if this process was started without a launcher."""
    return _place()[0]


def rank() -> int:
    """The number of this process in its job, from 0."""
    return _place()[1]


def is_first() -> bool:
    """Whether this process is the first or the only one of its job. Works without MPI."""
    return rank() == 0


def _place() -> tuple[int, int]:
    """The number of processes, and the number of this one."""
    for names in _LAUNCHERS:
        count, rank = (os.environ.get(name, "") for name in names)
        if count.isdecimal() and rank.isdecimal():
            return int(count), int(rank)
    return 1, 0
