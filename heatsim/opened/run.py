"""The results of one run."""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heatsim.errors import FolderError, InputError
from heatsim.grid import AXES
from heatsim.render.notebook import ShownPictures
from heatsim.storage import folder as run_folder
from heatsim.storage import run_tables
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.run_settings import RunSettings, read_settings
from heatsim.storage.summary_file import read_summary
from heatsim.storage.traces import latest_time
from heatsim.storage.vtkhdf import HEAT_FLUX, TEMPERATURE, UNITS
from heatsim.temperature_units import KELVIN

if TYPE_CHECKING:
    import pandas
    import xarray

    from heatsim.opened.lazy_fields import LazyField


class Run:
    """The results of a run, which may still be running: each access reads what the files have then.

    >>> import heatsim
    >>> run = heatsim.open("outputs/cube")
    >>> run.temperature.sel(time=10.0, method="nearest").max()
    >>> run.probes.plot()

    Attributes:
        folder: of the run.
    """

    def __init__(self, folder: Path) -> None:
        """Look at a folder.

        Raises:
            FolderError: it is not the folder of a run.
        """
        self.folder = run_folder.require_run(folder)
        self._settings: RunSettings = read_settings(folder)

    @property
    def title(self) -> str:
        """The title of the scenario."""
        return self._settings.title

    @property
    def finished(self) -> bool:
        """Whether the run is complete."""
        return (self.folder / run_folder.SUMMARY).is_file()

    @property
    def time(self) -> float:
        """The time in s that the files have reached."""
        return latest_time(self.folder)

    @property
    def temperature(self) -> "xarray.DataArray":
        """The temperature in K over time, dimensions time (s), z, y, x (m): the centres of the cells; NaN in void.

        Values are read when they are needed: `run.temperature[-1].max()` reads one time. The number of times is that of
        the file now. A steady state has one time, 0 s.

        Raises:
            FolderError: the run writes no fields.
            StorageError: the file is damaged.
        """
        return self._field(TEMPERATURE, "temperature", ())

    @property
    def heat_flux(self) -> "xarray.DataArray":
        """The heat flux in W/m², as :attr:`temperature` with the dimension component: "x", "y", "z".

        Raises:
            FolderError: the run writes no heat flux.
            StorageError: the file is damaged.
        """
        return self._field(HEAT_FLUX, "heat flux", ("component",))

    @property
    def liquid_fraction(self) -> "xarray.DataArray":
        """The liquid part of each cell, 0 to 1, as :attr:`temperature`; 0 in materials that do not melt.

        Raises:
            FolderError: no material melts, or the run writes no fields.
            StorageError: the file is damaged.
        """
        if not self._settings.melting:
            raise FolderError(f"{self.folder}: no material of this run melts: none has a latent_heat")
        from heatsim.opened.lazy_fields import LazyLiquidFraction

        with self._reader() as reader:
            data = LazyLiquidFraction(reader.path, len(reader), self._settings)
            return _array(reader, data, "liquid fraction", "1", ())

    @property
    def material(self) -> "xarray.DataArray":
        """The name of the material of each cell, dimensions z, y, x; "void" where nothing conducts.

        Raises:
            FolderError: the run writes no fields.
            StorageError: the file is damaged.
        """
        import xarray

        with self._reader() as reader:
            names = np.array(reader.materials or ("material",))
            return xarray.DataArray(
                names[reader.read_materials()], _coordinates(reader), ("z", "y", "x"), name="material"
            )

    @property
    def probes(self) -> "pandas.DataFrame":
        """The probes over time, with the headers of probes.csv: the index `time (s)`, columns such as `centre (degC)`.

        Raises:
            FolderError: the run has no probes.
            StorageError: the file is damaged.
        """
        return self._frame(run_tables.read_probes(self.folder), run_folder.PROBES, "[[probes]]")

    @property
    def energy(self) -> "pandas.DataFrame":
        """The heats in J and heat flows in W over time, with the headers of energy.csv; of a steady state the flows.

        Raises:
            FolderError: the run writes no energy balance.
            StorageError: the file is damaged.
        """
        return self._frame(run_tables.read_energy(self.folder), run_folder.ENERGY, "output.energy = true")

    @property
    def nodes(self) -> "pandas.DataFrame":
        """Temperatures of nodes, and heats in J that they took up, with the headers of nodes.csv; steady: flows in W.

        Raises:
            FolderError: the run has no nodes.
            StorageError: the file is damaged.
        """
        return self._frame(run_tables.read_nodes(self.folder), run_folder.NODES, "[[nodes]]")

    @property
    def summary(self) -> dict[str, Any]:
        """The content of summary.json: device, method, steps, temperatures in K at the end, times and more.

        Raises:
            FolderError: the run has not finished.
        """
        return read_summary(self.folder)

    def plot(
        self,
        beginning: str = "",
        *,
        view: str | Sequence[str] = (),
        times: str | None = None,
        planes: str | None = None,
        zoom: str | None = None,
        camera: str | None = None,
        range: str | None = None,
        quantity: str = "temperature",
        animate: bool = False,
    ) -> ShownPictures:
        """Draw pictures of the run into its folder figures/, and show them in a notebook.

        Without options these are the usual pictures; the options are those of `heatsim render`:

        >>> run.plot(quantity="heat_flux", view="sections", times="10 s", planes="z = 20 mm")

        Args:
            beginning: how the names of the pictures to show begin, such as "probes" or "slices"; all are drawn.
            view: "slices", "sections", "surface" or "isosurface", or a list of them.
            times: such as "2, 10, 20 h"; the nearest fields are drawn.
            planes: positions of sections, such as "x = 20 mm, z = 0".
            zoom: a box such as "x = 30 to 38 mm, y = 0 to 5 mm", or the name of a region.
            camera: "front", "back", "top", "below", or two angles such as "-57, 26".
            range: the ends of the colour scale, such as "20 degC, 80 degC".
            quantity: "temperature", "heat_flux", "liquid_fraction" or "material".
            animate: draw a GIF of one view over all times instead, or over ``times``.

        Returns:
            The paths of the pictures.

        Raises:
            FolderError: there is nothing to draw, or only one time to animate.
            InputError: no picture's name begins so, or ``animate`` was given too; an option does not fit the run; or
                3-D views cannot be drawn on this machine.
        """
        from heatsim.opened.picture_options import choose
        from heatsim.render import picture_names, render
        from heatsim.render.animation import animate as write_animation

        if animate and beginning:
            raise InputError(f"plot: got {beginning!r}, which chooses among pictures, beside animate; choose a view")
        views = (view,) if isinstance(view, str) else view
        choice = choose(
            self.folder,
            views=views,
            times=times,
            planes=planes,
            zoom=zoom,
            span=range,
            quantity=quantity,
            camera=camera,
            suffix="gif" if animate else "png",
        )
        if animate:
            return ShownPictures([write_animation(self.folder, choice)])
        all_names = picture_names(self.folder, choice)
        names = [name for name in all_names if name.startswith(beginning)]
        if not names:
            kinds = dict.fromkeys(name.partition("_t")[0] for name in all_names)
            raise InputError(
                f"{self.folder}: got {beginning!r}; the names of its pictures begin with "
                f"{', '.join(map(repr, kinds))}; nothing is drawn"
            )
        figures = self.folder / run_folder.FIGURES
        try:
            render(self.folder, choice)
        except InputError:
            # Without OpenGL all others are drawn.
            if not all((figures / f"{name}.png").is_file() for name in names):
                raise
        return ShownPictures(figures / f"{name}.png" for name in names)

    def __repr__(self) -> str:
        state = "finished" if self.finished else "not finished"
        return f'<heatsim run "{self.title}" in {self.folder}: {state}, {self._reached()}>'

    def _repr_html_(self) -> str:
        names = [name for name in run_folder.CONTENTS if (self.folder / name).is_file()]
        rows = {
            "folder": str(self.folder),
            "state": "finished" if self.finished else "not finished",
            "reached": self._reached(),
            "files": ", ".join(names),
        }
        cells = "".join(f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in rows.items())
        return f"<b>{html.escape(self.title)}</b><table>{cells}</table>"

    def _reached(self) -> str:
        return "steady state" if self._settings.steady else f"t = {self.time:.6g} s"

    def _reader(self) -> FieldReader:
        path = self.folder / run_folder.FIELDS
        if not path.is_file():
            raise FolderError(f"{path}: is not there; the run writes it with output.fields = true")
        return FieldReader(path)

    def _field(self, name: str, text: str, more: tuple[str, ...]) -> "xarray.DataArray":
        from heatsim.opened.lazy_fields import LazyField

        with self._reader() as reader:
            if name == HEAT_FLUX and not reader.has_heat_flux:
                raise FolderError(f"{reader.path}: has no heat flux; the run writes it with output.heat_flux = true")
            return _array(reader, LazyField(reader.path, len(reader), name), text, UNITS[name], more)

    def _frame(self, table: run_tables.RunTable | None, file: str, key: str) -> "pandas.DataFrame":
        import pandas

        if table is None:
            raise FolderError(f"{self.folder / file}: is not there; the run writes it with {key}")
        unit = self._settings.table_unit
        columns = {
            run_tables.header(name, unit.name if its_unit == KELVIN.name else its_unit): (
                unit.of(values) if its_unit == KELVIN.name else values
            )
            for (name, its_unit), values in table.columns.items()
        }
        index = pandas.Index(table.times, name=run_tables.header(run_tables.TIME, run_tables.SECOND))
        return pandas.DataFrame(columns, index=index)


def _coordinates(reader: FieldReader) -> dict[str, Any]:
    """The centres of the cells in m along z, y and x, as xarray takes them."""
    return {
        axis: (axis, reader.grid.centres(number), {"units": "m"}) for number, axis in reversed(list(enumerate(AXES)))
    }


def _array(reader: FieldReader, data: "LazyField", text: str, unit: str, more: tuple[str, ...]) -> "xarray.DataArray":
    """An array over time and space with coordinates; values are read when they are needed."""
    import xarray
    from xarray.core.indexing import LazilyIndexedArray

    variable = xarray.Variable(("time", "z", "y", "x", *more), LazilyIndexedArray(data))
    of_time = {"time": ("time", reader.times, {"units": "s"})}
    of_components = {dimension: (dimension, list(AXES)) for dimension in more}
    attributes = {"units": unit, "long_name": text.capitalize()}
    coordinates = {**of_time, **_coordinates(reader), **of_components}
    return xarray.DataArray(variable, coordinates, name=text.replace(" ", "_"), attrs=attributes)
