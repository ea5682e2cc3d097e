"""The expected efficiency of several ranks: the fraction of a rank's time that it spends on its own planes.

Steps. A sweep of s steps is followed by an exchange of halo planes. A rank with n own planes, and h halo planes at each
of m cuts, takes

    t = T · (n + w·h·m) + latency + m · bytes / bandwidth

for a sweep, where T is the measured time per plane. The slowest rank decides: efficiency = T · planes / ranks / t. If
planes cost different times, T · n becomes the sum of these times. Kernels that do one step a sweep calculate the halo
planes too (w = 1); kernels that do as many steps as there are halo planes do not (w = 0).

If copies overlap with the sweep, a rank first sweeps its HALO planes at each cut. This divides the sweep, and each cut
takes as long as d more planes. The rank waits only if the copies take longer than the rest of the sweep:

    t = T · (n + d·m),  at least  T · (HALO + d)·m + latency + m · bytes / bandwidth

Equations. A cycle of conjugate gradients with multigrid takes one application of the operator and 2·2 smoothing steps
of each level. Every divided level needs two exchanges, the finest three, and a cycle combines two sums. Every rank
solves all of the levels that are not divided.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from heatsim.kernels.multigrid.cycle import STEPS
from heatsim.kernels.multigrid.rank_sweeps import FEW
from heatsim.parallel.slab import HALO, Slab
from heatsim.run.ranks import Array

# d of the model, in planes. Measured on two H200 with 512³ to 1024³ cells per GPU: 20 to 24 in float32, 16 in float64
# (23 November 2026, kernels/MEASUREMENTS.md).
_DIVIDED = 22
_ITEM = 4  # bytes of a number in the vectors of a cycle


@dataclass(frozen=True)
class Link:
    """A connection between two ranks.

    Attributes:
        name: its name in the plan.
        latency: time in s of an exchange of small messages.
        bandwidth: bytes per second in each direction.
        copies: whether GPUs copy into each other's memory, so that copies can overlap with kernels.
    """

    name: str
    latency: float
    bandwidth: float
    copies: bool = False

    def seconds(self, cuts: int, sent: float) -> float:
        """Time in s of an exchange of ``sent`` bytes over each of some cuts."""
        return self.latency + cuts * sent / self.bandwidth


def efficiency_of_steps(
    of_ranks: Sequence[Slab],
    costs: Array,
    sweep: float,
    sent: int,
    link: Link,
    *,
    writes_halo: bool,
    overlaps: bool = False,
) -> float:
    """The parallel efficiency of a sweep: the speed-up over one rank, divided by the number of ranks.

    Args:
        of_ranks: the slabs of all ranks.
        costs: the cost of each plane, in any unit.
        sweep: seconds of a sweep over the whole grid on one processor.
        sent: bytes sent over a cut in an exchange.
        link: the connection between neighbours.
        writes_halo: whether a sweep calculates the halo planes too.
        overlaps: whether copies overlap with the sweep.
    """
    seconds, slowest = sweep * costs / costs.sum(), 0.0
    for slab in of_ranks:
        cuts = sum(slab.cut)
        own = seconds[slab.place if writes_halo else slab.place[slab.own]]
        taken, waited = float(own.sum()), link.seconds(cuts, sent) if cuts else 0.0
        if overlaps:
            plane = float(own.mean())
            taken = max(taken + _DIVIDED * cuts * plane, (HALO + _DIVIDED) * cuts * plane + waited)
        else:
            taken += waited
        slowest = max(slowest, taken)
    return sweep / len(of_ranks) / slowest


def efficiency_of_cycles(
    slab: Slab, shapes: Sequence[tuple[int, int, int]], application: float, link: Link, queued: float
) -> float:
    """The efficiency of solving equations.

    Args:
        slab: the planes of the rank.
        shapes: shapes (nz, ny, nx) of all levels, the finest first.
        application: seconds of one application of the operator to the whole grid on one processor.
        link: the connection to its neighbours.
        queued: seconds in which Python queues the work of one level of a cycle; 0 if it waits for all work anyway.
    """
    cuts = sum(slab.cut)
    if not cuts:
        return 1.0
    share, alone, taken, host = slab.count / slab.planes, 0.0, 0.0, 0.0
    for depth, shape in enumerate(shapes[:-1]):
        nz, ny, nx = shape
        work = application * prod(shape) / prod(shapes[0]) * (2 * STEPS + (depth == 0))
        alone, host = alone + work, host + queued
        if prod(shape) > FEW and nz * share >= HALO:
            taken += work * (share + cuts * HALO / nz)
            taken += (3 if depth == 0 else 2) * link.seconds(cuts, HALO * nx * ny * _ITEM)
        else:
            taken += work
    taken += 2 * link.latency
    return alone * share / max(taken, host)
