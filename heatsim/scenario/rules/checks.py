"""The rules between the tables of a scenario.

Each function returns every mistake against one rule; ``placement`` has the rules about space. ``load`` runs all of them
after the tables are validated, even if tables have mistakes. Values that could not be read are then None, and a rule
that needs them does not apply.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake
from heatsim.grid import FACES
from heatsim.scenario.messages import did_you_mean, show, show_key
from heatsim.scenario.rules import axial, couplings, interfaces, material_names, nodes, placement
from heatsim.scenario.rules.interfaces import has_no_void, materials_of, regions_by_name, wrong_room
from heatsim.scenario.rules.validation import entries, known
from heatsim.scenario.tables.boundaries import Insulated, Periodic
from heatsim.scenario.tables.materials import VOID
from heatsim.scenario.tables.model import Scenario
from heatsim.scenario.tables.probes import EXTENTS, LIQUID_FRACTION, TIMES_BEYOND, TOWARDS_VOID
from heatsim.scenario.tables.sources import Source
from heatsim.scenario.values.functions import formulas_in_time

# Parts of a run: rows that are farther apart are too few for straight lines between them; times that are the same.
_FEW_ROWS, _SAME_TIME = 0.05, 1e-6


def beams_stay_in_a_steady_state(scenario: Scenario) -> list[Mistake]:
    """A beam that moves has no steady state."""
    if not known(scenario.time) or not scenario.steady:
        return []
    message = (
        'the beam moves; a steady state needs a beam that stays: give a path of one point, or write method = "euler"'
    )
    return [
        Mistake(f"sources.{index}.beam.path", message)
        for index, source in entries(scenario.sources)
        if known(source.beam) and source.beam is not None and known(source.beam.path) and len(source.beam.path) > 1
    ]


def names_differ(scenario: Scenario) -> list[Mistake]:
    """All regions have different names, and so do all patches, all layers and all sources."""
    mistakes = []
    for tables, named in (
        ("regions", entries(scenario.regions)),
        ("patches", entries(scenario.patches)),
        ("layers", entries(scenario.layers)),
        ("sources", entries(scenario.sources)),
        ("nodes", entries(scenario.nodes)),
    ):
        taken: dict[str, str] = {}
        for index, table in named:
            if not known(table.name):
                continue
            label = table.label if isinstance(table, Source) else table.name
            if taken.get(label) == table.name:
                mistakes.append(Mistake(f"{tables}.{index}.name", _repeated(table.name, tables)))
            elif label in taken:
                message = f"got {show(table.name)} beside {show(taken[label])}; tables call both {show(label)}"
                mistakes.append(Mistake(f"{tables}.{index}.name", f"{message}: rename one of them"))
            taken.setdefault(label, table.name)
    return mistakes


def probe_columns_differ(scenario: Scenario) -> list[Mistake]:
    """Probes have different names, and so do all columns of probes.csv."""
    mistakes, taken = [], set[str]()
    for index, probe in entries(scenario.probes):
        if not known(probe.name):
            continue
        names = [("name", probe.name)]
        if probe.line is not None and known(probe.line.count):
            names += [("line", column) for column in probe.line.columns(probe.name)]
        for key, name in names:
            if name in taken:
                mistakes.append(Mistake(f"probes.{index}.{key}", _repeated(name, "probes")))
            taken.add(name)
    for index, coupling in entries(scenario.couplings):
        for name in coupling.columns if known(coupling.name, coupling.walls, coupling.bridges) else ():
            if name in taken:
                mistakes.append(Mistake(f"couplings.{index}.name", _repeated(name, "probes and couplings")))
            taken.add(name)
    return mistakes


def _repeated(name: str, tables: str) -> str:
    return f"got {show(name)} a second time; all {tables} need different names"


def expressions_in_time_stay_in_range(scenario: Scenario) -> list[Mistake]:
    """Values of expressions in t are allowed from the start to the end of the run."""
    end = scenario.time.end if known(scenario.time) and known(scenario.time.end) else 0.0
    mistakes, seen = [], set()
    for key, formula, quantity in formulas_in_time(scenario):
        # Several keys may share one default; its mistake is reported only at the first key, where it is written.
        if id(formula) not in seen:
            seen.add(id(formula))
            message = formula.fault(quantity, end)
            if message is not None:
                mistakes.append(Mistake(show_key(key), f"got {show(formula.expression.text)}, {message}"))
    return mistakes


def sources_and_probes_name_known_regions(scenario: Scenario) -> list[Mistake]:
    """The regions of sources and probes exist and conduct."""
    if not known(scenario.regions):
        return []
    named = [(f"sources.{index}.region", source.region) for index, source in entries(scenario.sources)]
    named += [(f"probes.{index}.region", probe.region) for index, probe in entries(scenario.probes)]
    regions = regions_by_name(scenario)
    mistakes = []
    for key, name in named:
        if name is None:
            continue
        if name not in regions:
            choice = f"one of {', '.join(map(show, regions))} is expected" if regions else "there are no [[regions]]"
            mistakes.append(Mistake(key, f"got {show(name)}; {choice}{did_you_mean(name, regions)}"))
        elif materials_of(regions[name]) == {VOID}:
            mistakes.append(Mistake(key, f"got {show(name)}; this region is void, which does not conduct"))
    return mistakes


def probes_of_surfaces_have_one(scenario: Scenario) -> list[Mistake]:
    """Probes name surfaces that exist: faces, not periodic; void, not insulated; void regions, the rooms."""
    mistakes = []
    for index, probe in entries(scenario.probes):
        if probe.surface is None or not known(scenario.boundaries):
            continue
        key, got = f"probes.{index}.surface", f"got {show(probe.surface)}"
        message = _wrong_surface(scenario, probe.surface)
        if message is not None:
            mistakes.append(Mistake(key, message))
        elif probe.surface in FACES:
            if isinstance(scenario.boundaries.face(probe.surface), Periodic):
                mistakes.append(Mistake(key, f"{got}; this face is periodic and has no surface"))
        elif has_no_void(scenario):
            mistakes.append(Mistake(key, f"{got}; the scenario has no void, so no surface borders on it"))
        elif (
            known(scenario.surfaces)
            and not scenario.channels
            and all(
                isinstance(condition, Insulated)
                for condition in (scenario.boundaries.void, *(each and each.condition for each in scenario.surfaces))
            )
        ):
            message = (
                f"{got}; surfaces towards void are insulated: give boundaries.void a condition, or remove this key: "
                "then the probe takes the temperatures of cells"
            )
            mistakes.append(Mistake(key, message))
    return mistakes


def _wrong_surface(scenario: Scenario, name: str) -> str | None:
    """What is wrong with the name of a probe's surface."""
    if not known(scenario.regions):
        return None
    if name in scenario.rooms:
        return wrong_room(scenario, name)
    if name in (*FACES, TOWARDS_VOID):
        return None
    if name in regions_by_name(scenario):
        return (
            f'got {show(name)}, which conducts; write surface = "void" and region = {show(name)}, or name a void region'
        )
    names = [*FACES, TOWARDS_VOID, *scenario.rooms]
    return f"got {show(name)}; one of {', '.join(map(show, names))} is expected{did_you_mean(name, names)}"


