import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import anything, assert_is_read_or_refused, mistakes_of
from scenario_text import TEXT, write

from heatsim.errors import ScenarioError
from heatsim.grid import Grid
from heatsim.scenario import Constant, Convection, Flux, Insulated, Periodic, Temperature, load, parse
from heatsim.scenario.documents.overrides import Override


def test_everything_left_out_has_its_default(tmp_path):
    scenario = load(write(tmp_path))
    assert scenario.path == tmp_path / "rod.toml"
    assert scenario.title == "rod"
    assert scenario.grid == Grid((4, 5, 6), (0.1, 0.2, 0.3), (0.0, 0.0, 0.0))
    assert scenario.material.conductivity == (237.0, 237.0, 237.0)
    assert scenario.initial.temperature == 300.0
    assert scenario.boundaries.face("x_min") == Insulated()
    assert (scenario.time.end, scenario.time.dt, scenario.time.safety) == (60.0, "auto", 0.9)
    solver = scenario.solver
    assert (solver.device, solver.kernel, solver.precision) == ("auto", "auto", "auto")
    output = scenario.output
    assert (output.every, output.probe_every, output.checkpoint_wall) == (60.0, 60.0, 60.0)
    assert output.energy
    assert output.figures
    assert scenario.probes == ()
    assert scenario.input_files == ()


def test_everything_given_is_taken_in_si(tmp_path):
    path = write(
        tmp_path,
        ("size = [0.1, 0.2, 0.3]", 'size = ["10 cm", 0.2, 0.3]\norigin = [-1, "5 mm", 0]'),
        ("conductivity = 237.0", 'conductivity = [1, 2, "3 W/(m K)"]'),
        ("end = 60.0", 'end = "1 min"\ndt = "10 ms"'),
        extra="""
[boundaries]
default = { type = "convection", coefficient = 500, ambient = "20 degC" }
x_min = { type = "temperature", value = "300 + t" }
x_max = { type = "flux", value = "-2 kW/m^2" }
y_min = { type = "periodic" }
y_max = { type = "periodic" }
z_min = { type = "insulated" }
[solver]
device = "cpu"
kernel = "numpy"
precision = "float64"
[output]
every = 5
checkpoint_wall = "2 min"
energy = false
figures = false
[[probes]]
name = "surface, centre"
point = [-0.9, 0.205, "30 cm"]
""",
    )
    scenario = load(path, ['title=A "quoted" title'])
    assert scenario.title == 'A "quoted" title'
    assert scenario.grid == Grid((4, 5, 6), (0.1, 0.2, 0.3), (-1.0, 0.005, 0.0))
    assert scenario.material.conductivity == (1.0, 2.0, 3.0)
    assert (scenario.time.end, scenario.time.dt, scenario.time.safety) == (60.0, 0.01, 0.9)
    faces = [scenario.boundaries.face(name) for name in ("x_min", "x_max", "y_min", "y_max", "z_min", "z_max")]
    assert [type(face) for face in faces] == [Temperature, Flux, Periodic, Periodic, Insulated, Convection]
    assert [face.type for face in faces] == ["temperature", "flux", "periodic", "periodic", "insulated", "convection"]
    assert faces[1].value == Constant(-2000.0)
    assert faces[5] == Convection(coefficient=500.0, ambient=293.15)
    assert scenario.solver.kernel == "numpy"
    assert (scenario.output.every, scenario.output.probe_every) == (5.0, 5.0)
    assert scenario.output.checkpoint_wall == 120.0
    assert not scenario.output.energy
    assert scenario.probes[0].name == "surface, centre"
    assert scenario.probes[0].point == (-0.9, 0.205, 0.3)


def test_all_faces_may_be_periodic(tmp_path):
    scenario = load(write(tmp_path, extra='[boundaries]\ndefault = { type = "periodic" }'))
    assert scenario.boundaries.face("z_max") == Periodic()
    with pytest.raises(KeyError):
        scenario.boundaries.face("default")


