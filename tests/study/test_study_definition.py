"""All runs of a study are checked before the first one starts; each refused run is reported with its reason."""

from pathlib import Path

import pytest
import study_text

from heatsim.cli import main
from heatsim.errors import ScenarioError
from heatsim.scenario import load
from heatsim.study.definition import read
from heatsim.study.responses import parameters_of
from heatsim.study.results import column_units


def refused(at: Path, study: str, *overrides: str) -> list[str]:
    path = study_text.write(at, study)
    with pytest.raises(ScenarioError) as caught:
        read(path, overrides)
    assert caught.value.exit_code == 2
    return [str(problem) for problem in caught.value.mistakes]


def parameters(*lines: str) -> str:
    return '[study]\nmethod = "grid"\n[study.parameters]\n' + "\n".join(lines)


def latin(*lines: str) -> str:
    return '[study]\nmethod = "latin-hypercube"\nsamples = 5\n[study.parameters]\n' + "\n".join(lines)


def test_each_run_has_its_values_and_its_own_time_step(tmp_path: Path) -> None:
    definition, problems = read(study_text.write(tmp_path))
    assert list(problems) == list(definition.numbers) == [1, 2, 3, 4, 5, 6]
    scenario = definition.scenario(5)
    assert scenario.material.conductivity == (40.0, 40.0, 40.0)
    assert scenario.boundaries.x_min.coefficient.value == 300.0
    assert problems[5].limit.dt < problems[1].limit.dt


def test_runs_draw_nothing_and_write_fields_only_if_the_file_says_when(tmp_path: Path) -> None:
    definition, _ = read(study_text.write(tmp_path))
    assert not definition.scenario(1).output.fields
    asked, _ = read(study_text.write(tmp_path), ["output.every=4.0", "output.figures=true"])
    assert asked.scenario(1).output.fields
    assert asked.scenario(1).output.every == 4.0
    assert not asked.scenario(1).output.figures


def test_refused_runs_are_listed_with_values_and_reason(tmp_path: Path) -> None:
    values = parameters('"material.density" = [2000.0, -1.0]', '"time.dt" = [0.05, 99.0, "x"]')
    told = refused(tmp_path, values)
    assert [line.split(":")[0] for line in told] == [
        "run 2 (material.density = 2000.0, time.dt = 99.0)",
        'run 3 (material.density = 2000.0, time.dt = "x")',
        "run 4 (material.density = -1.0, time.dt = 0.05)",
        "run 5 (material.density = -1.0, time.dt = 99.0)",
        'run 6 (material.density = -1.0, time.dt = "x")',
    ]
    assert "time.dt: 99.0 s is beyond the stability limit" in told[0]
    assert "material.density: got -1.0; a density must be greater than 0" in told[2]
    assert "material.density: got -1.0" in told[4]
    assert 'time.dt: got "x"' in told[4]


def test_a_mistake_of_all_runs_is_told_once(tmp_path: Path) -> None:
    told = refused(tmp_path, parameters('"material.desity" = [1.0, 2.0]', '"time.end" = [8.0, 9.0]'), "time.saftey=0.5")
    assert any(line.startswith("time.saftey: got 0.5; unknown key") for line in told)
    assert sum("time.saftey" in line for line in told) == 1
    # The values differ from run to run, but the unknown key is one mistake.
    assert [line for line in told if 'did you mean "density"?' in line] == [
        next(line for line in told if line.startswith("material.desity: unknown key"))
    ]


def test_mistakes_of_study_and_scenario_are_told_together(tmp_path: Path) -> None:
    told = refused(tmp_path, parameters('"material.density" = 5'), "time.end=-1", "nonsense")
    assert [line.split(":")[0] for line in told] == ["--set", 'study.parameters."material.density"', "time.end"]


def test_keys_without_quotes_count_as_given_by_the_study(tmp_path: Path) -> None:
    """Only the study gives a density."""
    text = parameters("material.density = [1000.0, 2000.0]").replace('"grid"', '"gird"')
    path = study_text.write(tmp_path, text)
    path.write_text(path.read_text().replace("density = 2000.0\n", "", 1))
    with pytest.raises(ScenarioError) as caught:
        read(path)
    assert [mistake.key for mistake in caught.value.mistakes] == ["study.method"]


