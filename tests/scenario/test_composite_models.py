"""Several materials, regions, contacts, patches and sources are read, refused and written out again."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from covering import SLOW
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from refusals import anything, assert_is_read_or_refused, mistakes_of
from scenario_text import COMPOSITE, TEXT, write

from heatsim.physics.problem import HeatProblem
from heatsim.scenario import (
    Beam,
    Constant,
    Convection,
    Flux,
    Insulated,
    MaterialFormula,
    MaterialTable,
    Radiation,
    load,
    load_labels,
    parse,
    write_resolved,
)
from heatsim.scenario.documents.overrides import Override
from heatsim.scenario.files import InputFile, slice_files
from heatsim.scenario.tables.labels import LabelFile

DIE = 'material = "silicon"\nbox = { min = [0.01, 0.01, 0.015], max = [0.03, 0.02, 0.02] }'
MATERIAL = "\nconductivity = 1.0\ndensity = 1.0\nspecific_heat = 1.0\n"
TRIANGLE = "solid a\nendsolid "


def read(tmp_path: Path, *changes: tuple[str, str], extra: str = ""):
    return load(write(tmp_path, *changes, extra=extra, text=COMPOSITE))


def test_everything_is_taken_in_si(tmp_path):
    scenario = read(tmp_path)
    assert [name for name, _ in scenario.palette] == ["copper", "silicon", "wax", "void"]
    assert scenario.palette[3] == ("void", None)
    assert scenario.material is None
    assert scenario.palette[0][1] is scenario.materials["copper"]
    copper, silicon, wax = scenario.materials.values()
    assert (copper.conductivity, copper.specific_heat, copper.varies) == ((400.0, 400.0, 400.0), 385.0, False)
    assert silicon.conductivity == MaterialTable((300.0, 500.0), (148.0, 76.0))
    assert silicon.conductivity.at(np.array([0.0, 350.0, 900.0])).tolist() == [148.0, 130.0, 76.0]
    assert isinstance(silicon.specific_heat, MaterialFormula)
    assert silicon.specific_heat.at([[400.0]]).tolist() == [[740.0]]
    assert silicon.varies
    assert (wax.latent_heat, wax.solidus, wax.liquidus, wax.varies) == (2e5, 323.15, 327.15, True)
    die, ball, hole = scenario.regions
    assert (die.name, die.material, die.initial_temperature) == ("die", "silicon", 333.15)
    assert die.shape is die.box
    assert (ball.sphere.centre, ball.sphere.radius) == ((0.02, 0.015, 0.01), 0.004)
    assert (hole.shape.from_, hole.shape.to, hole.shape.radius) == ((0.005, 0.005, 0.0), (0.005, 0.005, 0.02), 0.004)
    assert (scenario.contacts[0].between, scenario.contacts[0].resistance) == (("copper", "silicon"), 1e-5)
    assert scenario.time.stop_below == 1e-4
    assert scenario.output.heat_flux
    faces = scenario.boundaries
    assert faces.x_min == Convection(coefficient=10.0, ambient=300.0, emissivity=0.5, surroundings=300.0)
    assert faces.x_max == Radiation(emissivity=0.9, ambient=293.15)
    assert faces.void == Convection(coefficient=5.0, ambient=290.0)
    heater, strip = scenario.patches
    assert (heater.name, heater.face, heater.condition) == ("patch 1", "z_max", Flux(value=2e4))
    assert (strip.name, strip.rectangle.max) == ("strip", (0.04, 0.01))
    assert isinstance(strip.condition, Radiation)
    for patch, columns in ((heater, slice(0, 2)), (strip, slice(2, 8))):
        u, v = patch.coverage(scenario.grid)
        assert np.flatnonzero(u == 1.0).tolist() == np.flatnonzero(u).tolist() == list(range(8))[columns]
        assert v.tolist() == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    hot, coil, laser = scenario.sources
    assert (hot.name, hot.region, hot.power, hot.during, hot.scale) == (
        "source 1",
        "die",
        120.0,
        (0.0, 5.0),
        Constant(1.0),
    )
    assert (coil.shape, coil.power_density) == (coil.box, -1e6)
    assert isinstance(laser.beam, Beam)
    assert (laser.beam.absorptivity, laser.beam.path) == (1.0, ((0.005, 0.01), (0.035, 0.01)))
    assert scenario.switching_times == (5.0,)
    assert scenario.probes[1].points[1] == (0.01, 0.015, 0.01)
    assert scenario.probes[2].points == ()
    assert scenario.probe_columns == ("centre", "axis[0]", "axis[1]", "axis[2]", "axis[3]", "axis[4]", "die, hottest")


@pytest.mark.parametrize(
    ("extra", "linear"),
    [
        ("", True),
        ('[boundaries]\nx_min = { type = "convection", coefficient = 5.0, ambient = 300.0 }', True),
        ('[boundaries]\nx_min = { type = "convection", coefficient = 5, ambient = 300, emissivity = 0.1 }', False),
        ('[boundaries]\nx_min = { type = "radiation", emissivity = 1, ambient = 300 }', False),
        ("[[sources]]\npower = 1.0", False),
        ('[[regions]]\nname = "gap"\nmaterial = "void"\nsphere = { centre = [0.1, 0.1, 0.1], radius = 0.09 }', False),
        ('[[patches]]\nface = "x_min"\nrectangle = { min = [0, 0], max = [0.2, 0.3] }\ntype = "insulated"', False),
    ],
)
def test_one_constant_material_with_linear_faces_is_linear(extra, linear, tmp_path):
    scenario = load(write(tmp_path, extra=extra))
    assert HeatProblem.from_scenario(scenario).linear is linear
    assert scenario.palette[0] == ("material", scenario.material)
    assert scenario.boundaries.void == Insulated()


def test_one_material_that_varies_is_not_linear(tmp_path):
    def linear(*change):
        return HeatProblem.from_scenario(load(write(tmp_path, change))).linear

    assert not linear("237.0", '"237 - 0.01*T"')
    assert linear("237.0", '"200 + 37"')
    assert linear("900.0", "{ temperatures = [300, 400], values = [900, 900] }")


def test_the_only_material_is_that_of_the_domain(tmp_path):
    scenario = load(write(tmp_path, ("[material]", "[materials.aluminium]")))
    assert scenario.domain.material == "aluminium"
    assert scenario.palette == (("aluminium", scenario.materials["aluminium"]),)


def test_the_domain_may_be_void_with_parts_in_it(tmp_path):
    scenario = read(tmp_path, ('material = "copper"\n\n', 'material = "void"\n\n'))
    assert [name for name, _ in scenario.palette] == ["copper", "silicon", "wax", "void"]
    assert scenario.uses_void


def test_the_domains_material_comes_first(tmp_path):
    scenario = read(tmp_path, ('material = "copper"\n\n', 'material = "wax"\n\n'))
    assert [name for name, _ in scenario.palette] == ["wax", "copper", "silicon", "void"]


# A replacement of a part of COMPOSITE, text added at its end, and the key and fragments of its one mistake.
MISTAKES = {
    "both forms": ((), f"[material]{MATERIAL}", "material", ["and [materials.copper]", "[materials.NAME] for each"]),
    "which is the domain's": (
        ('material = "copper"\n\n', "\n"),
        "",
        "domain.material",
        ["missing", '"copper", "silicon"'],
    ),
    "unknown in domain": (
        ('material = "copper"\n\n', 'material = "coper"\n\n'),
        "",
        "domain.material",
        ['got "coper"; one of "copper", "silicon", "wax", "void" is expected; did you mean "copper"?'],
    ),
    "a material called void": (
        (),
        f"[materials.void]{MATERIAL}",
        "materials.void",
        ["do not conduct", "choose another"],
    ),
    "material is a number": (
        ("[materials.copper]", "[materials]\nair = 5\n[materials.copper]"),
        "",
        "materials.air",
        ["got 5"],
    ),
    "unknown key of a material": (
        ("density = 8960.0", "density = 8960.0\ndens = 1"),
        "",
        "materials.copper.dens",
        ['did you mean "density"?'],
    ),
    "missing key of a material": (
        ("density = 8960.0", ""),
        "",
        "materials.copper.density",
        ["missing; write for example density = 2700.0"],
    ),
    "table not increasing": (
        ('["300 K", 500.0]', "[500.0, 300.0]"),
        "",
        "materials.silicon.conductivity.temperatures.1",
        ["got 300.0 after 500.0; temperatures must increase"],
    ),
    "table too short": (
        ('["300 K", 500.0]', "[500.0]"),
        "",
        "materials.silicon.conductivity.temperatures",
        ["two or more"],
    ),
    "table lengths": (
        ('["300 K", 500.0]', "[1, 2, 3]"),
        "",
        "materials.silicon.conductivity",
        ["3 temperatures and 2 values"],
    ),
    "table not positive": (
        ("[148.0, 76.0]", "[148.0, 0.0]"),
        "",
        "materials.silicon.conductivity.values.1",
        ["got 0.0; a conductivity must be"],
    ),
    "table key": (
        ("values = [148.0, 76.0]", "values = [148.0, 76.0], value = 3"),
        "",
        "materials.silicon.conductivity.value",
        ['did you mean "values"?'],
    ),
    "variable": (
        ("0.4*(T - 300)", "0.4*(t - 300)"),
        "",
        "materials.silicon.specific_heat",
        ['"t" is not known; known are T'],
    ),
    "negative everywhere": (
        ("700 + 0.4*(T - 300)", "-T"),
        "",
        "materials.silicon.specific_heat",
        ["at every temperature from 1.0 to 5000.0 K"],
    ),
    "negative constant": (
        ("700 + 0.4*(T - 300)", "1 - 2"),
        "",
        "materials.silicon.specific_heat",
        ["out of range always"],
    ),
    "melting alone": (('solidus = "50 degC"', ""), "", "materials.wax.solidus", ["missing", "belong together"]),
    "melting upside down": (
        ("54 degC", "50 degC"),
        "",
        "materials.wax.liquidus",
        ["above the solidus, which is 323.15 K"],
    ),
    "unknown in region": (
        (DIE, DIE.replace("silicon", "slicon")),
        "",
        "regions.0.material",
        ['did you mean "silicon"?'],
    ),
    "region of two shapes": (
        (DIE, f"{DIE}\neverywhere = true"),
        "",
        "regions.0",
        ["got box and everywhere; one of box, sphere"],
    ),
    "region nowhere": ((DIE, 'material = "silicon"'), "", "regions.0", ["has no extent"]),
    "region without material": ((DIE, DIE.split("\n")[1]), "", "regions.0.material", ["missing"]),
    "region name twice": (('name = "ball"', 'name = "die"'), "", "regions.1.name", ['got "die" a second time']),
    "region key": ((DIE, f"{DIE}\ncolour = 1"), "", "regions.0.colour", ["unknown key"]),
    "region not everywhere": (
        (DIE, 'material = "silicon"\neverywhere = false'),
        "",
        "regions.0.everywhere",
        ["got false"],
    ),
    "regions is one table": (
        ("[[contacts]]", "[contacts]"),
        "",
        "contacts",
        ["write each contact under its own heading [[contacts]]"],
    ),
    "box is a number": (
        (DIE, 'material = "silicon"\nbox = 5'),
        "",
        "regions.0.box",
        ["got 5; write for example box = { min ="],
    ),
    "box inside out": (
        ("max = [0.03, 0.02, 0.02]", "max = [0.03, 0.01, 0.02]"),
        "",
        "regions.0.box.max.1",
        ["got 0.01; it must be greater than min"],
    ),
    "box corner": (("max = [0.03, 0.02, 0.02]", "max = [0.03, 0.02]"), "", "regions.0.box.max", ["a list of three"]),
    "sphere radius": (
        ('radius = "4 mm"', "radius = -1"),
        "",
        "regions.1.sphere.radius",
        ["got -1; a length must be greater"],
    ),
    "cylinder without end": (
        ("to = [0.005, 0.005, 0.02], ", ""),
        "",
        "regions.2.cylinder.to",
        ["missing; write for example to = ["],
    ),
    "cylinder without length": (
        ("to = [0.005, 0.005, 0.02]", "to = [0.005, 0.005, 0.0]"),
        "",
        "regions.2.cylinder.to",
        ["two ends must differ"],
    ),
    "cylinder without direction": (
        ("to = [0.005, 0.005, 0.02]", "to = [0.005, 0.005, 1e-320]"),
        "",
        "regions.2.cylinder.to",
        ["two ends must differ"],
    ),
    "cylinder key": (
        ("to = [0.005, 0.005, 0.02]", "till = 1, to = [0.005, 0.005, 0.02]"),
        "",
        "regions.2.cylinder.till",
        ["from, to, radius"],
    ),
    "no such stl": (
        (DIE, 'material = "silicon"\nstl = "part.stl"'),
        "",
        "regions.0.stl.file",
        ["there is no such file"],
    ),
    "initial below zero": (('"60 degC"', "-1"), "", "regions.0.initial_temperature", ["at least 0 K"]),
    "contact of one": (('["copper", "silicon"]', '["copper"]'), "", "contacts.0.between", ["two materials"]),
    "contact with itself": (
        ('["copper", "silicon"]', '["copper", "copper"]'),
        "",
        "contacts.0.between",
        ["two different"],
    ),
    "contact unknown": (
        ('["copper", "silicon"]', '["copper", "silicone"]'),
        "",
        "contacts.0.between.1",
        ['did you mean "silicon"?'],
    ),
    "contact with void": (
        ('["copper", "silicon"]', '["copper", "void"]'),
        "",
        "contacts.0.between.1",
        ["does not conduct"],
    ),
    "contact twice": (
        (),
        '[[contacts]]\nbetween = ["silicon", "copper"]\nresistance = 1',
        "contacts.1.between",
        ["already"],
    ),
    "contact negative": (("= 1e-5", "= -1e-5"), "", "contacts.0.resistance", ["at least 0 m^2 K/W"]),
    "stop below": (
        ("stop_below = 1e-4", "stop_below = 0"),
        "",
        "time.stop_below",
        ["got 0; a rate of change"],
    ),
    "emissivity": (
        ("emissivity = 0.9", "emissivity = 1.1"),
        "",
        "boundaries.x_max.emissivity",
        ["got 1.1; an emissivity must be at most 1"],
    ),
    "periodic void": (
        ('void = { type = "convection"', 'void = { type = "periodic"'),
        "",
        "boundaries.void.type",
        ['"radiation", "insulated" is expected'],
    ),
    "nothing void": (('material = "void"', 'material = "wax"'), "", "boundaries.void", ["nothing is void"]),
    "patch face": (
        (
            'face = "z_max"\nrectangle = { min = [0.0, 0.0], max = [0.01, 0.01]',
            'face = "zmax"\nrectangle = { min = [0.0, 0.0], max = [0.01, 0.01]',
        ),
        "",
        "patches.0.face",
        ['did you mean "z_max"?'],
    ),
    "patch on periodic face": (
        (
            'face = "z_max"\nrectangle = { min = [0.0, 0.0], max = [0.01, 0.01]',
            'face = "y_max"\nrectangle = { min = [0.0, 0.0], max = [0.01, 0.01]',
        ),
        "",
        "patches.0.face",
        ["periodic"],
    ),
    "patch outside": (
        ("max = [0.01, 0.01] }", "max = [0.01, 0.031] }"),
        "",
        "patches.0.rectangle.max.1",
        ["z_max reaches from 0.0 to 0.03 m along y"],
    ),
    "patches overlap": (
        ("rectangle = { min = [0.01, 0.0]", "rectangle = { min = [0.009, 0.0]"),
        "",
        "patches.1.rectangle",
        ['"strip" overlaps "patch 1"'],
    ),
    "patch upside down": (
        ("max = [0.01, 0.01] }", "max = [0.01, 0.0] }"),
        "",
        "patches.0.rectangle.max.1",
        ["greater than min"],
    ),
    "patch name": (
        ('name = "strip"', 'name = "residual"'),
        "",
        "patches.1.name",
        ["energy.csv has a column"],
    ),
    "patch without type": (('type = "flux"\n', ""), "", "patches.0.type", ["missing", '"radiation"']),
    "patch type": (
        ('type = "flux"\n', 'type = "periodic"\n'),
        "",
        "patches.0.type",
        ['"flux", "convection", "radiation", "insulated" is expected'],
    ),
    "patch key": (
        ("value = 2e4", "value = 2e4\nvalu = 2"),
        "",
        "patches.0.valu",
        ["name, face, rectangle, type, value", 'did you mean "value"?'],
    ),
    "patch without value": (("value = 2e4", ""), "", "patches.0.value", ["missing; write for example value = 2000.0"]),
    "source in no region": (
        ('region = "die"\npower', 'region = "ball2"\npower'),
        "",
        "sources.0.region",
        ['got "ball2"; one of "die", "ball", "hole"', 'did you mean "ball"?'],
    ),
    "source in void": (
        ('region = "die"\npower', 'region = "hole"\npower'),
        "",
        "sources.0.region",
        ["this region is void"],
    ),
    "source without power": (
        ("power = 120.0\n", ""),
        "",
        "sources.0.power",
        ["missing; write for example power = 120.0"],
    ),
    "source of two powers": (
        ("power = 120.0\n", "power = 120.0\npower_density = 1\n"),
        "",
        "sources.0",
        ["got power and power_density"],
    ),
    "source in two places": (
        ('region = "die"\npower', 'region = "die"\nsphere = { centre = [0, 0, 0], radius = 1 }\npower'),
        "",
        "sources.0",
        ["got region and sphere"],
    ),
    "source during": (("[0.0, 5.0]", "[5.0, 5.0]"), "", "sources.0.during", ["the first time must be before"]),
    "source before": (("[0.0, 5.0]", "[-1, 5.0]"), "", "sources.0.during.0", ["got -1; a time must be at least 0 s"]),
    "source scale": (('"sin(t)"', '"sin(x)"'), "", "sources.1.scale", ['"x" is not known']),
    "scale table": (
        ('"sin(t)"', "{ times = [1, 0], values = [1, 2] }"),
        "",
        "sources.1.scale.times.1",
        ["times must increase"],
    ),
    "beam off the face": (
        ("[0.035, 0.01]]", "[0.041, 0.01]]"),
        "",
        "sources.2.beam.path.1.0",
        ["got 0.041; z_max reaches from 0.0 to 0.04 m along x"],
    ),
    "beam on periodic": (
        ('beam = { face = "z_max"', 'beam = { face = "y_max"'),
        "",
        "sources.2.beam.face",
        ["periodic"],
    ),
    "beam without speed": (("speed = 0.2, ", ""), "", "sources.2.beam.speed", ["missing; write for example speed"]),
    "beam standing": (("[0.035, 0.01]]", "[0.005, 0.01]]"), "", "sources.2.beam.path.1", ["must differ"]),
    "beam point": (("[0.035, 0.01]]", "[0.035]]"), "", "sources.2.beam.path.1", ["got [0.035]; a list of two"]),
    "beam coordinate": (("[0.035, 0.01]]", "[0.035, true]]"), "", "sources.2.beam.path.1.1", ["got true"]),
    "beam power": (("power = 50.0", "power = -50.0"), "", "sources.2.beam.power", ["at least 0 W"]),
    "beam and power": (
        ('name = "laser"', 'name = "laser"\npower = 3'),
        "",
        "sources.2",
        ["write the power inside the beam"],
    ),
    "probe of two kinds": (("count = 5 }", "count = 5 }\npoint = [0, 0, 0]"), "", "probes.1", ["got point and line"]),
    "probe of one point": (("count = 5", "count = 1"), "", "probes.1.line.count", ["got 1; a whole number from 2"]),
    "probe line outside": (
        ("to = [0.04, 0.015, 0.01], count", "to = [0.05, 0.015, 0.01], count"),
        "",
        "probes.1.line.to.0",
        ["the domain reaches"],
    ),
    "probe of unknown region": (
        ('region = "die"\nstat', 'region = "ie"\nstat'),
        "",
        "probes.2.region",
        ['did you mean "die"?'],
    ),
    "probe statistic": (('"max"', '"maximum"'), "", "probes.2.statistic", ['one of "mean", "max", "min"']),
    "probe without statistic": (('statistic = "max"', ""), "", "probes.2.statistic", ["a region needs a statistic"]),
    "probe column twice": ((), '[[probes]]\nname = "axis[1]"\npoint = [0, 0, 0]', "probes.3.name", ["a second time"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_told_with_key_value_and_what_is_allowed(mistake, tmp_path):
    change, extra, key, fragments = MISTAKES[mistake]
    path = write(tmp_path, *([change] if change else []), extra=f"\n{extra}\n", text=COMPOSITE)
    ((at, message),) = mistakes_of(path)
    assert at == key
    for fragment in fragments:
        assert fragment in message


def test_a_wrong_material_does_not_make_its_name_unknown(tmp_path):
    path = write(
        tmp_path, ("[148.0, 76.0]", "[148.0]"), ("power = 120.0\n", "power = 120.0\nfoo = 1\n"), text=COMPOSITE
    )
    keys = [key for key, _ in mistakes_of(path)]
    assert keys == ["materials.silicon.conductivity.values", "sources.0.foo"]


def test_mistakes_within_and_between_keys_are_told_together(tmp_path):
    path = write(tmp_path, (DIE, "stuff = 1"), ("power = 120.0\n", "colour = 1\n"), text=COMPOSITE)
    assert [key for key, _ in mistakes_of(path)] == [
        "regions.0",
        "regions.0.material",
        "regions.0.stuff",
        "sources.0.power",
        "sources.0.colour",
    ]


def test_names_without_tables_are_explained(tmp_path):
    path = write(tmp_path, extra='[[regions]]\nname = "die"\nmaterial = "silicon"\neverywhere = true')
    ((key, message),) = mistakes_of(path)
    assert key == "regions.0.material"
    assert "write [materials.silicon] for each material, in place of [material]" in message


def test_settings_reach_materials_and_regions(tmp_path):
    path = write(tmp_path, text=COMPOSITE)
    scenario = load(
        path,
        ["materials.copper.conductivity=390", "regions.0.box.max=[0.03, 0.02, 0.018]", "sources.0.power=60 W"],
    )
    assert scenario.materials["copper"].conductivity == (390.0, 390.0, 390.0)
    assert scenario.regions[0].box.max == (0.03, 0.02, 0.018)
    assert scenario.sources[0].power == 60.0
    ((key, message),) = mistakes_of(path, ["materials.copper.conductivity=-1"])
    assert key == "materials.copper.conductivity"
    assert message.endswith("(from --set)")


def test_a_beam_may_stand_still(tmp_path):
    scenario = read(tmp_path, ("[[0.005, 0.01], [0.035, 0.01]], speed = 0.2", "[[0.02, 0.01]]"))
    assert scenario.sources[2].beam.speed is None


@pytest.mark.parametrize("cells", [8, 80, 77])
def test_patches_side_by_side_cover_every_cell_once(cells, tmp_path):
    scenario = read(tmp_path, ("cells = [8, 6, 4]", f"cells = [{cells}, 6, 4]"))
    left, right = (patch.coverage(scenario.grid)[0] for patch in scenario.patches)
    np.testing.assert_allclose(left + right, 1.0, rtol=1e-13)
    assert np.count_nonzero((left > 0.0) & (right > 0.0)) == (1 if cells == 77 else 0)


def test_resolved_scenario_reads_back_equal(tmp_path):
    scenario = read(tmp_path)
    write_resolved(scenario, tmp_path / "out")
    again = load(tmp_path / "out" / "scenario.toml")
    assert again == scenario
    assert hash(again) == hash(scenario)
    tables = tomllib.loads((tmp_path / "out" / "scenario.toml").read_text(encoding="utf-8"))
    assert "material" not in tables
    assert tables["patches"][0] == {
        "name": "patch 1",
        "face": "z_max",
        "rectangle": {"min": [0.0, 0.0], "max": [0.01, 0.01]},
        "type": "flux",
        "value": 2e4,
    }
    assert tables["regions"][2]["cylinder"]["from"] == [0.005, 0.005, 0.0]
    assert tables["materials"]["silicon"]["specific_heat"] == "700 + 0.4*(T - 300)"
    assert tables["boundaries"]["x_min"]["surroundings"] == 300.0
    write_resolved(again, tmp_path / "again")
    assert (tmp_path / "again" / "scenario.toml").read_bytes() == (tmp_path / "out" / "scenario.toml").read_bytes()


def labels_region(file: str, materials: str = '"1" = "wax", "2" = "void"') -> tuple[str, str]:
    return (DIE, f'labels = {{ file = "{file}", materials = {{ {materials} }} }}')


@pytest.fixture
def labels() -> np.ndarray:
    """Labels of the grid's shape, (nz, ny, nx)."""
    return np.random.default_rng(4).integers(0, 3, (4, 6, 8)).astype(np.uint8)


