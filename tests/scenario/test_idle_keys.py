"""Keys that change nothing are told."""

from pathlib import Path

import pytest
import runs

from heatsim.scenario import load

LATE = "sources=[{ power = 3.0, during = [100.0, 200.0] }]"


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (
            [LATE, "time.end=60"],
            ["sources.0.during: starts at 100 s, and the run ends at 60 s; the source gives no heat"],
        ),
        ([LATE, "time.end=101"], []),
        (
            ["output.heat_flux=true", "output.fields=false"],
            ["output.heat_flux has no effect, because output.fields is false: no fields are written"],
        ),
        (["output.heat_flux=true"], []),
    ],
)
def test_keys_without_effect_are_told(tmp_path: Path, overrides: list[str], told: list[str]) -> None:
    assert list(load(runs.write(tmp_path), overrides).hints) == told
