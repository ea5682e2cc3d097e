"""Killed at any moment of its start, a run leaves a folder that `run` takes again or that `resume` goes on from."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs

from heatsim import Simulation
from heatsim.errors import FolderError, Interrupted
from heatsim.scenario import load
from heatsim.solver.euler.stepper import Stepper
from heatsim.storage import folder

INPUT = 'initial.temperature={ file = "start.npy" }'


class Started(BaseException):
    """The first step would come next."""


def finished(scenario: Path, target: Path) -> None:
    Simulation.from_scenario(scenario, [INPUT], output=target).run()


def unfinished(scenario: Path, target: Path) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs.after_step(monkeypatch, 3, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(scenario, [INPUT], output=target).run()


def nothing(scenario: Path, target: Path) -> None:
    pass


@pytest.mark.parametrize("before", [nothing, finished, unfinished])
def test_a_kill_at_any_moment_of_the_start(
    tmp_path: Path, before: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "start.npy", np.full((6, 5, 7), 310.0))
    scenario, target, found = runs.write(tmp_path), tmp_path / "run", tmp_path / "found"
    before(scenario, found)
    settings = [INPUT, "time.end=5"]
    calls, kill_at, halfway = 0, 0, False

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == kill_at and not halfway:
                raise runs.Killed
            done = function(*arguments, **options)
            if calls == kill_at:
                if function in (copy, write):
                    # Of what is written only a part has come to the disk.
                    path = Path(arguments[1] if function is copy else arguments[0])
                    os.truncate(path, path.stat().st_size // 2)
                raise runs.Killed
            return done

        return call

    def reach_the_first_step(*arguments: object) -> None:
        raise Started

    copy, write = shutil.copyfile, Path.write_text
    for place, name in ((shutil, "copyfile"), *((os, name) for name in ("replace", "unlink", "rmdir"))):
        monkeypatch.setattr(place, name, counted(getattr(place, name)))
    monkeypatch.setattr(Path, "write_text", counted(write))
    monkeypatch.setattr(Stepper, "prepare", reach_the_first_step)

    def start(overwrite: bool) -> Simulation:
        return Simulation.from_scenario(scenario, settings, output=target, overwrite=overwrite)

    kills, resumed = 0, 0
    for moment in range(1, 100):
        for halfway in (False, True):  # noqa: B007  (seen by `call`)
            kill_at = 0
            if target.exists():
                shutil.rmtree(target)
            if found.exists():
                shutil.copytree(found, target)
            calls, kill_at = 0, moment
            with pytest.raises((runs.Killed, Started)) as ended:
                start(overwrite=True).run()
            kill_at = 0
            if ended.type is Started:
                assert resumed, "between the last file of the start and the first of the run"
                # The scenario and the copy of its input, both renamed into place; what was there, removed.
                assert kills >= {nothing: 4, finished: 14, unfinished: 12}[before]
                return
            kills += 1
            with pytest.raises((Started, FolderError)) as again:
                start(overwrite=False).run()
            if again.type is FolderError:
                assert f"heatsim resume {target}" in str(again.value)
                if before is unfinished and load(target / folder.SCENARIO).time.end == 10.0:
                    # Not touched yet.
                    assert sorted(os.listdir(target)) == sorted(os.listdir(found))
                    continue
                resumed += 1
                with pytest.raises(Started):
                    Simulation.resume(target).run()
            assert load(target / folder.SCENARIO).time.end == 5.0
            assert sorted(os.listdir(target)) == ["manifest.json", folder.SCENARIO, "start.npy"]
    pytest.fail("never came to the first step")
