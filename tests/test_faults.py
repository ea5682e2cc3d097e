"""Every call that changes a file fails once, and every byte of a half-done run may be damaged: nothing is lost.

The way SQLite is tested: a run in which call number n fails, for each n and in five ways, is resumed on a good disk. It
has to come to the same bits. A small share is done each time, all of it with HEATSIM_SLOW=1.
"""

import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
from covering import SLOW
from faulty_disk import MODES, Ended, FaultyDisk

from heatsim.cli import main
from heatsim.storage import folder, system
from heatsim.storage.field_reader import FieldReader

PLAIN = """
title = "A rod"

[domain]
size = [0.06, 0.01, 0.01]
cells = [6, 1, 1]

[material]
conductivity = 20.0
density = 2000.0
specific_heat = 500.0

[initial]
temperature = { file = "start.npy" }

[boundaries]
x_min = { type = "temperature", value = "300 + 20*sin(t)" }
x_max = { type = "convection", coefficient = 100.0, ambient = 280.0 }

[time]
end = 4.0
method = "euler"

[solver]
device = "cpu"
kernel = "numpy"

[output]
every = 2.0
probe_every = 1.0
checkpoint_wall = 1e-9
figures = false

[[probes]]
name = "inside"
point = [0.031, 0.005, 0.005]
"""

COMPOSITE = """
title = "A rod of two materials with void beside it"

[domain]
size = [0.06, 0.02, 0.01]
cells = [6, 2, 1]
material = "steel"

[materials.steel]
conductivity = 20.0
density = 2000.0
specific_heat = 500.0

[materials.wax]
conductivity = 10.0
density = 900.0
specific_heat = 2100.0
latent_heat = "20 kJ/kg"
solidus = 305.0
liquidus = 315.0

[[regions]]
name = "inside"
labels = { file = "labels.npy", materials = { "1" = "wax", "2" = "void" } }

[[contacts]]
between = ["steel", "wax"]
resistance = 1e-4

[[sources]]
region = "inside"
power = 1.0
during = [0.0, 2.0]

[initial]
temperature = 310.0

[boundaries]
x_min = { type = "temperature", value = 330.0 }
void = { type = "convection", coefficient = 50.0, ambient = 290.0 }
default = { type = "insulated" }

[time]
method = "euler"
end = 4.0
stop_below = 1e-9

[solver]
device = "cpu"
kernel = "numpy"

[output]
every = 2.0
probe_every = 1.0
checkpoint_wall = 1e-9
heat_flux = true
figures = false

[[probes]]
name = "wax"
point = [0.031, 0.005, 0.005]
"""
STEADY = """
[domain]
size = [0.06, 0.01, 0.01]
cells = [6, 1, 1]

[material]
conductivity = 20.0
density = 2000.0
specific_heat = 500.0

[boundaries]
x_min = { type = "temperature", value = 330.0 }
x_max = { type = "convection", coefficient = 100.0, ambient = 280.0 }

[time]
method = "steady"

[solver]
device = "cpu"

[output]
figures = false

[[probes]]
name = "inside"
point = [0.031, 0.005, 0.005]
"""
TEXTS = {"plain": PLAIN, "composite": COMPOSITE}
CALLS = 2  # in each mode, of some hundred
PLAIN_FIRST = ("plain", "composite")


def each_mode(names: Sequence[str]) -> list[tuple[str, str]]:
    """Each mode with one of the scenarios in turn; if slow, with both."""
    return [(mode, name) for i, mode in enumerate(MODES) for name in (names if SLOW else names[i % 2 : i % 2 + 1])]


DAMAGES = 1000 if SLOW else 20