def save(labels: np.ndarray, path: Path) -> None:
    """Write labels in the format of the file's name; pictures have their top row at y_max."""
    pages = [Image.fromarray(page[::-1].copy()) for page in labels]
    if path.suffix == ".npy":
        np.save(path, labels)
    elif path.suffix:
        pages[0].save(path, save_all=True, append_images=pages[1:])
    else:
        path.mkdir()
        for index, page in enumerate(pages):
            page.save(path / f"slice{index + 8}.png")  # slice10 comes after slice9


@pytest.mark.parametrize("name", ["ct.npy", "ct.tif", "ct"])
def test_labels_come_from_arrays_and_pictures(name, labels, tmp_path):
    save(labels, tmp_path / name)
    scenario = read(tmp_path, labels_region(name), ('material = "void"\ncyl', 'material = "wax"\ncyl'))
    assert (load_labels(scenario.regions[0].labels.file) == labels).all()
    assert scenario.regions[0].materials == ("wax", "void")
    assert scenario.uses_void
    write_resolved(scenario, tmp_path / "out")
    again = load(tmp_path / "out" / "scenario.toml")
    assert again == scenario
    assert (load_labels(again.regions[0].labels.file) == labels).all()


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, bool])
def test_labels_of_other_data_types(dtype, labels, tmp_path):
    Image.fromarray((labels[0] > 0).astype(dtype)[::-1].copy()).save(tmp_path / "one.tif")
    assert (load_labels(LabelFile.of(InputFile.of(tmp_path / "one.tif"))) == (labels[:1] > 0)).all()