def statistics_suit_the_scenario(scenario: Scenario) -> list[Mistake]:
    """Statistics of a melt need a material that melts; those of time need time."""
    if not known(scenario.time, scenario.material or scenario.materials):
        return []
    named = [scenario.material] if scenario.material is not None else list(scenario.materials.values())
    melts = any(material is None or material.liquidus is not None for material in named)
    mistakes = []
    for index, probe in entries(scenario.probes):
        key = f"probes.{index}.statistic"
        if scenario.steady and probe.statistic in (LIQUID_FRACTION, *TIMES_BEYOND):
            message = f'got {show(probe.statistic)}; with time.method = "steady" no time passes, and nothing melts'
            mistakes.append(Mistake(key, message))
        elif not melts and probe.statistic == LIQUID_FRACTION:
            mistakes.append(Mistake(key, f"got {show(probe.statistic)}; no material has a latent_heat"))
        elif probe.statistic in EXTENTS and probe.threshold is None and (not melts or scenario.steady):
            message = f'missing; {show(probe.statistic)} needs a threshold where nothing melts, as in "60 degC"'
            mistakes.append(Mistake(f"probes.{index}.threshold", message))
    return mistakes


def measured_values_overlap(scenario: Scenario) -> list[Mistake]:
    """Measured values lie, at least in part, in the time of the run."""
    mistakes = []
    for index, probe in entries(scenario.probes) if known(scenario.time) else ():
        if not known(probe.measured) or probe.measured is None:
            continue
        key, end = f"probes.{index}.measured", scenario.time.end
        if scenario.steady:
            message = 'got measured values over time; with time.method = "steady" no time passes: remove this key'
            mistakes.append(Mistake(key, message))
            continue
        try:
            times = probe.measured.since(scenario.time.start_date)
        except ValueError as error:
            mistakes.append(Mistake(key, str(error)))
            continue
        if not ((times >= 0.0) & (times <= end)).any():
            message = (
                f"the measured times lie from t = {times[0]:.10g} s to {times[-1]:.10g} s, none of them in the run "
                f"from 0 to {end:.10g} s: change time.start, time.end or the column of times"
            )
            mistakes.append(Mistake(key, message))
        elif known(scenario.output):
            mistakes += _between_rows(key, times[(times >= 0.0) & (times <= end)], scenario.output.probe_every, end)
    return mistakes


