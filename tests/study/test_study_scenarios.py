"""The example studies run, and their results agree with their comments."""

from math import cosh, log, sinh, sqrt
from pathlib import Path

import pytest

import heatsim
from heatsim.study.definition import read

SCENARIOS = Path(__file__).parents[2] / "scenarios"
QUICK = ["solver.device=cpu", "output.figures=false"]


@pytest.mark.quick("heat_sink-25")
@pytest.mark.parametrize(("name", "runs"), [("heat_sink", 25), ("uncertainty", 200)])
def test_every_run_can_be_run(name: str, runs: int) -> None:
    path = SCENARIOS / f"{name}_study.toml"
    opening = path.read_text(encoding="utf-8").split("\n\n", 1)[0]
    assert opening.startswith("#:schema heatsim.schema.json\n# ")
    assert "What to look for" in opening
    assert f"{runs} runs" in opening
    definition, problems = read(path)
    assert len(definition.points) == len(problems) == runs
    if name == "uncertainty":  # all are of one group on a GPU
        assert {problem.scenario.time.method for problem in problems.values()} == {"stabilized"}


def test_fins_end_at_the_temperatures_of_the_book(tmp_path: Path) -> None:
    values = [
        *QUICK,
        'study.parameters={ "material.conductivity" = [16.0, 50.0] }',
        "study.linked.0.values=[100.0, 400.0]",
    ]
    table = heatsim.Study.from_scenario(
        SCENARIOS / "heat_sink_study.toml", values, output=tmp_path / "fins", workers=1
    ).run()
    assert table.num_rows == 4
    length, half, flux, air, spacing = 0.04, 0.0015, 30e3, 298.15, 0.001
    for row in table.to_pylist():
        k, h = row["material.conductivity"], row["boundaries.y_max.coefficient"]
        # There is one cell across the fin: between its centre and the air is half the thickness.
        m = sqrt(h / (1.0 + h * half / (2.0 * k)) / (k * half))
        s = h / (m * k)
        below = sinh(m * length) + s * cosh(m * length)
        foot = flux / (k * m) * (cosh(m * length) + s * sinh(m * length)) / below
        tip = flux / (k * m) / below
        # Second order along the fin: the wall's half cell and the differences between cells.
        tolerance = (m * spacing) ** 2 / 6.0
        assert row["foot at the end"] - air == pytest.approx(foot, rel=tolerance + 1e-4)
        assert row["tip at the end"] - air == pytest.approx(tip, rel=m * length * tolerance + 1e-3)
        reached = row["time to 60 °C at the foot"]
        assert (reached is not None) == (foot > 35.0)


@pytest.mark.slow
def test_the_quench_follows_the_oil(tmp_path: Path) -> None:
    few = [*QUICK, "study.samples=6", "domain.cells=[8, 8, 8]"]
    table = heatsim.Study.from_scenario(
        SCENARIOS / "uncertainty_study.toml", few, output=tmp_path / "quench", workers=1
    ).run()
    rows = sorted(table.to_pylist(), key=lambda row: float(row["boundaries.default.coefficient"]))
    assert [row["status"] for row in rows] == 6 * ["done"]
    # One value in each sixth of the range of the logarithm.
    parts = [int(6.0 * log(row["boundaries.default.coefficient"] / 500.0) / log(4.0)) for row in rows]
    assert parts == [0, 1, 2, 3, 4, 5]
    assert rows[0]["centre at the end"] > rows[-1]["centre at the end"]
    assert all(313.15 <= row["boundaries.default.ambient"] <= 353.15 for row in rows)
