"""fields.vtkhdf and exported files of graded grids: as heatsim and VTK read them, and across a resume."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from run_folders import gaussian, write_run

from heatsim.errors import StorageError
from heatsim.grid import Grid
from heatsim.storage import folder as run_folder
from heatsim.storage.export import export
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.field_writer import FieldWriter

_Z = (0.0, 0.001, 0.003, 0.01)
GRID = Grid((4, 3, 3), (0.4, 0.3, 0.01), (1.0, -2.0, 0.0), ((1.0, 1.1, 1.15, 1.2, 1.4), (), _Z))
TIMES = (0.0, 0.1, 1e3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", GRID, times=TIMES)


def reached(mesh) -> None:
    """Check that a mesh of PyVista has the planes of the grid."""
    for found, axis in zip((mesh.x, mesh.y, mesh.z), GRID.axes, strict=True):
        np.testing.assert_array_equal(found, axis.borders)


def test_the_file_gives_back_the_grid_and_parts_of_it(folder: Path) -> None:
    with FieldReader(folder / run_folder.FIELDS) as reader:
        assert reader.grid == GRID
        np.testing.assert_array_equal(reader.read_plane(1, 2, 2), gaussian(GRID, 0.1).astype(np.float32)[2])
    with FieldReader(folder / run_folder.FIELDS, ((1, 3), (0, 2), (1, 3))) as reader:
        assert reader.grid.borders == ((1.1, 1.15, 1.2), (), _Z[1:])
        np.testing.assert_array_equal(reader.read(0), gaussian(GRID, 0.0).astype(np.float32)[1:, :2, 1:3])


def test_vtk_and_pyvista_read_every_time(folder: Path) -> None:
    pyvista = pytest.importorskip("pyvista", reason="PyVista is not installed")
    from vtkmodules.vtkCommonCore import vtkVersion
    from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline

    if (vtkVersion.GetVTKMajorVersion(), vtkVersion.GetVTKMinorVersion()) < (9, 7):
        pytest.skip("VTK reads rectilinear grids in VTKHDF files from 9.7 on")
    path = folder / run_folder.FIELDS
    reached(pyvista.read(path))
    reader = pyvista.get_reader(path).reader
    reader.UpdateInformation()
    assert reader.GetOutputInformation(0).Get(vtkStreamingDemandDrivenPipeline.TIME_STEPS()) == TIMES
    for moment in (*TIMES, *reversed(TIMES)):
        reader.UpdateTimeStep(moment)
        mesh = pyvista.wrap(reader.GetOutput())
        reached(mesh)
        assert mesh.active_scalars_name == "temperature"
        values = np.asarray(mesh.cell_data["temperature"]).reshape(GRID.shape)
        np.testing.assert_array_equal(values, gaussian(GRID, moment).astype(np.float32))


def test_export_writes_rectilinear_grids(folder: Path) -> None:
    pyvista = pytest.importorskip("pyvista", reason="PyVista is not installed")
    paths = export(folder, "pvd")
    assert [path.name for path in paths] == [*(f"temperature_000{i}.vtr" for i in range(3)), "temperature.pvd"]
    mesh = pyvista.read(paths[1])
    reached(mesh)
    assert mesh.field_data["TimeValue"][0] == TIMES[1]
    reader = pyvista.PVDReader(paths[-1])
    reader.set_active_time_value(TIMES[2])
    values = np.asarray(reader.read()[0].cell_data["temperature"]).reshape(GRID.shape)
    np.testing.assert_array_equal(values, gaussian(GRID, TIMES[2]).astype(np.float32))


def test_a_resumed_run_needs_the_same_widths(tmp_path: Path) -> None:
    path = tmp_path / "fields.vtkhdf"
    with FieldWriter.create(path, GRID, "float64") as writer:
        writer.append(0.0, [gaussian(GRID, 0.0)])
    other = Grid(GRID.cells, GRID.size, GRID.origin, (GRID.borders[0], (), (0.0, 0.002, 0.003, 0.01)))
    with pytest.raises(StorageError, match="the run needs other widths of cells"):
        FieldWriter.reopen(path, other, "float64", 1)
    with pytest.raises(StorageError, match=r"\(x graded, z graded\), the run needs float64 on .*\(x graded\);"):
        FieldWriter.reopen(path, Grid(GRID.cells, GRID.size, GRID.origin, (GRID.borders[0], (), ())), "float64", 1)
    # With more times than the file has room for, it is written again.
    with FieldWriter.reopen(path, GRID, "float64", 1) as writer:
        for number in range(1, 5):
            writer.append(float(number), [gaussian(GRID, number)])
    with FieldReader(path) as reader:
        assert reader.grid == GRID
        np.testing.assert_array_equal(reader.read(4), gaussian(GRID, 4.0))


@pytest.mark.parametrize("places", [[0.0, 0.003, 0.001, 0.01], [0.0, np.nan, 0.003, 0.01], [0.0, 0.001, 0.003, 0.02]])
def test_planes_that_bound_no_cells_are_refused(folder: Path, places: list[float]) -> None:
    path = folder / run_folder.FIELDS
    with h5py.File(path, "r+") as file:
        file["VTKHDF/ZCoordinates"][:] = places
    with pytest.raises(StorageError, match=r"3 cells from 0\.0 to .* are no cells of 0\.01 m"):
        FieldReader(path)
