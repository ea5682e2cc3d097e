"""What a launcher such as mpiexec or srun says to its processes in their environment."""

import os

# What launchers set: MPICH, Intel MPI and others; Open MPI; srun. In a batch script SLURM sets other names only.
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


def size() -> int:
    """The number of processes in the job of this one; 1 if it was started alone."""
    return next((int(os.environ[name]) for name in _SIZES if os.environ.get(name, "").isdecimal()), 1)


def is_first() -> bool:
    """Whether this process is the first of its job, or alone. Needs no MPI."""
    return size() == 1 or next((os.environ[name] for name in _RANKS if name in os.environ), "0") == "0"
