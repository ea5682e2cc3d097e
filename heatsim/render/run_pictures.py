"""The pictures that the files of a run allow: what there is to draw, before anything is drawn."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from heatsim.errors import FolderError
from heatsim.render.choice import PictureChoice
from heatsim.render.curves import curves, energy_picture
from heatsim.render.curves.energy_balance import EnergyBalance, flow_parts, read_balance, read_flows
from heatsim.render.curves.flow_curves import flow_curves
from heatsim.render.page.figure import title_of
from heatsim.render.picture import Picture
from heatsim.render.spatial.field_pictures import field_pictures
from heatsim.render.spatial.quantities import open_reader
from heatsim.storage import folder as run_folder
from heatsim.storage.disk import resume_command
from heatsim.storage.run_settings import RunSettings, read_settings
from heatsim.storage.run_tables import RunTable, read_energy, read_probes
from heatsim.storage.summary_file import read_summary
from heatsim.temperature_units import KELVIN

_FEWEST_FLOWS = 3  # rows; the first has none


@dataclass(frozen=True)
class Pictures:
    """All pictures of a run: 3-D views, which need OpenGL, pictures of flat grids, and curves."""

    views: Sequence[Picture]
    flat: Sequence[Picture]
    curves: Sequence[Picture]

    @property
    def all(self) -> Sequence[Picture]:
        """The pictures, the views first."""
        return (*self.views, *self.flat, *self.curves)

    def without(self, names: Collection[str]) -> "Pictures":
        """The pictures that have other names than these."""
        kept = ([each for each in some if each.name not in names] for some in (self.views, self.flat, self.curves))
        return Pictures(*kept)


def find_pictures(folder: Path, stack: ExitStack, choice: PictureChoice) -> Pictures:
    """The pictures that the files of a run allow; ``stack`` closes the files.

    Curves are there if the usual pictures are asked for.

    Raises:
        FolderError: there are none, or scenario.toml cannot be read.
        InputError: the run cannot have what was chosen.
        StorageError: a file cannot be read.
    """
    run = read_settings(folder)
    fields = folder / run_folder.FIELDS
    views: Sequence[Picture] = []
    flat: Sequence[Picture] = []
    if fields.exists():
        reader = stack.enter_context(open_reader(fields, choice.quantity, run, choice.cells))
        if len(reader) > 0:
            views, flat = field_pictures(reader, run, choice, stack)
    found = Pictures(views, flat, _curves(folder, run) if choice.usual else [])
    if not found.all:
        missing, remedy = "fields", "output.fields = true"
        if choice.usual:
            missing, remedy = (
                "fields, probes or energy rows",
                "output.fields or output.energy = true, or with [[probes]]",
            )
        finished = (folder / run_folder.SUMMARY).exists()
        advice = f"run the scenario with {remedy}" if finished else f"continue with `{resume_command(folder)}`"
        raise FolderError(f"{folder}: there are no {missing} to draw; {advice}")
    return found


def _curves(folder: Path, run: RunSettings) -> list[Picture]:
    """Pictures of the tables of a run: the probes and the energy balance over time, or the steady heat flows."""
    found = _probe_pictures(folder, run)
    if run.steady:
        flows = read_flows(folder, run.patches)
        if flows is not None:
            over = title_of(run.title, "heat flows")
            found.append(Picture("energy", partial(energy_picture.draw_flows, title=over, found=flows)))
        return found
    balance = read_balance(folder, run.patches)
    if balance is not None:
        over = title_of(run.title, "energy balance")
        found.append(
            Picture("energy", partial(energy_picture.draw_energy, title=over, balance=balance, start=run.start))
        )
        found += _flow_picture(folder, run, balance)
    return found


def _flow_picture(folder: Path, run: RunSettings, balance: EnergyBalance) -> list[Picture]:
    """The picture of the heat flows of the body over time, if there are any."""
    energy = read_energy(folder)
    if energy is None or len(energy.times) < _FEWEST_FLOWS or balance.only_noise:
        return []
    flows = {name: flow for name, flow in flow_parts(energy, run.patches).items() if name not in balance.negligible()}
    found = flow_curves(energy.times, flows)
    if found is None:
        return []
    over = title_of(run.title, f"heat flows, {found.remark}" if found.remark else "heat flows")
    draw = partial(energy_picture.draw_flow_curves, title=over, curves=found, balance=balance, start=run.start)
    return [Picture("heat_flows", draw)]


def _probe_pictures(folder: Path, run: RunSettings) -> list[Picture]:
    """Pictures of the probes: one of all points and regions, and one for each line."""
    table = read_probes(folder)
    if table is None or not len(table.times):
        return []
    columns = table.in_unit(KELVIN.name)
    summary = read_summary(folder) if (folder / run_folder.SUMMARY).exists() else {}
    found, measured = [], curves.measured_points(summary)
    alone = {name: values for name, values in columns.items() if run.line_of(name) is None}
    if alone and not run.steady:
        bands = curves.error_bands(summary, table)
        points = {name: of for name, of in measured.items() if name in alone}
        over = title_of(run.title, curves.title_with_signs("probes", bands, points))
        draw = partial(
            curves.draw_temperatures,
            title=over,
            times=table.times,
            curves=alone,
            shown_in=run.temperature_unit,
            start=run.start,
            bands=bands,
            limits=run.limits,
            points=points,
        )
        found.append(Picture("probes", draw))
    if not run.steady:
        found += _number_pictures(table, run, measured)
    for number, (name, (length, count)) in enumerate(run.lines.items(), 1):
        values = [columns[column] for index in range(count) if (column := f"{name}[{index}]") in columns]
        if len(values) == count:
            over = title_of(run.title, f'probe "{name}"')
            draw = partial(
                curves.draw_line_probe,
                title=over,
                times=table.times,
                length=length,
                temperatures=np.stack(values, axis=1),
                shown_in=run.temperature_unit,
                start=run.start,
            )
            found.append(Picture(f"line_{number}", draw))
    return found


def _number_pictures(table: RunTable, run: RunSettings, measured: Mapping[str, curves.MeasuredPoints]) -> list[Picture]:
    """Pictures of the probes that are not temperatures, one for each unit."""
    found = []
    for number, group in enumerate(curves.number_groups(table, run.limits, measured), 1):
        over = title_of(run.title, curves.title_with_signs("probes", (), group.points))
        draw = partial(
            curves.draw_numbers,
            title=over,
            times=table.times,
            curves=group.curves,
            label=group.label,
            start=run.start,
            marks=group.marks,
            points=group.points,
        )
        found.append(Picture(f"probes_{number}", draw))
    return found