LABEL_MISTAKES = {
    "shape": (lambda a: a[1:], "ct.npy", '"1" = "wax"', "regions.0.labels.file", ["has shape (3, 6, 8)", "(4, 6, 8)"]),
    "numbers": (lambda a: a / 2.0, "ct.npy", '"1" = "wax"', "regions.0.labels.file", ["holds float64; whole numbers"]),
    "label": (lambda a: a, "ct.tif", '"one" = "wax"', "regions.0.labels.materials.one", ["whole numbers in quotes"]),
    "absent": (lambda a: a, "ct", '"3" = "wax"', "regions.0.labels.materials.3", ["which holds 0, 1, 2"]),
    "material": (lambda a: a, "ct.npy", '"1" = "waxx"', "regions.0.labels.materials.1", ['did you mean "wax"?']),
    "none": (lambda a: a, "ct.npy", "", "regions.0.labels.materials", ["a material for each label"]),
}


@pytest.mark.parametrize("mistake", LABEL_MISTAKES)
def test_mistake_in_labels(mistake, labels, tmp_path):
    change, file, materials, key, fragments = LABEL_MISTAKES[mistake]
    save(change(labels), tmp_path / file)
    path = write(tmp_path, labels_region(file, materials), text=COMPOSITE)
    ((at, message),) = mistakes_of(path)
    assert at == key
    for fragment in fragments:
        assert fragment in message


