"""Export of fields as VTK's XML files: one VTI or VTR file for each time, and a PVD file that lists them."""

import errno
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import numpy as np

from heatsim.errors import FolderError, InputError, StorageError
from heatsim.storage import folder as run_folder
from heatsim.storage import manifest
from heatsim.storage.disk import part_of, reason, remedy, sync_folder
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.pyvista import import_pyvista

FORMATS = ("vti", "pvd")
_LAST = b"</VTKFile>\n"


def export(folder: Path, format: Literal["vti", "pvd"]) -> list[Path]:
    """Write the fields of a run to ``folder/export`` and replace an earlier export; returns the files' paths.

    Args:
        folder: the folder of a run.
        format: ``"vti"`` for the files ``temperature_0000.vti`` and so on, ``.vtr`` on graded grids. They hold the cell
            data ``temperature`` in K, heat flux in W/m² and material numbers if the run wrote them, and the time in s
            as field data ``TimeValue``. ``"pvd"`` adds ``temperature.pvd``, which ParaView opens as a series with the
            exact times.

    Returns:
        The files' paths, the PVD file last.

    Raises:
        FolderError: heatsim did not write the folder, it holds no fields, or the user changed an exported file.
        InputError: another format, or PyVista is missing.
        StorageError: the fields cannot be read, or a file cannot be written.
    """
    if format not in FORMATS:
        raise InputError(f"--format {format!r} is not known; allowed are {' and '.join(FORMATS)}")
    run_folder.require_run(folder)
    import_pyvista()
    target = folder / run_folder.EXPORT
    with FieldReader(folder / run_folder.FIELDS) as reader:
        if len(reader) == 0:
            raise FolderError(f"{folder / run_folder.FIELDS}: holds no fields yet; wait until the run has written some")
        digits = max(4, len(str(len(reader) - 1)))
        suffix = "vti" if reader.grid.uniform else "vtr"
        paths = [target / f"temperature_{index:0{digits}d}.{suffix}" for index in range(len(reader))]
        if format == "pvd":
            paths.append(target / "temperature.pvd")
        _write(folder, paths, reader)
    return paths


def _write(folder: Path, paths: Sequence[Path], reader: FieldReader) -> None:
    """Write the files of all times, and then the list of them if there is one more path."""
    target, parts = folder / run_folder.EXPORT, [*map(part_of, paths)]
    with manifest.replacing(folder, [f"{run_folder.EXPORT}/{path.name}" for path in paths], run_folder.EXPORT) as yours:
        manifest.refuse(folder, yours)
        try:
            target.mkdir(exist_ok=True)
            for index, part in enumerate(parts[: len(reader)]):
                _write_mesh(part, _mesh(reader, index))
            for part in parts[len(reader) :]:
                _write_collection(part, paths[:-1], reader.times.tolist())
        except OSError as error:
            raise _refused(target, error, "The files of an earlier export are unchanged") from error
        else:
            _replace(target, paths)
        finally:
            for part in parts:
                with suppress(OSError):
                    part.unlink()


def _refused(target: Path, error: OSError, state: str) -> StorageError:
    return StorageError(f"{target}: could not be written: {reason(error)}; {remedy(error)} and export again. {state}")


def _mesh(reader: FieldReader, index: int) -> Any:
    """The cells at one time, as PyVista's ImageData, or as its RectilinearGrid on graded grids."""
    grid, pyvista = reader.grid, import_pyvista()
    if grid.uniform:
        nx, ny, nz = grid.cells
        mesh = pyvista.ImageData(dimensions=(nx + 1, ny + 1, nz + 1), spacing=grid.spacing, origin=grid.origin)
    else:
        mesh = pyvista.RectilinearGrid(*(axis.borders for axis in grid.axes))
    mesh.cell_data["temperature"] = reader.read(index).reshape(-1)
    if reader.has_heat_flux:
        mesh.cell_data["heat_flux"] = reader.read_heat_flux(index).reshape(-1, 3)
    if reader.materials:
        mesh.cell_data["material"] = reader.read_materials().reshape(-1)
    mesh.set_active_scalars("temperature", preference="cell")
    mesh.field_data["TimeValue"] = np.array([reader.times[index]])
    return mesh


def _write_mesh(path: Path, mesh: Any) -> None:
    """Write a VTI or VTR file and check that it is complete.

    Raises:
        OSError: it is not. VTK itself only counts errors, and does not notice all of them.
    """
    from vtkmodules.vtkCommonDataModel import vtkImageData
    from vtkmodules.vtkCommonMisc import vtkErrorCode
    from vtkmodules.vtkIOXML import vtkXMLImageDataWriter, vtkXMLRectilinearGridWriter

    writer: Any = vtkXMLImageDataWriter() if isinstance(mesh, vtkImageData) else vtkXMLRectilinearGridWriter()
    errors: list[object] = []
    for reporter in (writer, writer.GetExecutive()):
        reporter.AddObserver("ErrorEvent", lambda *arguments: errors.append(arguments))  # instead of a text on stderr
    writer.SetFileName(str(path))
    writer.SetInputData(mesh)
    written = writer.Write()
    if not written or errors or writer.GetErrorCode():
        full = writer.GetErrorCode() == vtkErrorCode.OutOfDiskSpaceError or not shutil.disk_usage(path.parent).free
        number = errno.ENOSPC if full else errno.EIO
        raise OSError(number, os.strerror(number), str(path))
    with open(path, "r+b") as file:
        file.seek(-min(len(_LAST), os.fstat(file.fileno()).st_size), os.SEEK_END)
        if file.read() != _LAST:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        os.fsync(file.fileno())


def _replace(target: Path, paths: Sequence[Path]) -> None:
    """Replace the files of an earlier export by the new files.

    Raises:
        StorageError: the system refused.
    """
    try:
        for path in paths:
            os.replace(part_of(path), path)
        sync_folder(target)
    except OSError as error:
        raise _refused(target, error, "Some of its files may be of an earlier export") from error


def _write_collection(path: Path, parts: Sequence[Path], times: list[float]) -> None:
    root = ElementTree.Element("VTKFile", type="Collection", version="0.1")
    collection = ElementTree.SubElement(root, "Collection")
    for part, time in zip(parts, times, strict=True):
        ElementTree.SubElement(collection, "DataSet", timestep=repr(time), part="0", file=part.name)
    ElementTree.indent(root)
    with open(path, "wb") as file:
        ElementTree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
        file.flush()
        os.fsync(file.fileno())
