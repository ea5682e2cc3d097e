"""The energy balance of a run, read from its folder: terms that add up, and what of them is rounding noise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim.amounts import ENERGIES, POWERS, Unit, format_amount
from heatsim.counts import counted, plain
from heatsim.errors import StorageError
from heatsim.grid import FACES
from heatsim.storage import folder as run_folder
from heatsim.storage.run_tables import JOULE, PERCENT, WATT, RunTable, read_energy
from heatsim.storage.summary_file import read_summary
from heatsim.storage.tables import GROSS, PARTS

_Floats = NDArray[np.float64]

# A part smaller than this fraction of the heat that flowed, and smaller than the bound of the residual, is rounding.
_NEGLIGIBLE = 1e-6
# As fractions of the heat that flowed: a bound larger than _LARGE_BOUND is too large to judge the residual. A residual
# larger than _DOUBTFUL may then be an error.
_LARGE_BOUND, _DOUBTFUL = 0.01, 1e-4
# Heat enters and leaves through one surface if each is at least this part of the heat that flowed.
_BOTH_WAYS, _MOST_TOLD = 1e-3, 3
SURFACES_TO_VOID = "surfaces to void"

# What enters and what leaves, by name.
Gross = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class EnergyBalance:
    """Heats in J since the start, positive into the body: stored = the sum of all parts + residual.

    Attributes:
        times: in s, shape (rows,).
        stored: heat that the body has gained.
        parts: heat from the sources, through each face outside of its patches, through each patch and through the
            surfaces towards void, by name. Each heat is in one part only.
        residual: stored − Σ parts: rounding, and what a solver of equations left.
        bound: how large the residual may be at the end; None if the run has not finished.
        stages: of all steps; None if unknown.
        precision: of the field; empty if unknown.
        known: what has entered and what has left by part; of parts that are missing, it follows from their rows.
    """

    times: _Floats
    stored: _Floats
    parts: Mapping[str, _Floats]
    residual: _Floats
    bound: float | None
    stages: int | None = None
    precision: str = ""
    known: Gross = field(default_factory=dict)

    @cached_property
    def gross(self) -> Gross:
        """The heat in J that has entered and that has left since the start, of each part."""
        changes = {name: np.diff(heat, prepend=0.0) for name, heat in self.parts.items()}
        net = {
            name: (float(np.maximum(of, 0.0).sum()), float(np.maximum(-of, 0.0).sum())) for name, of in changes.items()
        }
        return {**net, **self.known}

    @property
    def noise(self) -> float:
        """Heat in J up to which a term may be rounding only.

        The bound grows with the number of stages n, as if all rounding errors had one sign. After many stages it is
        larger than the heats themselves. Errors of random sign grow with √n, and the residual shows those of the run.
        """
        seen = 4.0 * float(np.abs(self.residual).max())
        if self.bound is None:
            return seen
        return min(self.bound, max(seen, self.bound / sqrt(self.stages))) if self.stages else self.bound

    @property
    def turnover(self) -> float:
        """What has flowed in J: all that has entered the body, or all that has left it if this is more."""
        return max(map(fsum, zip(*self.gross.values(), strict=True)))

    @property
    def both(self) -> Gross:
        """The parts through which heat enters and leaves."""
        return both_ways(self.gross, self.turnover)

    @property
    def only_noise(self) -> bool:
        """Whether no term is larger than rounding, nor what enters and leaves.

        Rounding errors of random sign cancel from row to row, but not their magnitudes.
        """
        most = self.noise * sqrt(len(self.times))
        if self.turnover > (most if self.bound is None else min(most, max(self.bound, self.noise))):
            return False
        return max(float(np.abs(term).max()) for term in (self.stored, *self.parts.values())) <= self.noise

    @property
    def closed(self) -> bool | None:
        """Whether the residual is within its bound at the end; None if the bound is unknown."""
        return None if self.bound is None else bool(abs(self.residual[-1]) <= self.bound)

    @property
    def part(self) -> float | None:
        """The residual at the end as a fraction of the heat that flowed, if its bound is too large to judge it."""
        large = not self.only_noise and (self.bound or 0.0) > _LARGE_BOUND * self.turnover
        return abs(float(self.residual[-1])) / self.turnover if large and self.closed else None

    @property
    def doubtful(self) -> bool:
        """Whether the residual is within its bound, but may be an error: both are large."""
        return self.part is not None and self.part > _DOUBTFUL

    @property
    def verdict(self) -> str:
        """A few words about the residual at the end; "" if the bound is unknown."""
        if self.closed is None:
            return ""
        if self.doubtful:
            return f"energy residual {plain(100.0 * (self.part or 0.0), 2)} %"
        return "energy balance closed" if self.closed else "energy balance NOT CLOSED"

    def real(self) -> dict[str, _Floats]:
        """The parts that are more than rounding; all that are not zero if there is nothing else."""
        least = 0.0 if self.only_noise else min(self.noise, _NEGLIGIBLE * self.turnover)
        both = self.both
        return {name: heat for name, heat in self.parts.items() if name in both or float(np.abs(heat).max()) > least}

    def negligible(self) -> list[str]:
        """The names of the parts that are zero, or zero but for rounding."""
        return [name for name in self.parts if name not in self.real()]

    @property
    def hidden(self) -> str:
        """A sentence about heat that enters and leaves through one surface, if there is much of it; else empty."""
        return "" if self.only_noise else describe_both(self.both, ENERGIES)

    def describe_residual(self) -> str:
        """What the residual at the end and its bound say."""
        residual = format_amount(float(self.residual[-1]), ENERGIES, 2)
        if self.bound is None:
            return f"The residual is {residual}; its bound is known when the run has finished."
        if self.only_noise and self.closed:
            return f"Energy balance closed: residual {residual}."
        residual += f" of {format_amount(self.turnover, ENERGIES, 2)}"
        if self.closed and not self.doubtful:
            return f"Energy balance closed: residual {residual}."
        bound = format_amount(self.bound, ENERGIES, 2)
        if self.closed:
            again = ' To find out, run it again with solver.precision = "float64".'
            advice = again if self.precision == "float32" else ""
            return f"The residual is {residual}. It may be rounding, which can reach ±{bound} here.{advice}"
        return f"The residual is {residual}. Rounding can reach ±{bound} at most: THE BALANCE IS NOT CLOSED."


def read_balance(folder: Path, patches: Mapping[str, str]) -> EnergyBalance | None:
    """The energy balance of a run in which time passes; None if there is none, or no row yet.

    Args:
        folder: of the run.
        patches: the face of each patch of its scenario, by the patch's name.

    Raises:
        StorageError: a file cannot be read, or has no energy balance.
    """
    table = read_energy(folder)
    if table is None or not len(table.times):
        return None
    heats = table.in_unit(JOULE)
    missing = [name for name in ("stored", "sources", *FACES, "residual") if name not in heats]
    if missing:
        path = folder / run_folder.ENERGY
        raise StorageError(f"{path}: has no column {', '.join(missing)}; it was not written by heatsim")
    summary = read_summary(folder) if (folder / run_folder.SUMMARY).exists() else {}
    seconds = np.diff(table.times, prepend=table.times[0])
    found, stages = summary.get("energy_bound"), summary.get("stages") or summary.get("steps")
    return EnergyBalance(
        times=table.times,
        stored=heats["stored"],
        parts=_parts(heats, patches),
        residual=heats["residual"],
        bound=float(found) if isinstance(found, int | float) else None,
        stages=stages if isinstance(stages, int) else None,
        precision=str(summary.get("precision", "")),
        known={
            name: (float(np.nansum(entering * seconds)), float(np.nansum(leaving * seconds)))
            for name, (entering, leaving) in _gross_flows(table, patches).items()
        },
    )


def _parts(heats: Mapping[str, _Floats], patches: Mapping[str, str]) -> dict[str, _Floats]:
    """The terms beside the stored heat."""
    terms = {name: heats[name] for name in ("sources", *FACES)}
    terms |= {name: heats[name] for name in patches if name in heats}
    parts = count_once(terms, patches)
    return parts | {SURFACES_TO_VOID: heats["void"]} if "void" in heats else parts


def count_once(terms: Mapping[str, _Floats], patches: Mapping[str, str]) -> dict[str, _Floats]:
    """The terms of a balance with each heat in one of them: the term of a face without that of its patches.

    Args:
        terms: by name; the term of a face includes its patches.
        patches: the face of each patch by name.
    """
    parts: dict[str, _Floats] = {}
    for name, heat in terms.items():
        if name in patches:
            continue
        own = {patch: terms[patch] for patch, face in patches.items() if face == name and patch in terms}
        if not own:
            parts[name] = heat
            continue
        parts[f"{name} beside patches"] = heat - _sum(list(own.values()))
        parts |= {f"{patch} (on {name})": patch_heat for patch, patch_heat in own.items()}
    return parts


def flow_parts(energy: RunTable, patches: Mapping[str, str]) -> dict[str, _Floats]:
    """The heat flows of the body in W over time, by their names in the balance. Each flow is counted once.

    Args:
        energy: from energy.csv.
        patches: the face of each patch by name.
    """
    once = count_once(energy.of_body(WATT), patches)
    return {SURFACES_TO_VOID if name == "void" else name: flow for name, flow in once.items()}


def _gross_flows(energy: RunTable, patches: Mapping[str, str]) -> dict[str, tuple[_Floats, _Floats]]:
    """What enters and what leaves in W over time, by the names of the balance; none in tables of earlier versions."""
    ways = []
    for way in GROSS:
        given = {name: flow for name, flow in energy.of_gross(way).items() if not name.startswith(PARTS)}
        once = count_once(given, patches) if given else {}
        ways.append(
            {SURFACES_TO_VOID if name == "void" else name: np.maximum(flow, 0.0) for name, flow in once.items()}
        )
    return {name: (entering, ways[1][name]) for name, entering in ways[0].items()}


def both_ways(gross: Gross, turnover: float) -> Gross:
    """What enters and leaves through one surface or source, where both are a part of what flows."""
    return {name: ways for name, ways in gross.items() if min(ways) > _BOTH_WAYS * turnover}


def describe_both(both: Gross, units: Sequence[Unit]) -> str:
    """A sentence about :func:`both_ways`; empty if there is nothing."""
    largest = sorted(both, key=lambda name: -min(both[name]))
    told = [
        f"{name} {format_amount(both[name][0], units, 3)} in, {format_amount(both[name][1], units, 3)} out"
        for name in largest[:_MOST_TOLD]
    ]
    if len(largest) > _MOST_TOLD:
        told.append(f"and {counted(len(largest) - _MOST_TOLD, 'other')}")
    return f"Heat flows both ways: {'; '.join(told)}." if told else ""


def _sum(heats: Sequence[_Floats]) -> _Floats:
    total: _Floats = np.sum(heats, axis=0)
    return total


@dataclass(frozen=True)
class SteadyFlows:
    """The heat flows of a steady state.

    Attributes:
        flows: in W, positive into the body, by name; each heat once.
        imbalance: their sum in W: what the solver leaves, and rounding.
        percent: the imbalance in % of the heat that flows through the body, as energy.csv has it.
        known: what enters and what leaves, by name; of flows that are missing, their sign says it.
    """

    flows: Mapping[str, float]
    imbalance: float
    percent: float
    known: Gross = field(default_factory=dict)

    @property
    def gross(self) -> Gross:
        """What enters and what leaves in W, of each flow."""
        return {name: self.known.get(name, (max(flow, 0.0), max(-flow, 0.0))) for name, flow in self.flows.items()}

    @property
    def both(self) -> Gross:
        """The flows that enter and leave at the same surface or source."""
        return both_ways(self.gross, self.turnover)

    @property
    def turnover(self) -> float:
        """The heat that flows through the body in W: the mean of all that enters and all that leaves."""
        return 0.5 * sum(map(sum, self.gross.values()))

    @property
    def none(self) -> bool:
        """Whether no heat flows: no more than the imbalance."""
        return abs(self.imbalance) >= 0.5 * self.turnover

    @property
    def hidden(self) -> str:
        """A sentence about heat that enters and leaves through one surface, if there is much of it; else empty."""
        return "" if self.none else describe_both(self.both, POWERS)

    @property
    def part(self) -> str:
        """The imbalance in %, as text."""
        return f"{plain(self.percent, 2)} %"


def read_flows(folder: Path, patches: Mapping[str, str]) -> SteadyFlows | None:
    """The heat flows of a steady state; None if there are none.

    Args:
        folder: of the run.
        patches: the face of each patch of its scenario, by the name of the patch.

    Raises:
        StorageError: the table cannot be read.
    """
    table = read_energy(folder)
    if table is None or not len(table.times):
        return None
    flows = {name: float(flow[-1]) for name, flow in flow_parts(table, patches).items()}
    percent = table.in_unit(PERCENT).get("imbalance")
    known = {name: (float(ways[0][-1]), float(ways[1][-1])) for name, ways in _gross_flows(table, patches).items()}
    return SteadyFlows(flows, flows.pop("imbalance", 0.0), 0.0 if percent is None else float(percent[-1]), known)
