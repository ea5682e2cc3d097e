"""checkpoint.h5: exact to the bit, damage is detected, and there is always a good one."""

import random
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

from heatsim.errors import StorageError
from heatsim.storage import checkpoint as module
from heatsim.storage.checkpoint import Checkpoint, Pieces, read_last_good, write

VALUES = {"step": 2**53 + 1, "time": 0.1 + 0.2, "tiny": 5e-324, "kernel": "tiled °C\n", "energy": True, "off": False}


def example(step: int = 7) -> Checkpoint:
    random_numbers = np.random.default_rng(step)
    arrays = {
        "T": random_numbers.standard_normal((3, 4, 5)).astype(np.float32),
        "heat x_min": random_numbers.standard_normal((4, 5)),
        "rows": random_numbers.integers(-(2**62), 2**62, 6),
        "scalar": np.array(-0.0),
        "odd": np.array([np.nan, np.inf, -np.inf, 5e-324]),
        "empty": np.zeros((0, 3)),
    }
    return Checkpoint(arrays, {**VALUES, "step": step})


def same(a: Checkpoint, b: Checkpoint) -> bool:
    def bits(checkpoint):
        return {name: (x.dtype, x.shape, np.ascontiguousarray(x).tobytes()) for name, x in checkpoint.arrays.items()}

    def kinds(checkpoint):
        return {name: (type(value), repr(value)) for name, value in checkpoint.values.items()}

    return bits(a) == bits(b) and kinds(a) == kinds(b)


def test_comes_back_to_the_bit(tmp_path):
    checkpoint = Checkpoint(example().arrays, VALUES)
    write(tmp_path, checkpoint)
    found, warnings = read_last_good(tmp_path)
    assert same(found, checkpoint)
    assert warnings == []
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.h5"]