def _between_rows(key: str, times: NDArray[np.float64], every: float, end: float) -> Iterator[Mistake]:
    """A mistake if a measured time lies between rows that are too far apart for straight lines."""
    from_row = np.where(times < end, np.abs(times - every * np.round(times / every)), 0.0)
    if every > _FEW_ROWS * end and from_row.max() > _SAME_TIME * end:
        yield Mistake(
            key,
            f"{times[from_row.argmax()]:.10g} s lies between rows of probes.csv, which are {every:.10g} s apart, and a "
            f"straight line between them says little: set output.probe_every to {_FEW_ROWS * end:.10g} s or less, or "
            "so that its multiples are the measured times",
        )


CHECKS: tuple[Callable[[Scenario], list[Mistake]], ...] = (
    axial.axial_domains_turn_around_their_axis,
    material_names.one_form_of_materials,
    material_names.domain_names_its_material,
    material_names.materials_exist,
    interfaces.contacts_name_known_parts,
    interfaces.contacts_differ,
    interfaces.contacts_have_different_columns,
    interfaces.layers_have_constant_contacts,
    material_names.layers_have_constant_materials,
    placement.layers_lie_between_cells,
    placement.layers_are_thinner_than_cells,
    names_differ,
    beams_stay_in_a_steady_state,
    probe_columns_differ,
    measured_values_overlap,
    placement.label_images_fit_the_grid,
    placement.initial_field_fits_the_domain,
    expressions_in_time_stay_in_range,
    interfaces.conditions_towards_void_need_void,
    interfaces.surfaces_name_known_parts,
    placement.patches_and_beams_have_a_surface,
    placement.patches_and_beams_lie_on_their_faces,
    placement.patches_do_not_overlap,
    placement.held_patches_are_as_wide_as_half_a_cell,
    nodes.nodes_are_known,
    nodes.nodes_start_somewhere,
    nodes.nodes_give_what_enters,
    nodes.nodes_reach_a_known_temperature,
    nodes.laws_towards_nodes_follow_the_difference,
    nodes.channels_flow_through_void,
    nodes.channels_follow_each_other,
    sources_and_probes_name_known_regions,
    probes_of_surfaces_have_one,
    placement.probes_lie_in_the_domain,
    statistics_suit_the_scenario,
    couplings.couplings_need_a_linear_steady_state,
    couplings.couplings_name_surroundings,
    couplings.temperature_factors_have_two_temperatures,
)