@pytest.mark.parametrize("name", ["broken.npy", "broken.tif", "broken"])
def test_unreadable_labels_are_told(name, tmp_path):
    if name == "broken":
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").write_bytes(b"nonsense")
    else:
        (tmp_path / name).write_bytes(b"nonsense")
    ((key, message),) = mistakes_of(write(tmp_path, labels_region(name), text=COMPOSITE))
    assert key == "regions.0.labels.file"
    assert "cannot be read as a" in message


def test_slices_in_the_folder_above_are_copied_under_its_name(labels, tmp_path):
    save(labels, tmp_path / "ct")
    (tmp_path / "ct" / "inner").mkdir()
    path = write(tmp_path / "ct" / "inner", labels_region("..", '"1" = "wax"'), text=COMPOSITE)
    scenario = load(path)
    write_resolved(scenario, tmp_path / "out")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["ct", "out"]
    assert len(list((tmp_path / "out" / "ct").iterdir())) == 4
    assert load(tmp_path / "out" / "scenario.toml") == scenario


def test_slices_come_in_the_order_of_their_numbers(tmp_path):
    for name in ("s10.png", "s2.png", "s1.PNG", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in slice_files(tmp_path)] == ["s1.PNG", "s2.png", "s10.png"]


def test_files_of_equal_names_are_kept_apart(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "part.stl").write_text(TRIANGLE + folder)
    scenario = read(
        tmp_path,
        (DIE, 'material = "silicon"\nstl = "a/part.stl"'),
        (
            'sphere = { centre = [0.02, 0.015, 0.01], radius = "4 mm" }',
            'stl = { file = "b/part.stl", scale = 1e-3, translate = ["1 mm", 0, 0] }',
        ),
    )
    assert scenario.input_files == (tmp_path / "a" / "part.stl", tmp_path / "b" / "part.stl")
    assert (scenario.regions[1].stl.scale, scenario.regions[1].stl.translate) == (1e-3, (1e-3, 0.0, 0.0))
    write_resolved(scenario, tmp_path / "out")
    again = load(tmp_path / "out" / "scenario.toml")
    assert again == scenario
    assert [region.stl.file.path.read_text()[-1] for region in again.regions[:2]] == ["a", "b"]


