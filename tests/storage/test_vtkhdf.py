"""fields.vtkhdf: as VTK reads it, after a crash, and after a resume."""

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from heatsim.errors import FolderError, StorageError
from heatsim.grid import Grid
from heatsim.storage import field_reader, vtkhdf
from heatsim.storage.field_layout import Layout
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.field_writer import FieldWriter

GRID = Grid((5, 4, 3), (0.5, 0.2, 0.9), (1.0, -2.0, 0.25))
TIMES = (0.0, 0.1, 0.30000000000000004, 1e3)


def asymmetric(grid: Grid, time: float, dtype="float64"):
    """A temperature that differs between all cells, axes and times."""
    x, y, z = (grid.centres(axis) for axis in range(3))
    field = 300.0 + x[None, None, :] + 10.0 * y[None, :, None] ** 2 + 100.0 * z[:, None, None] + time
    return np.ascontiguousarray(field, dtype=dtype)


def write(path: Path, grid: Grid, times=TIMES, dtype="float64", slab=2):
    with FieldWriter.create(path, grid, dtype) as writer:
        for moment in times:
            field = asymmetric(grid, moment, dtype)
            writer.append(moment, (field[start : start + slab] for start in range(0, len(field), slab)))


def stored(path: Path) -> tuple[int, list[float], list[int], int]:
    with h5py.File(path, "r", locking=False) as file:
        steps = file["VTKHDF/Steps"]
        offsets = steps["CellDataOffsets/temperature"][:].tolist()
        fields = len(file["VTKHDF/CellData/temperature"])
        return int(steps.attrs["NSteps"]), steps["Values"][:].tolist(), offsets, fields


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cells", [(5, 4, 3), (1, 4, 3), (5, 1, 3), (5, 4, 1), (7, 1, 1), (1, 1, 1)])
def test_vtk_reads_every_time_at_the_right_places(tmp_path, cells, dtype):
    pytest.importorskip("vtkmodules", reason="VTK is not installed")
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline
    from vtkmodules.vtkFiltersCore import vtkCellCenters
    from vtkmodules.vtkIOHDF import vtkHDFReader

    grid = Grid(cells, GRID.size, GRID.origin)
    path = tmp_path / "fields.vtkhdf"
    write(path, grid, dtype=dtype)
    reader = vtkHDFReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    times = reader.GetOutputInformation(0).Get(vtkStreamingDemandDrivenPipeline.TIME_STEPS())
    assert times == TIMES
    for moment in (*TIMES, *reversed(TIMES)):
        reader.UpdateTimeStep(moment)
        image = reader.GetOutput()
        assert image.GetDimensions() == tuple(n + 1 for n in cells)
        assert image.GetBounds() == pytest.approx((1.0, 1.5, -2.0, -1.8, 0.25, 1.15))
        values = vtk_to_numpy(image.GetCellData().GetScalars())
        assert image.GetCellData().GetScalars().GetName() == "temperature"
        np.testing.assert_array_equal(values.reshape(grid.shape), asymmetric(grid, moment, dtype))
        centres = vtkCellCenters()
        centres.SetInputData(image)
        centres.Update()
        x, y, z = vtk_to_numpy(centres.GetOutput().GetPoints().GetData()).T.astype(np.float64)
        expected = 300.0 + x + 10.0 * y**2 + 100.0 * z + moment
        # VTK's centres are float32: the rounding of the centres and of the field, in K.
        np.testing.assert_allclose(values, expected, atol=1e-3)


def test_files_of_equal_structure_do_not_share_their_times(tmp_path):
    """Runs of a study write several at once; the structure is built once."""
    paths = [tmp_path / name for name in ("one.vtkhdf", "other.vtkhdf", "alone.vtkhdf")]
    writers = [FieldWriter.create(path, GRID, "float64", 4) for path in paths[:2]]
    for moment in TIMES:
        for shift, writer in enumerate(writers):
            if shift == 0 or moment < 1.0:
                writer.append(moment + shift, [asymmetric(GRID, moment + shift)])
    for writer in writers:
        writer.close()
    Layout.create.cache_clear()
    with FieldWriter.create(paths[2], GRID, "float64", 4) as writer:
        for moment in TIMES:
            writer.append(moment, [asymmetric(GRID, moment)])
    assert paths[0].read_bytes() == paths[2].read_bytes()
    with FieldReader(paths[1]) as reader:
        assert reader.times == pytest.approx([1.0, 1.1, 1.3])