class Case:
    """A scenario, how it ends on a good disk, and heatsim's commands on a disk of any kind."""

    def __init__(self, at: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.at, self.capsys = at, capsys
        np.save(at / "start.npy", np.linspace(300.0, 350.0, 6).reshape(1, 1, 6))
        np.save(at / "labels.npy", np.array([[[0, 0, 1, 1, 0, 0], [0, 0, 1, 2, 2, 0]]], dtype=np.uint8))
        self.scenario = runs.write(at, {**TEXTS, "steady": STEADY}[name])
        self.parts = at / "parts"
        code, err, calls = self.on(FaultyDisk(self.stash()), "run", self.scenario)
        assert (code, err) == (0, "")
        self.calls = calls
        self.whole = outcome(self.parts)

    def stash(self) -> Path:
        path = self.at / "stash"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def on(self, disk: FaultyDisk, *arguments: object) -> tuple[int | None, str, int]:
        """Exit code (None: the process ended), stderr and number of changes of a command on a disk."""
        words = [str(argument) for argument in arguments]
        words += ["--output", str(self.parts)] if words[0] == "run" else []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(system, "calls", disk)
            try:
                code = main([*words, "--quiet"])
            except Ended:
                code = None
            finally:
                disk.close()
        return code, self.capsys.readouterr().err, disk.count

    def interrupt(self, step: int) -> None:
        """Begin the run and interrupt it after a step."""
        with pytest.MonkeyPatch.context() as patch:
            runs.after_step(patch, step, runs.interrupt)
            assert self.on(FaultyDisk(self.stash()), "run", self.scenario)[0] == 130

    def put(self, files: dict[str, bytes]) -> None:
        """Make these the files of the run."""
        shutil.rmtree(self.parts)
        for name, content in files.items():
            (self.parts / name).parent.mkdir(parents=True, exist_ok=True)
            (self.parts / name).write_bytes(content)

    def go_on(self) -> tuple[int | None, str]:
        """What the user does then: resume, or run what has not begun."""
        command = ("resume", self.parts) if (self.parts / folder.SCENARIO).is_file() else ("run", self.scenario)
        code, err, _ = self.on(FaultyDisk(self.stash()), *command)
        return code, err


def outcome(at: Path) -> dict[str, Any]:
    """All that a run found, without its title."""
    if not (at / folder.CHECKPOINT).exists():  # a steady state
        return {"fields": fields_of(at), "tables": {path.name: path.read_bytes() for path in at.glob("*.csv")}}
    found = runs.results(at)
    found["summary"].pop("title")
    return found


def fields_of(at: Path) -> dict[float, bytes]:
    with FieldReader(at / folder.FIELDS) as reader:
        return {float(time): reader.read(i).tobytes() for i, time in enumerate(reader.times)}


def contents(at: Path) -> dict[str, bytes]:
    return {path.relative_to(at).as_posix(): path.read_bytes() for path in at.rglob("*") if path.is_file()}


@contextmanager
def deterministic() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        runs.write_at_once(patch)
        runs.step_by_step(patch)
        # A busy machine would be told that writing takes long.
        patch.setattr("heatsim.run.timing.OBSERVING_WORTH_A_WARNING", inf)
        yield


def assert_one_message(code: int | None, err: str) -> None:
    assert code in (1, 2)
    assert err.startswith("heatsim: ")
    assert "Traceback" not in err
    assert err.count("heatsim: ") - err.count("heatsim: warning: ") == 1, err


@pytest.mark.parametrize(("mode", "name"), each_mode(PLAIN_FIRST))
def test_a_run_whose_disk_fails_at_any_call_can_be_finished_to_the_same_bits(
    tmp_path: Path, name: str, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with deterministic():
        case = Case(tmp_path, name, capsys)
        for at in share(case.calls, f"{name} {mode}"):
            shutil.rmtree(case.parts)
            fail_and_go_on(case, FaultyDisk(case.stash(), mode, at, seed=at), "run", case.scenario)


@pytest.mark.quick("full-composite", "torn-plain", "error-plain")
@pytest.mark.parametrize(("mode", "name"), each_mode(PLAIN_FIRST[::-1]))
def test_a_resumed_run_whose_disk_fails_at_any_call_can_be_finished_to_the_same_bits(
    tmp_path: Path, name: str, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its files are ahead of its checkpoint: they have rows and a field that it does not count."""
    with deterministic():
        case = Case(tmp_path, name, capsys)
        case.interrupt(1)
        early = {file: content for file, content in contents(case.parts).items() if file.startswith("checkpoint")}
        shutil.rmtree(case.parts)
        case.interrupt(3)
        half = {**contents(case.parts), **early}
        case.put(half)
        code, _, calls = case.on(FaultyDisk(case.stash()), "resume", case.parts)
        assert code == 0
        for at in share(calls, f"{name} {mode} resumed"):
            case.put(half)
            fail_and_go_on(case, FaultyDisk(case.stash(), mode, at, seed=at), "resume", case.parts)


def test_a_steady_state_whose_power_fails_at_its_end_can_be_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once summary.json says that it is complete, its tables are on the disk."""
    with deterministic():
        case = Case(tmp_path, "steady", capsys)
        for at in range(case.calls - 7, case.calls + 1):
            shutil.rmtree(case.parts)
            fail_and_go_on(case, FaultyDisk(case.stash(), "power", at, seed=at), "run", case.scenario)


def share(calls: int, seed: str) -> Sequence[int]:
    """The numbers of the calls that are tried: all of them or a few."""
    numbers = range(1, calls + 1)
    return numbers if SLOW else sorted(random.Random(seed).sample(numbers, CALLS))


def fail_and_go_on(case: Case, disk: FaultyDisk, *command: object) -> None:
    """Have a command fail on a disk; then do what the user does, on a good disk, and see that nothing is lost."""
    code, err, _ = case.on(disk, *command)
    where = f"{disk.mode} at call {disk.at}: {disk.log[disk.at - 1]}"
    if disk.mode in ("killed", "torn", "power"):
        assert code is None, where
    elif code != 0:
        assert_one_message(code, err)
        if "heatsim resume" in err:
            assert (case.parts / folder.SCENARIO).is_file(), where
    if (case.parts / folder.FIELDS).is_file():
        found = fields_of(case.parts)
        assert found.items() <= case.whole["fields"].items(), where
    if code != 0:
        code, err = case.go_on()
        assert code == 0, f"{where}: {err}"
        assert all(line.startswith("heatsim: warning: ") for line in err.splitlines()), where
    assert outcome(case.parts) == case.whole, where
    assert not list(case.parts.glob("*.part*")), where


@pytest.mark.quick("composite")
@pytest.mark.parametrize("name", TEXTS)
def test_a_damaged_byte_in_any_file_of_a_half_done_run_is_refused_or_changes_no_bit(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with deterministic():
        case = Case(tmp_path, name, capsys)
        shutil.rmtree(case.parts)
        case.interrupt(3)
        good = contents(case.parts)
        assert {folder.FIELDS, folder.CHECKPOINT, folder.PREVIOUS, folder.PROBES, folder.ENERGY} <= {*good}
        choice = random.Random(name)
        refused = 0
        for number in range(DAMAGES // len(TEXTS)):
            damaged = sorted(good)[number % len(good)]
            place = choice.randrange(len(good[damaged]))
            content = bytearray(good[damaged])
            content[place] ^= choice.randrange(1, 256)
            case.put({**good, damaged: bytes(content)})
            where = f"byte {place} of {damaged}"
            code, err = case.go_on()
            if code == 0:
                assert outcome(case.parts) == case.whole, where
            else:
                refused += 1
                assert_one_message(code, err)
                # What is wrong with a device or kernel is told by its key alone.
                assert damaged in err or (damaged == folder.SCENARIO and "solver." in err), f"{where}: {err}"
                assert contents(case.parts) == {**good, damaged: bytes(content)}, f"{where}: changed before refused"
        assert 0 < refused < DAMAGES // len(TEXTS)
