"""Fields for programs that read VTK's XML files: one VTI file a time, and a PVD file that lists all of them."""

from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import numpy as np

from heatsim.errors import FolderError, InputError, StorageError
from heatsim.storage import folder as run_folder
from heatsim.storage.disk import reason
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.pyvista import import_pyvista

FORMATS = ("vti", "pvd")


def export(folder: Path, format: Literal["vti", "pvd"]) -> list[Path]:
    """Write the fields of a run into ``folder/export``, replacing what an earlier export left there.

    Args:
        folder: what a run wrote.
        format: ``"vti"`` for ``temperature_0000.vti`` and so on, with the cell data ``temperature`` in K, the heat flux
            in W/m² and the numbers of the materials where the run wrote them, and the time as field data ``TimeValue``
            in s; ``"pvd"`` for these and ``temperature.pvd``, which ParaView opens as a series with the exact times.

    Returns:
        The files' paths, the PVD file last.

    Raises:
        FolderError: the folder is no run's, or holds no fields.
        InputError: another format, or PyVista is missing.
        StorageError: the fields cannot be read, or a file not be written.
    """
    if format not in FORMATS:
        raise InputError(f"--format {format!r} is not known; allowed are {' and '.join(FORMATS)}")
    run_folder.require_run(folder)
    pyvista = import_pyvista()
    target = folder / run_folder.EXPORT
    with FieldReader(folder / run_folder.FIELDS) as reader:
        if len(reader) == 0:
            raise FolderError(f"{folder / run_folder.FIELDS}: holds no fields yet; let the run go on first")
        _clear(target)
        digits = max(4, len(str(len(reader) - 1)))
        paths = []
        nx, ny, nz = reader.grid.cells
        for index, time in enumerate(reader.times):
            image = pyvista.ImageData(
                dimensions=(nx + 1, ny + 1, nz + 1), spacing=reader.grid.spacing, origin=reader.grid.origin
            )
            image.cell_data["temperature"] = reader.read(index).reshape(-1)
            if reader.has_heat_flux:
                image.cell_data["heat_flux"] = reader.read_heat_flux(index).reshape(-1, 3)
            if reader.materials:
                image.cell_data["material"] = reader.read_materials().reshape(-1)
            image.set_active_scalars("temperature", preference="cell")
            image.field_data["TimeValue"] = np.array([time])
            path = target / f"temperature_{index:0{digits}d}.vti"
            try:
                image.save(path)
            except OSError as error:
                raise StorageError(f"{path}: could not be written: {reason(error)}") from error
            if not path.is_file():
                raise StorageError(f"{path}: could not be written; is the disk full?")
            paths.append(path)
        if format == "pvd":
            paths.append(_write_collection(target / "temperature.pvd", paths, reader.times.tolist()))
    return paths


def _clear(target: Path) -> None:
    try:
        target.mkdir(exist_ok=True)
        for pattern in ("temperature_*.vti", "temperature.pvd"):
            for path in target.glob(pattern):
                path.unlink()
    except OSError as error:
        raise StorageError(f"{target}: could not be prepared: {reason(error)}") from error


def _write_collection(path: Path, parts: list[Path], times: list[float]) -> Path:
    root = ElementTree.Element("VTKFile", type="Collection", version="0.1")
    collection = ElementTree.SubElement(root, "Collection")
    for part, time in zip(parts, times, strict=True):
        ElementTree.SubElement(collection, "DataSet", timestep=repr(time), part="0", file=part.name)
    ElementTree.indent(root)
    try:
        ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise StorageError(f"{path}: could not be written: {reason(error)}") from error
    return path