def test_probe_on_the_far_corner_is_inside_whatever_the_rounding(tmp_path):
    path = write(
        tmp_path,
        ("size = [0.1, 0.2, 0.3]", "size = [0.6, 0.2, 0.3]\norigin = [0.3, 0.1, 0.0]"),
        extra='[[probes]]\nname = "corner"\npoint = [0.9, 0.3, 0.3]',
    )
    assert load(path).probes[0].point == (0.9, 0.3, 0.3)


def test_scenario_cannot_be_changed(tmp_path):
    scenario = load(write(tmp_path))
    with pytest.raises(ValueError, match="frozen"):
        scenario.time.end = 1.0


def test_tables_in_memory_are_read_like_a_file():
    document = {
        "domain": {"size": [1.0, 1.0, 1.0], "cells": [1, 1, 1]},
        "material": {"conductivity": 1.0, "density": 1.0, "specific_heat": 1.0},
        "initial": {"temperature": 300.0},
        "time": {"end": 1.0},
    }
    assert parse(document, "folder/one_cell.toml").title == "one_cell"
    assert parse(document, Path("odd\nname.toml")).title == "odd_name"
    with pytest.raises(ScenarioError, match=r"one_cell.toml: time: missing"):
        parse({key: document[key] for key in ("domain", "material", "initial")}, "folder/one_cell.toml")