KEYS = ["name", "material", "box", "sphere", "stl", "labels", "min", "max", "centre", "radius", "from", "to", "file"]
KEYS += ["materials", "type", "value", "face", "rectangle", "condition", "beam", "path", "speed", "power", "during"]
KEYS += ["region", "point", "line", "count", "statistic", "temperatures", "values", "everywhere", "between", "0", "1"]
ANYTHING = anything(KEYS, ["copper", "void", "die", "z_max", "flux", "300 + T", "5 mm", ".", "1/0"])
PLACES = [
    ("materials",),
    ("materials", "copper"),
    ("materials", "copper", "conductivity"),
    ("materials", "wax", "solidus"),
    ("domain", "material"),
    ("regions",),
    ("regions", "0"),
    ("regions", "0", "box"),
    ("regions", "0", "labels"),
    ("regions", "0", "stl"),
    ("regions", "2", "cylinder"),
    ("contacts",),
    ("contacts", "0", "between"),
    ("boundaries", "void"),
    ("boundaries", "x_min", "emissivity"),
    ("patches",),
    ("patches", "0"),
    ("patches", "0", "rectangle"),
    ("patches", "0", "type"),
    ("patches", "0", "condition"),
    ("sources",),
    ("sources", "0"),
    ("sources", "0", "during"),
    ("sources", "1", "scale"),
    ("sources", "2", "beam"),
    ("sources", "2", "beam", "path"),
    ("probes", "1", "line"),
    ("probes", "2"),
    ("time", "stop_below"),
]


@settings(max_examples=150 if SLOW else 90)
@given(place=st.sampled_from(PLACES), value=ANYTHING)
def test_anything_anywhere_gives_a_scenario_or_mistakes_of_one_line(place, value):
    document = tomllib.loads(COMPOSITE)
    Override(place, value).apply(document)
    assert_is_read_or_refused(document, "module.toml")


def test_plain_scenario_knows_nothing_of_void():
    assert not parse(tomllib.loads(TEXT), "rod.toml").uses_void
