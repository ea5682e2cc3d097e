"""Read the environment variables that a launcher such as mpiexec or srun sets for its processes."""

import os

# Set by MPICH, Intel MPI and others; by Open MPI; by srun. SLURM does not set these in the batch script itself.
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


def size() -> int:
    """The number of processes in this job; 1 if this process was started without a launcher."""
    return next((int(os.environ[name]) for name in _SIZES if os.environ.get(name, "").isdecimal()), 1)


def is_first() -> bool:
    """Whether this process is the first or the only one of its job. Works without MPI."""
    return size() == 1 or next((os.environ[name] for name in _RANKS if name in os.environ), "0") == "0"