def test_layout_is_the_one_of_vtkhdf_2_0(tmp_path):
    path = tmp_path / "fields.vtkhdf"
    write(path, GRID)
    with h5py.File(path, "r") as file:
        root = file["VTKHDF"]
        assert root.attrs["Version"].tolist() == [2, 0]
        assert root.attrs["WholeExtent"].tolist() == [0, 5, 0, 4, 0, 3]
        assert root.attrs["Direction"].tolist() == [1, 0, 0, 0, 1, 0, 0, 0, 1]
        kind = h5py.h5a.open(root.id, b"Type").get_type()
        assert not kind.is_variable_str()
        assert kind.get_cset() == h5py.h5t.CSET_ASCII
        assert root.attrs["Type"] == b"ImageData"
        assert root["CellData/temperature"].attrs["Attribute"] == b"Scalars"
        assert root["CellData/temperature"].attrs["units"] == "K"
        assert root["Steps/Values"].attrs["units"] == "s"
        assert root["CellData/temperature"].shape == (4, 3, 4, 5)
    assert path.read_bytes()[8] == 0, "HDF5's oldest superblock"
    assert stored(path) == (4, list(TIMES), [0, 1, 2, 3], 4)


def test_reader_gives_back_grid_times_planes_and_ranges(tmp_path, monkeypatch):
    monkeypatch.setattr(vtkhdf, "CHUNK_BYTES", 64)
    monkeypatch.setattr(field_reader, "SLAB_BYTES", 256)
    grid = Grid((3, 5, 7), (0.1, 0.2, 0.7), (0.1, 0.0, -1.0))
    path = tmp_path / "fields.vtkhdf"
    write(path, grid, slab=3)
    with FieldReader(path) as reader:
        assert reader.grid == grid
        assert reader.dtype == np.float64
        assert len(reader) == 4
        np.testing.assert_array_equal(reader.times, TIMES)
        for i, moment in enumerate(TIMES):
            field = asymmetric(grid, moment)
            np.testing.assert_array_equal(reader.read(i), field)
            np.testing.assert_array_equal(reader.read_plane(i, 0, 2), field[:, :, 2])
            np.testing.assert_array_equal(reader.read_plane(i, 1, 4), field[:, 4, :])
            np.testing.assert_array_equal(reader.read_plane(i, 2, 6), field[6])
            assert reader.range(i) == (field.min(), field.max())
        for i in (-1, 4):
            with pytest.raises(IndexError):
                reader.read(i)
        with pytest.raises(IndexError):
            reader.read_plane(0, 1, 5)


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (7, 5, 3), (512, 512, 512), (3, 2048, 2048), (1, 1, 5_000_000), (33, 1025, 4097)]
)
def test_chunks_hold_at_most_four_mebibytes_and_waste_little(shape):
    _, *chunk = vtkhdf._chunks(shape, 4)
    assert np.prod(chunk) * 4 <= 4 << 20
    pieces = [-(-n // length) for n, length in zip(shape, chunk, strict=True)]
    assert all((count - 1) * length < n for n, length, count in zip(shape, chunk, pieces, strict=True))
    wasted = np.prod([count * length for count, length in zip(pieces, chunk, strict=True)]) / np.prod(shape)
    assert wasted < 1.2


@pytest.mark.parametrize("expected", [0, 3, 6])
@pytest.mark.parametrize("keep", [0, 2, 4])
def test_reopening_keeps_the_first_times_only(tmp_path, keep, expected):
    path = tmp_path / "fields.vtkhdf"
    write(path, GRID)
    with FieldWriter.reopen(path, GRID, "float64", keep, expected) as writer:
        assert len(writer) == keep
        assert stored(path) == (keep, list(TIMES[:keep]), list(range(keep)), max(keep, expected))
    assert stored(path) == (keep, list(TIMES[:keep]), list(range(keep)), keep)
    with FieldWriter.reopen(path, GRID, "float64", keep, expected) as writer:
        for moment in TIMES[keep:]:
            writer.append(moment, [asymmetric(GRID, moment)])
    assert stored(path) == (4, list(TIMES), [0, 1, 2, 3], 4)
    with FieldReader(path) as reader:
        for i, moment in enumerate(TIMES):
            np.testing.assert_array_equal(reader.read(i), asymmetric(GRID, moment))


def test_field_data_beyond_the_counted_times_is_not_read_and_cut_off_on_reopening(tmp_path):
    path, left = tmp_path / "fields.vtkhdf", tmp_path / "left.vtkhdf"

    def interrupted():
        yield asymmetric(GRID, 5.0)[:2]
        shutil.copy(path, left)
        raise KeyboardInterrupt

    with FieldWriter.create(path, GRID, "float64", expected=5) as writer:
        writer.append(0.0, [asymmetric(GRID, 0.0)])
        writer.append(1.0, [asymmetric(GRID, 1.0)])
        with pytest.raises(KeyboardInterrupt):
            writer.append(5.0, interrupted())
    assert stored(path) == (2, [0.0, 1.0], [0, 1], 2)
    assert stored(left) == (2, [0.0, 1.0], [0, 1], 5)
    with FieldReader(left) as reader:
        assert reader.times.tolist() == [0.0, 1.0]
        np.testing.assert_array_equal(reader.read(1), asymmetric(GRID, 1.0))
    FieldWriter.reopen(left, GRID, "float64", 1).close()
    assert stored(left) == (1, [0.0], [0], 1)


def test_room_set_aside_and_not_used_is_given_back(tmp_path):
    path = tmp_path / "fields.vtkhdf"
    grid = Grid((32, 32, 32), (1.0, 1.0, 1.0))
    with FieldWriter.create(path, grid, "float32", expected=50) as writer:
        assert path.stat().st_size > 50 * 4 * 32**3
        writer.append(0.0, [np.ones(grid.shape, np.float32)])
    assert path.stat().st_size < 2 * 4 * 32**3


def test_reopening_another_run_is_refused(tmp_path):
    path = tmp_path / "fields.vtkhdf"
    with pytest.raises(StorageError, match=r"missing.*2 times"):
        FieldWriter.reopen(path, GRID, "float64", 2)
    write(path, GRID)
    with pytest.raises(StorageError, match=r"holds 4 times, the checkpoint counts 5"):
        FieldWriter.reopen(path, GRID, "float64", 5)
    with pytest.raises(StorageError, match="needs float32"):
        FieldWriter.reopen(path, GRID, "float32", 2)
    with pytest.raises(StorageError, match="the run needs"):
        FieldWriter.reopen(path, Grid((5, 4, 3), (0.5, 0.2, 0.8)), "float64", 2)
    assert stored(path)[0] == 4


def test_slabs_that_do_not_make_up_the_field_are_refused(tmp_path):
    field = asymmetric(GRID, 0.0)
    with FieldWriter.create(tmp_path / "fields.vtkhdf", GRID, "float64") as writer:
        for planes in ([field[:2]], [field, field[:1]], [field[:, :3]], [field[0]]):
            with pytest.raises(ValueError, match="plane"):
                writer.append(0.0, planes)
        writer.append(0.0, [field])
    assert stored(tmp_path / "fields.vtkhdf") == (1, [0.0], [0], 1)


def test_only_floating_point_fields_are_written(tmp_path):
    with pytest.raises(ValueError, match="float32 and float64"):
        FieldWriter.create(tmp_path / "fields.vtkhdf", GRID, "int32")


def test_files_that_are_no_fields_get_a_message(tmp_path):
    path = tmp_path / "fields.vtkhdf"
    with pytest.raises(FolderError, match="not there"):
        FieldReader(path)
    path.write_bytes(b"not HDF5")
    with pytest.raises(StorageError, match="could not be read"):
        FieldReader(path)
    with h5py.File(path, "w") as file:
        file.create_group("VTKHDF")
    with pytest.raises(StorageError, match="could not be read"):
        FieldReader(path)
    write(path, GRID)
    with h5py.File(path, "r+") as file:
        file["VTKHDF/CellData/temperature"].resize(3, axis=0)
    with pytest.raises(StorageError, match="4 times"):
        FieldReader(path)


def test_a_running_writer_can_be_watched(tmp_path):
    path = tmp_path / "fields.vtkhdf"
    with FieldWriter.create(path, GRID, "float64") as writer:
        writer.append(0.0, [asymmetric(GRID, 0.0)])
        writer.flush()
        with FieldReader(path) as reader:
            np.testing.assert_array_equal(reader.read(0), asymmetric(GRID, 0.0))


WRITE_ON = """
import sys, time
from pathlib import Path
import numpy as np
from heatsim.grid import Grid
from heatsim.storage import vtkhdf
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.field_writer import FieldWriter
vtkhdf.CHUNK_BYTES = 512  # many chunks: a large index
grid = Grid((8, 8, 40), (1.0, 1.0, 1.0))
path = Path(sys.argv[1])
if path.exists():
    with FieldReader(path) as reader:
        keep = max(0, len(reader) - 2)
    writer = FieldWriter.reopen(path, grid, "float32", keep, expected=2000)
else:
    writer = FieldWriter.create(path, grid, "float32", expected=2000)
print("started", flush=True)
while len(writer) < 2000:
    i = len(writer)
    writer.append(float(i), [np.full((8, 8, 8), i, np.float32)] * 5)
time.sleep(60)
"""


def test_a_writer_killed_at_any_moment_leaves_a_file_that_opens(tmp_path):
    path = tmp_path / "fields.vtkhdf"
    moments = random.Random(2)
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", WRITE_ON, str(path)], stdout=subprocess.PIPE)
        with process:
            assert process.stdout.readline() == b"started\n"
            time.sleep(0.01 + 0.2 * moments.random())
            process.send_signal(signal.SIGKILL)
        with FieldReader(path) as reader:
            assert reader.times.tolist() == list(range(len(reader)))
            for i in range(len(reader)):
                assert reader.range(i) == (i, i)
            assert len(reader) > 0


FILL_THE_DISK = """
import resource, sys
from pathlib import Path
import numpy as np
from heatsim.errors import StorageError
from heatsim.grid import Grid
from heatsim.storage.field_writer import FieldWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    grid, expected = Grid((10, 20, 50), (1.0, 1.0, 1.0)), int(sys.argv[2])
    with FieldWriter.create(Path(sys.argv[1]), grid, "float64", expected) as writer:
        while True:
            writer.append(float(len(writer)), [np.full((50, 20, 10), len(writer), np.float64)])
except StorageError as error:
    print(error)
"""


def test_a_full_disk_gives_advice_and_harms_nothing_that_was_there(tmp_path):
    path = tmp_path / "fields.vtkhdf"
    done = subprocess.run(
        [sys.executable, "-c", FILL_THE_DISK, str(path), "5"], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert str(path) in done.stdout
    assert "raise the limit on the size of files" in done.stdout
    assert f"heatsim resume {tmp_path}" in done.stdout
    with FieldReader(path) as reader:
        assert len(reader) >= 5
        for i in range(len(reader)):
            assert reader.range(i) == (i, i)
        kept = len(reader)
    FieldWriter.reopen(path, Grid((10, 20, 50), (1.0, 1.0, 1.0)), "float64", kept).close()


def test_a_disk_too_small_for_all_the_times_is_refused_at_the_start(tmp_path):
    path = tmp_path / "fields.vtkhdf"
    done = subprocess.run(
        [sys.executable, "-c", FILL_THE_DISK, str(path), "20"], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "raise the limit on the size of files" in done.stdout
    assert not list(tmp_path.iterdir())


def test_vtk_finds_the_materials_beside_every_time(tmp_path):
    pytest.importorskip("vtkmodules", reason="VTK is not installed")
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOHDF import vtkHDFReader

    path, materials = tmp_path / "fields.vtkhdf", (np.arange(60) * 7 % 3).astype(np.uint8).reshape(GRID.shape)
    with FieldWriter.create(path, GRID, "float32", materials=("copper", "void", "ice")) as writer:
        writer.write_materials([materials[:2], materials[2:]])
        for moment in TIMES:
            writer.append(moment, [asymmetric(GRID, moment)])
    with FieldWriter.reopen(path, GRID, "float32", 2) as writer:
        for moment in TIMES[2:]:
            writer.append(moment, [asymmetric(GRID, moment)])
    reader = vtkHDFReader()
    reader.SetFileName(str(path))
    for moment in (TIMES[3], TIMES[0], TIMES[2]):
        reader.UpdateTimeStep(moment)
        cells = reader.GetOutput().GetCellData()
        assert cells.GetScalars().GetName() == "temperature"
        np.testing.assert_array_equal(vtk_to_numpy(cells.GetArray("material")).reshape(GRID.shape), materials)
    with FieldReader(path) as reader:
        assert reader.materials == ("copper", "void", "ice")
        np.testing.assert_array_equal(reader.read_materials(slice(1, 3)), materials[1:])
        np.testing.assert_array_equal(reader.conducting(slice(0, 3)), materials != 1)
        seen = asymmetric(GRID, TIMES[1], "float32")[materials != 1]
        assert reader.range(1) == (seen.min(), seen.max())


def test_materials_have_the_shape_of_the_grid(tmp_path):
    with FieldWriter.create(tmp_path / "fields.vtkhdf", GRID, "float32", materials=("a", "b")) as writer:
        with pytest.raises(ValueError, match="slab of shape"):
            writer.write_materials([np.zeros((3, 4, 4), dtype=np.uint8)])
        with pytest.raises(ValueError, match="2 planes for a field of 3"):
            writer.write_materials([np.zeros((2, 4, 5), dtype=np.uint8)])


def test_a_process_ends_well_while_objects_of_hdf5_are_left():
    """HDF5 itself would close the structure of a file too late, if something still refers to it."""
    program = (
        "import ctypes, numpy\nfrom heatsim.grid import Grid\nfrom heatsim.storage.field_layout import Layout\n"
        "layout = Layout.create(Grid((2, 2, 2), (1.0, 1.0, 1.0)), numpy.dtype('f4'), 1, False, ())\n"
        "ctypes.pythonapi.Py_IncRef(ctypes.py_object(layout))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60.0)
    assert (done.returncode, done.stderr) == (0, "")
