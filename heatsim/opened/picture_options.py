"""What to draw of a run, from texts as users write them in a shell or in Python."""

from collections.abc import Sequence
from pathlib import Path

from heatsim.errors import InputError
from heatsim.physics.geometry.part_owners import part_owners
from heatsim.physics.geometry.regions import paint, region_mask
from heatsim.render import choice
from heatsim.render.spatial.zoom import part_around, read_box
from heatsim.scenario import load
from heatsim.storage import folder as run_folder
from heatsim.storage.field_reader import Cells, FieldReader
from heatsim.storage.run_settings import read_settings


def choose(
    folder: Path,
    *,
    views: Sequence[str] = (),
    times: str | None = None,
    planes: str | None = None,
    zoom: str | None = None,
    span: str | None = None,
    quantity: str = choice.TEMPERATURE,
    camera: str | None = None,
    suffix: str = "png",
) -> choice.PictureChoice:
    """What the options of `heatsim render` choose.

    Args:
        folder: of the run.
        views: some of ``choice.VIEWS``; empty for the usual ones.
        times: such as ``"2, 10, 20 h"``.
        planes: such as ``"x = 20 mm, z = 0"``.
        zoom: a box such as ``"x = 30 to 38 mm, y = 0 to 5 mm"``, or the name of a region.
        span: the ends of the colour scale, such as ``"20 degC, 80 degC"``.
        quantity: one of ``choice.QUANTITIES``.
        camera: ``"front"``, ``"back"``, ``"top"``, ``"below"``, or two angles such as ``"-57, 26"``.
        suffix: of the pictures.

    Raises:
        FolderError: it is not the folder of a run.
        InputError: an option cannot be read, or does not fit the run.
    """
    run_folder.require_run(folder)
    for name, given, known in (("view", views, choice.VIEWS), ("quantity", (quantity,), choice.QUANTITIES)):
        if wrong := [each for each in given if each not in known]:
            raise InputError(f'--{name}: got "{wrong[0]}"; one of {", ".join(known)} is expected')
    cells = None if zoom is None else _part(folder, zoom)
    places = {}
    if planes is not None:
        with FieldReader(folder / run_folder.FIELDS, cells) as reader:
            places = choice.read_planes(planes, reader.grid)
    return choice.PictureChoice(
        views=views,
        times=choice.read_times(times),
        quantity=quantity,
        planes=places,
        span=choice.read_span(span, quantity, read_settings(folder).temperature_unit),
        cells=cells,
        camera=choice.read_camera(camera),
        format=suffix,
        owners=part_owners,
    )


def _part(folder: Path, text: str) -> Cells:
    """The cells of the part of the body that ``zoom`` selects.

    Raises:
        InputError: there is no such part.
    """
    if "=" in text:
        with FieldReader(folder / run_folder.FIELDS) as reader:
            return read_box(text, reader.grid)
    scenario = load(folder / run_folder.SCENARIO)
    names = [region.name for region in scenario.regions]
    if text not in names:
        known = f"its regions are {', '.join(names)}" if names else "it has no regions"
        raise InputError(
            f'--zoom: got "{text}", which is not a region of this run; {known}; or write a box, for example '
            '--zoom "x = 30 to 38 mm, y = 0 to 5 mm"'
        )
    inside = region_mask(text, scenario, paint(scenario))
    if not inside.any():
        raise InputError(f'--zoom: got "{text}", which contains no conducting cell')
    return part_around(inside, scenario.grid)
