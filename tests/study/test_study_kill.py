"""After SIGKILL to a worker or to the study at any moment, the same command finishes the study with the same table."""

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import runs
import study_text

from heatsim.run.interrupt import Stop
from heatsim.storage import checkpoint
from heatsim.storage import folder as run_folder
from heatsim.study import folder as study_folder
from heatsim.study.definition import read
from heatsim.study.results import Results
from heatsim.study.run_group import run_group

pytestmark = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds workers in /proc")

# Runs of at most 1 s, with frequent checkpoints: most kills come after one, and some while one is being written.
STUDY = """
[study]
method = "latin-hypercube"
samples = 20
seed = 4

[study.parameters]
"material.conductivity" = { min = 20.0, max = 60.0 }
"boundaries.x_min.coefficient" = { min = 100.0, max = 1000.0, scale = "log" }

[[study.responses]]
name = "cooled"
probe = "middle"
statistic = "time_below"
threshold = "390 K"
"""
OVERRIDES = ["time.dt=2e-3", "output.checkpoint_wall=0.2", "output.every=2.0"]
SEED = 11


def workers(out: Path) -> Iterator[int]:
    """Process ids of the workers of the study in a folder."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"heatsim.study.worker" in words and str(out).encode() in words:
                yield int(entry.name)


def kill_many(command: Sequence[str | Path], out: Path, kills: int, longest: float, chance: random.Random) -> int:
    """The number of kills until a study ends.

    The study or one of its workers is killed after random times, a worker first.
    """
    process, struck = runs.start(*command), 0
    for kill in range(kills):
        # Only while there is a process to kill.
        while not list(workers(out)) and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, longest))
        if process.poll() is not None:
            break
        found = list(workers(out))
        if found and (kill == 0 or (kill > 1 and chance.random() < 0.5)):
            try:
                os.kill(chance.choice(found), signal.SIGKILL)
            except ProcessLookupError:
                continue
            struck += 1
        else:
            struck += 1
            process.kill()
            process.communicate()
            process = runs.start(*command)
    stdout, err = process.communicate(timeout=300)
    assert (process.returncode, stdout, err) == (0, "", "")
    return struck


def outcomes(out: Path) -> dict[str, object]:
    """All files of a study's folder without times, and without incomplete files of a killed process."""
    found: dict[str, object] = {"table": study_text.without_times(out / study_folder.RESULTS_CSV)}
    for at in sorted((out / study_folder.RUNS).iterdir()):
        names = {path.name for path in at.iterdir() if not path.name.endswith(".part")}
        assert names - {run_folder.PREVIOUS} == {
            *(run_folder.SCENARIO, run_folder.FIELDS, run_folder.PROBES),
            *(run_folder.ENERGY, run_folder.CHECKPOINT, run_folder.SUMMARY, "manifest.json"),
        }
        found[at.name] = runs.results(at)
        assert checkpoint.read_last_good(at)[1] == []
    return found


@pytest.mark.parametrize(
    ("kills", "samples", "longest"), [(2, 3, 0.4), pytest.param(20, 20, 2.0, marks=pytest.mark.slow)]
)
def test_killed_at_random_moments_the_study_ends_as_if_nothing_had_happened(
    tmp_path: Path, kills: int, samples: int, longest: float
) -> None:
    path = study_text.write(tmp_path, STUDY)
    undisturbed, out = tmp_path / "undisturbed", tmp_path / "killed"
    overrides = [*OVERRIDES, f"study.samples={samples}"]
    definition, _ = read(path, overrides)
    undisturbed.mkdir()
    study_folder.write_study(undisturbed, definition)
    assert len(list(run_group(undisturbed, definition.numbers, lambda number, step: None, Stop()))) == samples
    Results(undisturbed, definition).write()

    options = [word for override in overrides for word in ("--set", override)]
    command = ["study", path, "--output", out, "--workers", "2", "--quiet", *options]
    struck = kill_many(command, out, kills, longest, random.Random(SEED))
    assert struck >= kills // 2
    assert outcomes(out) == outcomes(undisturbed)
    assert not list(workers(out))