def test_views_that_are_not_contiguous_come_back_too(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SLAB_BYTES", 100)
    whole = np.arange(6 * 7 * 8, dtype=np.float64).reshape(6, 7, 8)
    checkpoint = Checkpoint({"inner": whole[1:-1, 1:-1, 1:-1], "turned": whole.T, "column": whole[:, 0, 0]}, {})
    write(tmp_path, checkpoint)
    found, _ = read_last_good(tmp_path)
    assert same(found, checkpoint)


def test_large_arrays_come_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SLAB_BYTES", 100)
    whole = example().arrays["T"]
    large = {
        "T": Pieces(whole.shape, whole.dtype, lambda: (whole[z : z + 1] for z in range(3))),
        "turned": Pieces(whole.T.shape, "float32", lambda: [whole.T]),
    }
    write(tmp_path, Checkpoint({"T before": whole}, VALUES), large)
    found, warnings = read_last_good(tmp_path)
    assert same(found, Checkpoint({"T before": whole, "T": whole, "turned": whole.T}, VALUES))
    assert warnings == []


def test_does_not_count_before_what_it_relies_on_is_on_the_disk(tmp_path):
    """This holds for the first one too, which is valid under another name for a moment."""
    seen = []
    for step in (1, 2):
        pieces = {"large": Pieces((5,), "float64", lambda: [np.arange(5.0)])}
        write(tmp_path, example(step), pieces, lambda: seen.append(read_last_good(tmp_path)[0]))
    assert seen[0] is None
    assert seen[1].values["step"] == 1


def test_what_cannot_be_brought_to_the_disk_leaves_the_checkpoints_as_they_are(tmp_path):
    def fail():
        raise StorageError("no room")

    write(tmp_path, example(1))
    with pytest.raises(StorageError, match="no room"):
        write(tmp_path, example(2), before=fail)
    assert same(read_last_good(tmp_path)[0], example(1))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.h5"]


def test_is_an_ordinary_hdf5_file(tmp_path):
    write(tmp_path, example())
    with h5py.File(tmp_path / "checkpoint.h5", "r") as file:
        assert file["arrays/T"].shape == (3, 4, 5)


def test_a_folder_without_checkpoints_has_none(tmp_path):
    assert read_last_good(tmp_path) == (None, [])
    (tmp_path / "checkpoint.h5.part").write_bytes(b"half a first checkpoint")
    assert read_last_good(tmp_path) == (None, [])


def test_the_one_before_is_kept_and_used_when_the_newest_is_damaged(tmp_path):
    for step in (1, 2, 3):
        write(tmp_path, example(step))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.h5", "checkpoint.previous.h5"]
    newest = tmp_path / "checkpoint.h5"
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    found, warnings = read_last_good(tmp_path)
    assert same(found, example(2))
    assert warnings == [f"{newest} is damaged (checksum differs); using checkpoint.previous.h5"]

    newest.unlink()
    found, warnings = read_last_good(tmp_path)
    assert same(found, example(2))
    assert warnings == [f"{newest} is missing; using checkpoint.previous.h5"]

    (tmp_path / "checkpoint.previous.h5").write_bytes(b"")
    newest.write_bytes(content)
    with pytest.raises(StorageError, match=r"checkpoint\.h5 is damaged.*previous\.h5 is damaged.*start again"):
        read_last_good(tmp_path)


def test_between_the_two_renames_the_part_is_used(tmp_path):
    """The first rename may even have replaced the good previous file by a damaged one."""
    for step in (1, 2):
        write(tmp_path, example(step))
    (tmp_path / "checkpoint.h5").rename(tmp_path / "checkpoint.h5.part")
    (tmp_path / "checkpoint.previous.h5").write_bytes(b"damaged")
    found, warnings = read_last_good(tmp_path)
    assert same(found, example(2))
    assert warnings == [f"{tmp_path / 'checkpoint.h5'} is missing; using checkpoint.h5.part"]

    write(tmp_path, example(3))
    (tmp_path / "checkpoint.h5").unlink()
    assert same(read_last_good(tmp_path)[0], example(2)), "the next write kept what was the part as the previous one"


def test_every_flipped_byte_and_every_cut_is_noticed_or_harmless(tmp_path):
    write(tmp_path, example(1))
    write(tmp_path, example(2))
    newest = tmp_path / "checkpoint.h5"
    content = newest.read_bytes()
    numbers = random.Random(0)
    places = {*range(0, 560, 7), *(numbers.randrange(len(content)) for _ in range(250))}
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= numbers.randrange(1, 256)
        newest.write_bytes(damaged)
        found, warnings = read_last_good(tmp_path)
        assert same(found, example(1)), place
        assert "checksum differs" in warnings[0]
    for length in {0, 1, 511, 512, 513, len(content) - 1, *(numbers.randrange(len(content)) for _ in range(40))}:
        newest.write_bytes(content[:length])
        found, _ = read_last_good(tmp_path)
        assert same(found, example(1)), length
    newest.write_bytes(content + b"\0")
    assert same(read_last_good(tmp_path)[0], example(1))
    newest.write_bytes(content)
    assert same(read_last_good(tmp_path)[0], example(2))


def test_only_plain_values_are_kept(tmp_path):
    with pytest.raises(TypeError, match="'step' is a list"):
        write(tmp_path, Checkpoint({}, {"step": [1]}))


def test_a_folder_that_is_gone_gives_advice(tmp_path):
    """The run cannot be resumed."""
    with pytest.raises(StorageError, match=r"checkpoint\.h5: could not be written: .*folder was removed") as caught:
        write(tmp_path / "gone", example())
    assert "heatsim resume" not in str(caught.value)


@pytest.mark.parametrize("name", ["checkpoint.previous.h5", "checkpoint.h5.part"])
def test_a_folder_in_the_way_costs_no_checkpoint(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "somebody's").touch()
    for step in (1, 2, 3):
        write(tmp_path, example(step))
        found, warnings = read_last_good(tmp_path)
        assert same(found, example(step))
        assert warnings == []
    assert (tmp_path / name / "somebody's").exists()


WRITE_FOREVER = """
import sys
from pathlib import Path
import numpy as np
from heatsim.storage.checkpoint import Checkpoint, read_last_good, write
folder = Path(sys.argv[1])
found, _ = read_last_good(folder)
step = found.values["step"] if found else 0
print("started", flush=True)
while True:
    step += 1
    write(folder, Checkpoint({"T": np.full((30, 40, 50), step, np.float64)}, {"step": step}))
"""


def test_a_writer_killed_at_any_moment_leaves_a_good_one(tmp_path):
    moments = random.Random(3)
    steps = [0]
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", WRITE_FOREVER, str(tmp_path)], stdout=subprocess.PIPE)
        with process:
            assert process.stdout.readline() == b"started\n"
            if steps == [0]:
                while not (tmp_path / "checkpoint.h5").exists():
                    time.sleep(0.005)
            time.sleep(0.1 * moments.random())
            process.send_signal(signal.SIGKILL)
        found, _ = read_last_good(tmp_path)
        steps.append(found.values["step"])
        assert (found.arrays["T"] == steps[-1]).all()
    assert steps == sorted(steps)


FILL_THE_DISK = """
import resource, sys
from pathlib import Path
import numpy as np
from heatsim.errors import StorageError
from heatsim.storage import checkpoint, checkpoint_draft
if sys.argv[2] == "unreserved":
    checkpoint_draft.reserve = lambda *_: None
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    checkpoint.write(Path(sys.argv[1]), checkpoint.Checkpoint({"T": np.ones(100_000)}, {"step": 9}))
except StorageError as error:
    print(error)
"""


@pytest.mark.parametrize("mode", ["reserved", "unreserved"])
def test_a_full_disk_gives_advice_and_keeps_the_checkpoints(tmp_path, mode):
    for step in (1, 2):
        write(tmp_path, example(step))
    done = subprocess.run(
        [sys.executable, "-c", FILL_THE_DISK, str(tmp_path), mode], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "raise the limit on the size of files" in done.stdout
    assert f"heatsim resume {tmp_path}" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.h5", "checkpoint.previous.h5"]
    found, warnings = read_last_good(tmp_path)
    assert same(found, example(2))
    assert warnings == []