def test_long_values_of_a_grid_that_differ_at_their_ends(tmp_path: Path) -> None:
    values = ['"' + "300 + " + "0*" * 40 + f'(1 + {end}*x)"' for end in (1, 2)]
    definition, _ = read(study_text.write(tmp_path, parameters(f'"initial.temperature" = [{", ".join(values)}]')))
    assert len(definition.points) == 2


def test_ends_and_other_mistakes_of_runs_are_told_together(tmp_path: Path) -> None:
    """A wrong end of a range, a point that is there twice, and a time step beyond the limit of each run."""
    values = latin('"time.end" = { min = "-1 s", max = "2 s" }')
    told = refused(tmp_path, values, "time.dt=99.0")
    assert told[0].startswith('study.parameters."time.end".min: got "-1 s"')
    assert any("time.dt: 99.0 s is beyond the stability limit" in line for line in told[1:])
    double = parameters('"material.density" = [2000.0, -1.0, 2000.0]').replace('"grid"', '"zip"')
    told = refused(tmp_path, double)
    assert told[0].startswith("study: runs 1 and 3 are the same")
    assert told[1].startswith("run 2 (material.density = -1.0): material.density: got -1.0")


def test_a_key_that_cannot_be_hides_no_other_mistake(tmp_path: Path) -> None:
    told = refused(tmp_path, parameters('"material.density.x" = [1.0]'), "time.end=-1")
    assert [line.split(":")[0] for line in told] == ['study.parameters."material.density.x"', "time.end"]


def test_a_key_whose_place_cannot_be(tmp_path: Path) -> None:
    (told,) = refused(tmp_path, parameters('"material.density.x" = [1.0]'))
    assert told == (
        'study.parameters."material.density.x": got material.density.x; material.density is 2000.0, which has no keys'
    )


def test_units_of_a_range_are_checked_where_they_stand(tmp_path: Path) -> None:
    told = refused(tmp_path, latin('"time.end" = { min = "1 kg", max = "2 kg" }'))
    assert [line.split(":")[0] for line in told] == [
        'study.parameters."time.end".min',
        'study.parameters."time.end".max',
    ]
    definition, _ = read(study_text.write(tmp_path, latin('"time.end" = { min = "0.1 min", max = "0.2 min" }')))
    ends = sorted(float(str(point["time.end"])) for point in definition.points)
    assert 6.0 <= ends[0] < 7.2
    assert 10.8 <= ends[-1] < 12.0


def test_a_response_needs_a_probe_that_is_there(tmp_path: Path) -> None:
    (told,) = refused(tmp_path, study_text.STUDY.replace('"middle"', '"midle"', 1))
    assert told == 'study.responses.0.probe: got "midle"; the probes are "middle"; did you mean "middle"?'


@pytest.mark.parametrize(
    "setting",
    [
        "material.density=1.0",
        "material={ conductivity = 1.0, density = 1.0, specific_heat = 1.0 }",
        "boundaries.x_min.coefficient.repeat=true",
        'boundaries={ x_min = { type = "convection", coefficient = 5.0, ambient = 300.0 } }',
    ],
)
def test_a_setting_of_a_key_that_varies_is_refused(setting: str, tmp_path: Path) -> None:
    varied = parameters('"material.density" = [1000.0, 2000.0]', '"boundaries.x_min.coefficient" = [100.0]')
    told = refused(tmp_path, varied, setting)
    assert any(line.startswith("--set: got") and "leave out one of them" in line for line in told)


def test_a_setting_beside_keys_that_vary_is_taken(tmp_path: Path) -> None:
    varied = parameters('"material.density" = [1000.0, 2000.0]', '"boundaries.x_min.coefficient" = [100.0]')
    beside = ["boundaries.x_max.value=300", 'boundaries.x_min={ type = "convection", ambient = 300.0 }']
    assert read(study_text.write(tmp_path, varied), beside)[0].scenario(1).boundaries.x_min.ambient.value == 300.0