# A replacement of a line of TEXT, text added at its end, and the key and fragments of its one mistake.
MISTAKES = {
    "missing table": (("[time]\nend = 60.0", ""), "", "time", ["missing; write for example [time] with end = 60.0"]),
    "missing key": (("end = 60.0", ""), "", "time.end", ["missing; write for example end = 60.0"]),
    "missing size": (("size = [0.1, 0.2, 0.3]", ""), "", "domain.size", ["size = [0.1, 0.1, 0.1]"]),
    "table is a number": (("[time]\nend = 60.0", ""), "", "time", ["got 5; write a table", "[time]"]),
    "unknown table": ((), "[boundary]", "boundary", ["got {}; unknown key", 'did you mean "boundaries"?']),
    "unknown key": (("end = 60.0", "end = 60.0\nsaftey = 1"), "", "time.saftey", ["got 1;", 'did you mean "safety"?']),
    "key of another table": (
        ("end = 60.0", "end = 60.0\nevery = 1"),
        "",
        "time.every",
        ["unknown key", 'there is "output.every"'],
    ),
    "strange key": (("end = 60.0", 'end = 60.0\n"a b\\n" = 1'), "", r'time."a b\n"', ["unknown key"]),
    "size not three": (
        ("[0.1, 0.2, 0.3]", "[0.1, 0.2]"),
        "",
        "domain.size",
        ["got [0.1, 0.2]; a list of three", "of m"],
    ),
    "size not a list": (("[0.1, 0.2, 0.3]", "0.1"), "", "domain.size", ["got 0.1; a list of three"]),
    "size zero": (("0.2, 0.3]", "0, 0.3]"), "", "domain.size.1", ["got 0; a length must be greater than 0 m"]),
    "size not finite": (("0.2, 0.3]", "inf, 0.3]"), "", "domain.size.1", ["got inf; a length must be finite"]),
    "size huge": (("0.2, 0.3]", "1e200, 0.3]"), "", "domain.size.1", ["got 1e+200; a length must be at most 1e+30 m"]),
    "size tiny": (
        ("0.2, 0.3]", "1e-200, 0.3]"),
        "",
        "domain.size.1",
        ["got 1e-200; a length must be at least 1e-30 m"],
    ),
    "size of time": (("0.2, 0.3]", '"5 s", 0.3]'), "", "domain.size.1", ['got "5 s"', "in m", '"5 mm"']),
    "cells float": (("5, 6]", "5.0, 6]"), "", "domain.cells.1", ["got 5.0; a whole number of cells from 1"]),
    "cells zero": (("5, 6]", "0, 6]"), "", "domain.cells.1", ["got 0; a whole number"]),
    "cells bool": (("5, 6]", "true, 6]"), "", "domain.cells.1", ["got true; a whole number"]),
    "cells too many": (("5, 6]", "1048576, 1048576]"), "", "domain.cells", ["4398046511104 cells", "at most 2^40"]),
    "cells not a list": (("[4, 5, 6]", "64"), "", "domain.cells", ["got 64; a list of three numbers of cells"]),
    "origin not finite": (
        ("[4, 5, 6]", "[4, 5, 6]\norigin = [0, nan, 0]"),
        "",
        "domain.origin.1",
        ["got nan", "finite"],
    ),
    "conductivity zero": (
        ("237.0", "0"),
        "",
        "material.conductivity",
        ["got 0; a conductivity must be greater than 0"],
    ),
    "conductivity bool": (("237.0", "true"), "", "material.conductivity", ["got true", "in W/(m K)"]),
    "conductivity entry": (("237.0", "[1, -2, 3]"), "", "material.conductivity.1", ["got -2; a conductivity"]),
    "conductivity short": (("237.0", "[1, 2]"), "", "material.conductivity", ["got [1, 2]; a list of three"]),
    "density text": (("2700.0", '"2700"'), "", "material.density", ['got "2700"', "no quotes", '"2.7 g/cm^3"']),
    "density negative": (("2700.0", "-1"), "", "material.density", ["got -1; a density must be greater than 0 kg/m^3"]),
    "specific heat list": (
        ("900.0", "[900.0]"),
        "",
        "material.specific_heat",
        ["got [900.0]; a specific heat is expected, as a number in J/(kg K)", "temperatures = […]"],
    ),
    "below 0 K": (("= 300.0", '= "-300 degC"'), "", "initial.temperature", ["which is -26.85", "at least 0 K"]),
    "initial expression": (("= 300.0", '= "300 + r"'), "", "initial.temperature", ['"r" is not known']),
    "initial file": (("= 300.0", '= { file = "no.npy" }'), "", "initial.temperature.file", ["there is no such file"]),
    "end zero": (("60.0", "0"), "", "time.end", ["got 0; a duration must be greater than 0 s"]),
    "end date": (("60.0", "2024-01-01"), "", "time.end", ["got 2024-01-01; a duration is expected"]),
    "dt word": (("60.0", '60.0\ndt = "Auto"'), "", "time.dt", ['or "auto"', 'did you mean "auto"?']),
    "dt negative": (("60.0", "60.0\ndt = -1"), "", "time.dt", ["got -1; a duration must be greater", 'or "auto"']),
    "safety": (("60.0", "60.0\nsafety = 1.5"), "", "time.safety", ["got 1.5; a fraction must be at most 1"]),
    "safety beside dt": (
        ("60.0", "60.0\ndt = 0.1\nsafety = 0.9"),
        "",
        "time.safety",
        ["got 0.9 beside dt = 0.1", 'write dt = "auto"'],
    ),
    "safety zero": (("60.0", "60.0\nsafety = 0"), "", "time.safety", ["greater than 0 and at most 1"]),
    "title number": (("[domain]", "title = 5\n[domain]"), "", "title", ["got 5; a text in quotes"]),
    "title empty": (("[domain]", 'title = ""\n[domain]'), "", "title", ['got ""; a text in quotes']),
    "title lines": (
        ("[domain]", 'title = "a\\nb\\u2028"\n[domain]'),
        "",
        "title",
        [r'got "a\nb\u2028"', "on one line"],
    ),
    "title that turns": (
        ("[domain]", 'title = "a\\u202Eb"\n[domain]'),
        "",
        "title",
        [r'got "a\u202eb"', "remove the character U+202E"],
    ),
    "title that colours": (
        ("[domain]", 'title = "a\\u001B[31m"\n[domain]'),
        "",
        "title",
        ["remove the character U+001B"],
    ),
    "face number": ((), "[boundaries]\nx_min = 5", "boundaries.x_min", ["got 5; write for example { type = "]),
    "face name": ((), '[boundaries]\nxmin = { type = "insulated" }', "boundaries.xmin", ['did you mean "x_min"?']),
    "face without type": (
        (),
        "[boundaries]\nx_min = { value = 5 }",
        "boundaries.x_min.type",
        ["missing", 'type = "temperature"', '"periodic"'],
    ),
    "face of unknown type": (
        (),
        '[boundaries]\nx_min = { type = "temprature", value = 3 }',
        "boundaries.x_min.type",
        ['got "temprature"', '"convection"', 'did you mean "temperature"?'],
    ),
    "face type number": ((), "[boundaries]\nx_min = { type = 5 }", "boundaries.x_min.type", ["got 5; one of"]),
    "face without value": (
        (),
        '[boundaries]\nx_min = { type = "flux" }',
        "boundaries.x_min.value",
        ["missing; write for example value = 2000.0"],
    ),
    "face with key of another type": (
        (),
        '[boundaries]\nx_min = { type = "temperature", value = 300, temperature = 3 }',
        "boundaries.x_min.temperature",
        ["got 3; unknown key: the keys allowed here are type, value"],
    ),
    "default face": (
        (),
        '[boundaries]\ndefault = { type = "convection", coefficient = -1, ambient = 300 }',
        "boundaries.default.coefficient",
        ["got -1; a heat transfer coefficient must be at least 0 W/(m^2 K)"],
    ),
    "face expression": (
        (),
        '[boundaries]\nx_min = { type = "temperature", value = "300 - 10*t" }',
        "boundaries.x_min.value",
        ["at t = 30.", "at least 0 K"],
    ),
    "face table": (
        (),
        '[boundaries]\nx_min = { type = "flux", value = { times = [0, 2, 1], values = [1, 2, 3] } }',
        "boundaries.x_min.value.times.2",
        ["times must increase"],
    ),
    "periodic on one side": (
        (),
        '[boundaries]\ny_max = { type = "periodic" }',
        "boundaries.y_max",
        ['got type "periodic" while boundaries.y_min has type "insulated"', "both faces of an axis"],
    ),
    "device": ((), '[solver]\ndevice = "gpu"', "solver.device", ['got "gpu"; one of "auto", "cuda", "cpu"']),
    "precision": ((), '[solver]\nprecision = "float23"', "solver.precision", ['did you mean "float32"?']),
    "rounding": ((), "[solver]\nrounding = true", "solver.rounding", ["unknown"]),
    "kernel": ((), "[solver]\nkernel = 1", "solver.kernel", ["got 1; a text in quotes"]),
    "energy": ((), '[output]\nenergy = "yes"', "output.energy", ['got "yes"; true or false']),
    "every": ((), "[output]\nevery = 0", "output.every", ["got 0; a duration"]),
    "checkpoint_wall": ((), "[output]\ncheckpoint_wall = inf", "output.checkpoint_wall", ["got inf", "finite"]),
    "probes not a list": ((), "[probes]\nname = 3", "probes", ["got { name = 3 }", "[[probes]]"]),
    "probe not a table": (("[domain]", "probes = [3]\n[domain]"), "", "probes.0", ["got 3", "[[probes]]"]),
    "probe without point": ((), '[[probes]]\nname = "a"', "probes.0.point", ["missing", "point = ["]),
    "probe key": ((), '[[probes]]\nname = "a"\npoint = [0, 0, 0]\nat = 1', "probes.0.at", ["unknown key"]),
    "probe named time": ((), '[[probes]]\nname = "time"\npoint = [0, 0, 0]', "probes.0.name", ["first column"]),
    "probe name empty": ((), '[[probes]]\nname = " "\npoint = [0, 0, 0]', "probes.0.name", ["not empty"]),
    "probe outside": (
        (),
        '[[probes]]\nname = "a"\npoint = [0, 0.21, 0]',
        "probes.0.point.1",
        ["got 0.21; the domain reaches from 0.0 to 0.2 m along y"],
    ),
    "probe twice": (
        (),
        '[[probes]]\nname = "a"\npoint = [0, 0, 0]\n[[probes]]\nname = "a"\npoint = [0, 0, 0]',
        "probes.1.name",
        ['got "a" a second time'],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_told_with_key_value_and_what_is_allowed(mistake, tmp_path):
    change, extra, key, fragments = MISTAKES[mistake]
    path = write(tmp_path, *([change] if change else []), extra=f"\n{extra}\n")
    if mistake == "table is a number":
        path.write_text("time = 5\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    ((at, message),) = mistakes_of(path)
    assert at == key
    for fragment in fragments:
        assert fragment in message


def test_all_mistakes_are_told_together(tmp_path):
    path = write(
        tmp_path,
        ("cells = [4, 5, 6]", "cells = [4, 5, 6]\nsell = 3"),
        ("density = 2700.0", "density = -1"),
        ("end = 60.0", "end = 60.0\ndt = true"),
        extra="""
[boundaries]
x_min = { type = "temperature", value = "300 - 10*t" }
x_max = { type = "periodic" }
y_min = { type = "periodic" }
z_min = { type = "nonsense" }
[[probes]]
name = "far"
point = [9, 0, 0]
[[probes]]
name = "far"
""",
    )
    assert [key for key, _ in mistakes_of(path)] == [
        "domain.sell",
        "material.density",
        "time.dt",
        "boundaries.x_min.value",
        "boundaries.x_max",
        "boundaries.y_max",
        "boundaries.z_min.type",
        "probes.0.point.0",
        "probes.1.name",
        "probes.1.point",
    ]


def test_what_default_stands_for_is_not_judged_while_it_is_wrong(tmp_path):
    path = write(tmp_path, extra='[boundaries]\ndefault = { type = "periodc" }\nx_max = { type = "periodic" }')
    assert [key for key, _ in mistakes_of(path)] == ["boundaries.default.type"]


@pytest.mark.parametrize(
    ("content", "fragments"),
    [
        (b"[domain\n", ["not readable as TOML", "line 1"]),
        (b"a = 1\nb = = 2\n", ["not readable as TOML", "line 2, column 5"]),
        (b"a = 1\na = 2\n", ["not readable as TOML", "line 2", ": a = 2; ", "a second time"]),
        (b"[a]\nb = 1\r\n[a]\n", ["line 3", ": [a]; ", "a second time"]),
        ("a = “b”\n".encode(), ["line 1", "a = “b”; write a straight quote", "“"]),
        ("[t]\na = −5\n".encode(), ["line 2", "a = −5; write a plain minus sign -"]),
        ("a\u00a0= 5\n".encode(), ["line 1", "write a plain space"]),
        (b"a: 5\n", ["line 1", "a: 5; write an equals sign ="]),
        (b"a = 0,5\n", ["a = 0,5; write a number with a decimal point"]),
        (b"a = 3,600\n", ["a = 3,600; write 3600, or 3.600 if the comma is a decimal point"]),
        (b"a = 1,234,567\n", ["a = 1,234,567; write 1234567"]),
        (b"a = { b = 0,5, c = 1 }\n", ["write a number with a decimal point"]),
        (b"a = [5 mm, 3]\n", ['write a value and its unit as a text in quotes, such as "5 mm"']),
        (b"a = 5 s\n", ["write a value and its unit as a text in quotes"]),
        (b"a = cpu\n", ["a = cpu; write a text in quotes"]),
        (b"a = 1\na = 2", ["this key or table is there a second time"]),
        (b"a = [1, 2\nb = 3\n", ["line 2", "close the bracket [ of a list"]),
        (b'a = "C:\\data\\part.stl"\n', ["write / instead of \\ in a path"]),
        (b"a = True\n", ["write true or false in small letters"]),
        (b'a = "b\n', ["close the quotes of the text"]),
        (b"a = 1\rb = 2\x1b\n", ["a = 1?b = 2?"]),
        (b"a = 1\nb = '\xff'\n", ["byte 0xff in line 2 is not UTF-8"]),
        *(("a = 1\n".encode(code), ["is UTF-16 text; save it as UTF-8"]) for code in ("utf-16", "utf-16-be")),
        (b"a = " + b"[" * 5000, ["nested too deeply"]),
        (b"a = 1" + b"0" * 5000, ["not readable as TOML: a whole number has thousands of digits"]),
        (b".".join([b"a"] * 2000) + b" = 1", ["a key has more than 50 parts"]),
        (b"[" + b".".join([b"a"] * 2000) + b"]", ["a key has more than 50 parts"]),
    ],
)
def test_unreadable_file_is_told_with_its_line(content, fragments, tmp_path):
    path = tmp_path / "rod.toml"
    path.write_bytes(content)
    ((key, message),) = mistakes_of(path)
    assert key == ""
    for fragment in fragments:
        assert fragment in message


def test_a_long_key_is_cut_in_a_message(tmp_path):
    with pytest.raises(ScenarioError) as caught:
        load(write(tmp_path, extra="k" * 5000 + " = 1"))
    assert "k" * 190 + "…: got 1; unknown key" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_missing_file_is_told_with_its_neighbour(tmp_path):
    write(tmp_path, name="cube.toml")
    assert mistakes_of(tmp_path / "cubes.toml") == [
        ("", f'there is no such file; did you mean "{tmp_path / "cube.toml"}"?')
    ]
    assert mistakes_of(tmp_path / "nowhere" / "x.toml") == [("", "there is no such file")]
    assert mistakes_of(tmp_path) == [("", f"is a folder; give a TOML file, for instance {tmp_path / 'cube.toml'}")]


def test_byte_order_mark_and_windows_lines_are_no_mistake(tmp_path):
    path = tmp_path / "rod.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    assert load(path).time.end == 60.0


def test_plain_scenario_loads_without_slow_libraries(tmp_path):
    code = "import sys; from heatsim.scenario import load; load(sys.argv[1]); print(*sys.modules)"
    path = write(tmp_path, extra='[boundaries]\nx_min = { type = "temperature", value = "300 + t" }')
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=root, capture_output=True, text=True, check=True)
    assert not {"pint", "PIL", "matplotlib", "numba", "cupy", "pyvista", "h5py"} & set(done.stdout.split())


KEYS = ["title", "domain", "time", "initial", "boundaries", "solver", "output", "probes", "size", "end", "temperature"]
KEYS += [
    "default",
    "x_min",
    "type",
    "value",
    "times",
    "values",
    "repeat",
    "file",
    "image",
    "range",
    "name",
    "point",
    "0",
]
ANYTHING = anything(KEYS, ["20 degC", "auto", "temperature", "flux", "periodic", "300 + t", "x/0", "5 m", ".", "/"])
PLACES = [
    ("domain", "size"),
    ("domain", "cells"),
    ("domain",),
    ("material", "conductivity"),
    ("initial", "temperature"),
]
PLACES += [("time", "end"), ("time", "dt"), ("boundaries",), ("boundaries", "x_min"), ("boundaries", "x_min", "value")]
PLACES += [("probes",), ("probes", "0"), ("solver", "kernel"), ("output",), ("strange", "place")]


@settings(max_examples=300)
@given(place=st.sampled_from(PLACES), value=ANYTHING)
def test_anything_anywhere_gives_a_scenario_or_mistakes_of_one_line(place, value):
    document = tomllib.loads(TEXT + '[boundaries]\nx_min = { type = "flux", value = 1 }')
    Override(place, value).apply(document)
    assert_is_read_or_refused(document, "rod.toml")
