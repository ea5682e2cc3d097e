from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from run_folders import gaussian, write_run

from heatsim.cli import main
from heatsim.errors import FolderError, InputError
from heatsim.grid import Grid
from heatsim.storage import folder as run_folder
from heatsim.storage import manifest
from heatsim.storage.export import export
from heatsim.storage.field_writer import FieldWriter
from heatsim.storage.preparation import prepare

pytest.importorskip("pyvista", reason="PyVista is not installed")

GRID = Grid((5, 4, 3), (0.1, 0.06, 0.03), (0.5, 0.0, -0.01))
TIMES = [0.0, 0.1 + 0.2, 1.0 / 3.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cells", [(5, 4, 3), (5, 1, 3), (1, 1, 1)])
def test_vtk_reads_back_the_same_cells(tmp_path: Path, dtype: type, cells: tuple[int, int, int]) -> None:
    import pyvista

    grid = Grid(cells, GRID.size, GRID.origin)
    folder = write_run(tmp_path / "run", grid, times=TIMES, dtype=dtype)
    paths = export(folder, "vti")
    assert [path.name for path in paths] == ["temperature_0000.vti", "temperature_0001.vti", "temperature_0002.vti"]
    for path, time in zip(paths, TIMES, strict=True):
        mesh = pyvista.read(path)
        assert mesh.dimensions == tuple(n + 1 for n in cells)
        np.testing.assert_allclose(mesh.bounds[::2], grid.origin)
        np.testing.assert_allclose(mesh.spacing, grid.spacing)
        values = mesh.cell_data["temperature"]
        assert values.dtype == dtype
        np.testing.assert_array_equal(values.reshape(grid.shape), gaussian(grid, time).astype(dtype))
        assert mesh.field_data["TimeValue"][0] == time


def test_vtk_reads_the_series_at_its_exact_times(tmp_path: Path) -> None:
    import pyvista

    folder = write_run(tmp_path / "run", GRID, times=TIMES)
    paths = export(folder, "pvd")
    assert paths[-1] == folder / run_folder.EXPORT / "temperature.pvd"
    listed = [element.attrib["timestep"] for element in ElementTree.parse(paths[-1]).iter("DataSet")]
    assert listed == [repr(time) for time in TIMES]
    reader = pyvista.PVDReader(paths[-1])
    assert reader.time_values == TIMES
    reader.set_active_time_value(TIMES[2])
    values = reader.read()[0].cell_data["temperature"]
    np.testing.assert_array_equal(values.reshape(GRID.shape), gaussian(GRID, TIMES[2]).astype(np.float32))


def test_an_earlier_export_is_replaced_and_goes_with_the_run(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", GRID, times=TIMES)
    target = folder / run_folder.EXPORT
    with manifest.replacing(folder, ["export/temperature_0099.vti"], "export"):
        target.mkdir()
        (target / "temperature_0099.vti").write_text("from before")
    export(folder, "pvd")
    assert sorted(path.name for path in target.iterdir()) == [
        "temperature.pvd",
        *(f"temperature_{index:04d}.vti" for index in range(3)),
    ]
    prepare(folder, overwrite=False)
    assert [path.name for path in folder.iterdir()] == [manifest.NAME]


def test_an_exported_file_that_the_user_changed_is_kept(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", GRID, times=TIMES)
    mine = export(folder, "pvd")[1]
    mine.write_text("mine")
    before = {path: path.read_bytes() for path in mine.parent.iterdir()}
    with pytest.raises(FolderError, match=r"export/temperature_0001\.vti is not as heatsim wrote it, and was kept"):
        export(folder, "vti")
    assert {path: path.read_bytes() for path in mine.parent.iterdir()} == before


def test_what_cannot_be_exported_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"scenario\.toml is missing"):
        export(tmp_path, "vti")
    folder = write_run(tmp_path / "run", GRID)
    with pytest.raises(InputError, match=r"'stl' is not known; allowed are vti and pvd"):
        export(folder, "stl")
    (folder / run_folder.FIELDS).unlink()
    with pytest.raises(FolderError, match=r"fields\.vtkhdf"):
        export(folder, "vti")


def test_heat_flux_and_materials_go_with_the_temperature(tmp_path: Path) -> None:
    import pyvista

    folder = write_run(tmp_path / "run", GRID, times=[0.0])
    flux = np.random.default_rng(5).normal(size=(*GRID.shape, 3)).astype(np.float32)
    materials = (np.arange(60) % 3).astype(np.uint8).reshape(GRID.shape)
    with FieldWriter.create(folder / run_folder.FIELDS, GRID, "float32", 0, True, ("void", "iron", "ice")) as writer:
        writer.write_materials([materials])
        writer.append(0.0, [gaussian(GRID, 0.0)], [flux])
    (path,) = export(folder, "vti")
    mesh = pyvista.read(path)
    np.testing.assert_array_equal(mesh.cell_data["heat_flux"].reshape(flux.shape), flux)
    np.testing.assert_array_equal(mesh.cell_data["material"].reshape(GRID.shape), materials)
    assert mesh.active_scalars_name == "temperature"


@pytest.mark.parametrize("most", [2500, 4000])
def test_a_full_disk_leaves_the_earlier_export_as_it_was(
    tmp_path: Path, most: int, capfd: pytest.CaptureFixture[str]
) -> None:
    resource = pytest.importorskip("resource", reason="no limits on this system")
    folder = write_run(tmp_path / "run", Grid((16, 12, 10), GRID.size, GRID.origin), times=TIMES)
    command = ["export", str(folder)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def on_a_full_disk() -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        try:
            return main(command)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert on_a_full_disk() == 1
    assert not list((folder / run_folder.EXPORT).iterdir())
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"heatsim: {folder / run_folder.EXPORT}: could not be written: ")
    assert err.count("\n") == 1

    assert main(command) == 0
    whole = {path: path.read_bytes() for path in (folder / run_folder.EXPORT).iterdir()}
    assert len(whole) == 4
    assert on_a_full_disk() == 1
    assert {path: path.read_bytes() for path in (folder / run_folder.EXPORT).iterdir()} == whole


def test_files_that_cannot_be_replaced_may_be_of_two_exports(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(tmp_path / "run", GRID, times=TIMES)

    def refuse(source: Path, target: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("heatsim.storage.export.os.replace", refuse)
    assert main(["export", str(folder)]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "and export again. Some of its files may be of an earlier export\n" in err