def test_a_range_of_whole_numbers_leads_to_a_grid(tmp_path: Path) -> None:
    """One mistake, and not one for each of the five draws."""
    told = refused(tmp_path, latin('"domain.cells.0" = { min = 8, max = 60 }'))
    assert len(told) == 1
    assert told[0].startswith('study.parameters."domain.cells.0": draws values such as ')
    assert told[0].endswith('domain.cells.0 must be whole: use method = "grid" with a list of values')


def test_the_same_point_twice(tmp_path: Path) -> None:
    study = parameters('"material.density" = [1.0, 2.0, 1.0]').replace('"grid"', '"zip"')
    (told,) = refused(tmp_path, study)
    assert told == "study: runs 1 and 3 are the same: material.density = 1.0; write each point once"


def test_more_runs_than_anybody_wants(tmp_path: Path) -> None:
    many = ", ".join(f"{n}.0" for n in range(1, 401))
    (told,) = refused(tmp_path, parameters(f'"material.density" = [{many}]', f'"material.specific_heat" = [{many}]'))
    assert told == "study.parameters: makes 160,000 runs; at most 100,000 are allowed: use fewer values"


def test_run_and_study_point_at_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = study_text.write(tmp_path)
    assert main(["run", str(path)]) == 2
    assert "study: this file describes a parameter study; run it with `heatsim study`" in capsys.readouterr().err
    plain = study_text.write(tmp_path, "", name="plain.toml")
    assert load(plain).title == "Plate that cools"
    assert main(["study", str(plain)]) == 2
    assert "study: missing; write a table [study] with its method and parameters" in capsys.readouterr().err
    assert not (Path("outputs") / "plain").exists()


BASE_OF_PARTS = (
    study_text.BASE.replace("[material]", "[materials.steel]").replace("[domain]", '[domain]\nmaterial = "steel"')
    + """
[[regions]]
name = "hot spot"
material = "steel"
box = { min = [0.0, 0.0, 0.0], max = [0.01, 0.02, 0.01] }
[[sources]]
name = "heater"
region = "hot spot"
power = 3.0
"""
)


def test_keys_name_parts_and_axes(tmp_path: Path) -> None:
    """As `--set` does; the columns of the results have the keys as they are written."""
    keys = "sources.heater.power = [1.0, 2.0]", "regions.'hot spot'.box.max.x = ['15 mm', '20 mm']"
    path = study_text.write(tmp_path, parameters(*keys), BASE_OF_PARTS)
    definition, _ = read(path, ["probes.middle.point.y=0.005"])
    last = definition.scenario(4)
    assert last.sources[0].power == 2.0
    assert last.regions[0].box.max[0] == 0.02
    assert last.probes[0].point[1] == 0.005
    width = "regions.'hot spot'.box.max.x"
    assert list(definition.table.keys) == ["sources.heater.power", width]
    units = column_units(definition)
    assert (units["sources.heater.power"], units[width]) == ("W", "m")
    assert [each.short for each in parameters_of(definition, [])] == ["heater.power", "hot spot.box.max.x"]


@pytest.mark.parametrize(
    ("lines", "overrides", "told"),
    [
        (["sources.cooler.power = [1.0]"], [], 'got sources.cooler.power; the names in sources are "heater"'),
        (["sources.heater.power = [1.0]", '"sources.0.power" = [2.0]'], [], "which is sources.heater.power"),
        (["sources.heater.power = [1.0]"], ["sources.0.power=2"], "leave out one of them"),
        (["sources.heater.power = [1.0, 'x']"], [], 'run 2 (sources.heater.power = "x"): sources.0.power: got "x"'),
    ],
)
def test_names_are_refused_where_numbers_are(tmp_path: Path, lines: list[str], overrides: list[str], told: str) -> None:
    path = study_text.write(tmp_path, parameters(*lines), BASE_OF_PARTS)
    with pytest.raises(ScenarioError) as caught:
        read(path, overrides)
    assert told in str(caught.value)
