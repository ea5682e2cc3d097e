"""Rooms: void regions that [[surfaces]] and probes name."""

import csv
import tomllib
from math import log, pi
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
from void_bodies import with_void

from heatsim import Simulation
from heatsim.commands.geometry import geometry_of
from heatsim.errors import ScenarioError
from heatsim.parallel.team import ALONE
from heatsim.physics.problem import HeatProblem
from heatsim.run.initial_state import initial_state
from heatsim.run.plan import Plan
from heatsim.run.plan_model import describe_model
from heatsim.scenario import Scenario, load, parse, write_resolved
from heatsim.solver.ledger.heats import HeatRows
from heatsim.solver.make_stepper import make_stepper
from heatsim.storage import folder

# A wall of 10 cm between two rooms of 10 cm, 1 cm²; its surfaces exchange heat with the air.
WALL = with_void(
    "0.3, 0.01, 0.01",
    "30, 2, 2",
    "plaster",
    (0.5, 1200.0, 1000.0),
    room="0.0, 0.0, 0.0 to 0.1, 0.01, 0.01",
    outside="0.2, 0.0, 0.0 to 0.3, 0.01, 0.01",
)
WALL += """
[initial]
temperature = 280.0
[time]
end = 10.0
[solver]
device = "cpu"
precision = "float64"
[output]
figures = false
error = "none"
"""
FILM = 'type = "convection"\ncoefficient = {}\nambient = {}\n'
IN = f'[[surfaces]]\nof = "room"\n{FILM.format(8.0, 293.15)}'
OUT = f'[[surfaces]]\nbetween = ["outside", "plaster"]\n{FILM.format(25.0, 273.15)}'
PROBES = """[[probes]]
name = "inside"
surface = "room"
statistic = "min"
[[probes]]
name = "of the wall"
surface = "outside"
region = "wall"
statistic = "max"
"""
PAINTED = """[[regions]]
name = "wall"
material = "plaster"
box = { min = [0.1, 0.0, 0.0], max = [0.2, 0.01, 0.01] }
"""


def box(name: str, material: str, low: str, high: str) -> str:
    return f'[[regions]]\nname = "{name}"\nmaterial = "{material}"\nbox = {{ min = {low}, max = {high} }}\n'


def scenario(text: str) -> Scenario:
    return parse(tomllib.loads(text), "rooms.toml")


def problem(text: str) -> HeatProblem:
    return HeatProblem.from_scenario(scenario(text))


def last_rows(at: Path, text: str) -> dict[str, float]:
    """The last rows of energy.csv and of probes.csv of a run, by column."""
    path, found = runs.write(at, text), dict[str, float]()
    Simulation.from_scenario(path, output=at / "out").run()
    for name in (folder.ENERGY, folder.PROBES):
        with open(at / "out" / name, newline="", encoding="utf-8") as file:
            found |= {column: float(value or "nan") for column, value in [*csv.DictReader(file)][-1].items()}
    return found


def refusals(text: str) -> dict[str, str]:
    with pytest.raises(ScenarioError) as caught:
        initial_state(Plan.of(problem(text), ALONE), Path("nowhere"))
    return {mistake.key: mistake.message for mistake in caught.value.mistakes}


def after(of: HeatProblem, steps: int) -> tuple[HeatRows, Any]:
    """The heats through surfaces after some steps, and the field."""
    plan = Plan.of(of, ALONE)
    state = initial_state(plan, Path("nowhere"))
    make_stepper(plan.part, state.field, state.ledger, plan.kernel, arrays=state.arrays).advance(steps)
    return state.ledger.heats(), state.field.temperature()


def heats_of(of: HeatProblem, rows: HeatRows) -> dict[str, float]:
    return dict(zip(("void", *of.boundary.named), rows.towards_void[0].tolist(), strict=True))


def test_a_wall_between_two_rooms(tmp_path: Path) -> None:
    """1/8 + 0.1/0.5 + 1/25 m² K/W: each room has its heat, in and out, and its surface its temperature."""
    row = last_rows(tmp_path, WALL.replace("end = 10.0", STEADY) + PAINTED + IN + OUT + PROBES)
    q = 20.0 / (1 / 8.0 + 0.1 / 0.5 + 1 / 25.0)
    expected = {"room": q * 1e-4, "outside to plaster": -q * 1e-4, "outside": -q * 1e-4}
    for name, heat in expected.items():
        assert row[f"surface {name} (W)"] == pytest.approx(heat, rel=1e-9)
        assert row[f"in surface {name} (W)"] == pytest.approx(max(heat, 0.0), rel=1e-9)
        assert row[f"out surface {name} (W)"] == pytest.approx(max(-heat, 0.0), rel=1e-9)
    assert row["inside (K)"] == pytest.approx(293.15 - q / 8.0, rel=1e-9)
    assert row["of the wall (K)"] == pytest.approx(273.15 + q / 25.0, rel=1e-9)


def test_an_inner_corner(tmp_path: Path) -> None:
    """Walls of a thickness d that meet at a right angle lose k·(1 − (2/π)·ln 2) more than k/d for each length inside.

    The room lies in the corner. Both sides are held; the walls are 2 d long, where the flow across them is even.
    """
    n, d, room = 40, 0.1, 2
    cells = n * (1 + room) + 1  # one plane of the outside
    step = d / n
    text = f"""
[domain]
size = [{cells * step}, {cells * step}, {step}]
cells = [{cells}, {cells}, 1]
[materials.wall]
conductivity = 0.7
density = 1.0
specific_heat = 1.0
[[regions]]
name = "outside"
material = "void"
everywhere = true
[[regions]]
name = "walls"
material = "wall"
box = {{ min = [{step}, {step}, 0.0], max = [1.0, 1.0, 1.0] }}
[[regions]]
name = "room"
material = "void"
box = {{ min = [{step + d}, {step + d}, 0.0], max = [1.0, 1.0, 1.0] }}
[time]
method = "steady"
tolerance = 1e-6
[solver]
device = "cpu"
precision = "float64"
[output]
figures = false
error = "none"
[[probes]]
name = "wall"
statistic = "mean"
[[surfaces]]
of = "room"
type = "temperature"
value = 301.0
[[surfaces]]
of = "outside"
type = "temperature"
value = 300.0
"""
    row = last_rows(tmp_path, text)
    inwards, outwards = row["surface room (W)"], row["surface outside (W)"]
    assert inwards == pytest.approx(-outwards, rel=1e-6)
    psi = inwards / step - 0.7 * 2 * room
    assert psi == pytest.approx(0.7 * (1.0 - 2.0 / pi * log(2.0)), rel=0.01)


def random_body(rng: np.random.Generator) -> tuple[str, dict[str, Any]]:
    """A body of boxes of two materials and of void, on cells of several widths; and what it is made of."""
    counts = rng.integers(3, 7, 3)
    widths = [rng.choice([0.01, 0.015], n) * rng.uniform(0.9, 1.1) for n in counts]
    borders = [np.concatenate(([0.0], np.cumsum(of))) for of in widths]
    text = "[domain]\n" + f'material = "{rng.choice(["plaster", "brick", "void"])}"\n'
    for axis, of in zip("xyz", widths, strict=True):
        text += f"[domain.{axis}]\nwidths = {of.tolist()}\n"
    text += "[boundaries]\n" + f"void = {{ {FILM.format(7.0, 300.0).strip().replace(chr(10), ', ')} }}\n"
    periodic = rng.random(3) < 0.4
    for axis, wraps in zip("xyz", periodic, strict=True):
        text += "".join(f'{axis}_{end} = {{ type = "periodic" }}\n' for end in ("min", "max") if wraps)
    for name, k in (("plaster", 0.5), ("brick", 2.0)):
        text += f"[materials.{name}]\nconductivity = {k}\ndensity = 1000.0\nspecific_heat = 1000.0\n"
    regions = [("plaster", "r0"), ("void", "r1"), ("brick", "r2"), ("void", "r3"), ("void", "r4")]
    material, owner = (
        np.full(counts, tomllib.loads(text)["domain"]["material"], dtype=object),
        np.full(counts, "", dtype=object),
    )
    for number in rng.permutation(len(regions)).tolist():
        of, name = regions[number]
        low = [int(rng.integers(0, n - 1)) for n in counts]
        high = [int(rng.integers(first + 1, n + 1)) for first, n in zip(low, counts, strict=True)]
        corners = [[float(borders[a][at[a]]) for a in range(3)] for at in (low, high)]
        text += f'[[regions]]\nname = "{name}"\nmaterial = "{of}"\n'
        text += f"box = {{ min = {corners[0]}, max = {corners[1]} }}\n"
        box = tuple(slice(*ends) for ends in zip(low, high, strict=True))
        material[box], owner[box] = of, name
    text += WALL[WALL.index("[initial]") :].replace("end = 10.0", 'end = 1.0\ndt = 0.125\nmethod = "euler"')
    return text, {"widths": widths, "periodic": periodic, "material": material, "owner": owner}


def faces_of(body: dict[str, Any]) -> list[tuple[str, str, str, float, float]]:
    """Of each face towards void: material, region and room beside it, its area, and the resistance of the half cell."""
    material, owner, found = body["material"], body["owner"], []
    for cell in np.ndindex(material.shape):
        if material[cell] == "void":
            continue
        for axis, step in ((axis, step) for axis in range(3) for step in (-1, 1)):
            beyond, n = list(cell), material.shape[axis]
            beyond[axis] += step
            if not 0 <= beyond[axis] < n and not body["periodic"][axis]:
                continue
            beyond[axis] %= n
            if material[tuple(beyond)] == "void":
                d = [body["widths"][a][cell[a]] for a in range(3)]
                k = {"plaster": 0.5, "brick": 2.0}[material[cell]]
                area = float(np.prod([d[a] for a in range(3) if a != axis]))
                found.append((material[cell], owner[cell], owner[tuple(beyond)], area, d[axis] / (2.0 * k)))
    return found


def random_surfaces(rng: np.random.Generator) -> list[tuple[tuple[str, ...], float, float]]:
    """The names, film coefficient and ambient of some surfaces."""
    names: list[tuple[str, ...]] = []
    for room in ("r1", "r3", "r4"):
        parts = [("plaster",), ("brick",), ("r0", "r2"), (), ()][rng.integers(5)]
        names += [(room,)] if rng.random() < 0.4 else [(part, room) for part in parts]
    names += [(part,) for part in ("r0", "r2") if rng.random() < 0.2]
    order = rng.permutation(len(names)).tolist()
    return [(names[n], float(rng.uniform(1.0, 50.0)), float(rng.uniform(250.0, 350.0))) for n in order]


@pytest.mark.quick("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
@pytest.mark.parametrize("seed", range(24))
def test_random_rooms_have_the_heats_of_their_faces(seed: int) -> None:
    """Face by face: the heat of the first step, and which surfaces meet or have no face; in any order of regions."""
    rng = np.random.default_rng(seed)
    text, body = random_body(rng)
    surfaces = random_surfaces(rng)
    rooms = {"r1", "r3", "r4"}
    for names, film, ambient in surfaces:
        key = f'of = "{names[0]}"' if len(names) == 1 else f"between = {list(names)}".replace("'", '"')
        text += f"[[surfaces]]\n{key}\n{FILM.format(film, ambient)}"
    expected: dict[str, float] = dict.fromkeys(["void", *(" to ".join(names) for names, *_ in surfaces)], 0.0)
    expected |= dict.fromkeys({names[1] for names, *_ in surfaces if len(names) == 2}, 0.0)
    held = np.zeros(len(surfaces), int)
    meet = False
    for material, region, room, area, half in faces_of(body):
        own = [
            number
            for number, (names, *_) in enumerate(surfaces)
            if all(name == room if name in rooms else name in (material, region) for name in names)
        ]
        held[own] += 1
        meet |= len(own) > 1
        _, film, ambient = surfaces[own[0]] if own else ((), 7.0, 300.0)
        heat = area * (ambient - 280.0) / (1.0 / film + half) * 0.125
        for name in {"void", room, *(" to ".join(surfaces[number][0]) for number in own)} & expected.keys():
            expected[name] += heat
    if (body["material"] == "void").all():
        return
    empty = any(count == 0 and rooms & set(names) for count, (names, *_) in zip(held, surfaces, strict=True))
    if meet or empty:
        found = refusals(text)
        assert any("in common with" in message for message in found.values()) == meet
        assert any("border" in message or "painted over" in message for message in found.values()) == empty
        return
    of = problem(text)
    found = heats_of(of, after(of, 1)[0])
    if not of.materials.weighted_surfaces.void:
        expected = dict.fromkeys(found, 0.0)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.quick("100", "101", "102", "103", "104", "105")
@pytest.mark.parametrize("seed", range(100, 112))
def test_rooms_together_have_the_heat_of_all_void(seed: int) -> None:
    """With one condition for all, names of rooms change nothing but how the heat is booked."""
    text, body = random_body(np.random.default_rng(seed))
    rooms = {room for *_, room, _, _ in faces_of(body)} - {""}
    if not rooms:
        pytest.skip("a body without rooms")
    named = text + "".join(f'[[surfaces]]\nof = "{room}"\n{FILM.format(7.0, 300.0)}' for room in sorted(rooms))
    one, other = problem(text), problem(named)
    (heats, T), (of_rooms, same) = after(one, 8), after(other, 8)
    np.testing.assert_allclose(same, T, rtol=1e-14)
    total, found = heats_of(one, heats)["void"], heats_of(other, of_rooms)
    assert found["void"] == pytest.approx(total, rel=1e-12)
    beside = sum(area for *_, room, area, _ in faces_of(body) if not room)
    if not beside:
        assert sum(found[room] for room in rooms) == pytest.approx(total, rel=1e-12)


def test_the_rest_of_a_room_and_of_a_power() -> None:
    """The room has the heat of all its parts; the power of a region is whole where a part of it lies in the room."""
    text = WALL + PAINTED.replace('"wall"', '"left"').replace("0.2,", "0.15,")
    text = text.replace("cells = [30, 2, 2]", "cells = [30, 4, 4]")
    text += box("stove", "plaster", "[0.05, 0.0, 0.0]", "[0.1, 0.005, 0.01]")
    text += '[[surfaces]]\nof = "stove"\ntype = "flux"\npower = 3.0\n'
    text += f'[[surfaces]]\nbetween = ["left", "room"]\n{FILM.format(8.0, 300.0)}'
    text += f'[[surfaces]]\nof = "outside"\n{FILM.format(8.0, 300.0)}'
    of = problem(text.replace("end = 10.0", 'end = 1.0\ndt = 0.5\nmethod = "euler"'))
    found = heats_of(of, after(of, 1)[0])
    film = 1.0 / (1.0 / 8.0 + 0.005 / 0.5)
    assert found["stove"] == pytest.approx(1.5, rel=1e-12)
    assert found["left to room"] == pytest.approx(0.5e-4 * film * 20.0 * 0.5, rel=1e-12)
    assert found["room"] == pytest.approx(found["stove"] + found["left to room"], rel=1e-12)
    assert found["void"] == pytest.approx(found["room"] + found["outside"], rel=1e-12)


def test_one_room_is_all_void_to_the_bit() -> None:
    """Also with layers on held surfaces, which need to know what lies beyond them."""
    layer = '[[layers]]\nmaterial = "copper"\nthickness = "1 mm"\nplane = { axis = "x", at = 0.1 }\n'
    copper = "[materials]\ncopper = { conductivity = 390.0, density = 8900.0, specific_heat = 385.0 }"
    text = (WALL.replace("[materials]", copper) + layer).replace("end = 10.0", 'end = 10.0\nmethod = "euler"')
    held = 'type = "temperature"\nvalue = 300.0\n'
    void = f"[boundaries]\nvoid = {{ {held.strip().replace(chr(10), ', ')} }}\n"
    both = "".join(f'[[surfaces]]\nof = "{room}"\n{held}' for room in ("room", "outside"))
    (heats, T), (same_heats, same) = after(problem(text + void), 20), after(problem(text + both), 20)
    np.testing.assert_array_equal(T, same)
    assert same_heats.towards_void[0, 0] == pytest.approx(heats.towards_void[0, 0], rel=1e-14)
    other = text + both.replace("300.0", "290.0", 1).replace('type = "temperature"', 'type = "temperature"')
    assert abs(after(problem(other), 20)[1] - T).max() > 1.0


def test_values_that_vary_in_space_towards_rooms() -> None:
    """The flux 1e3·y on one of two rooms, and a film on the other, whose condition does not vary."""
    varying = '[[surfaces]]\nof = "room"\ntype = "flux"\nvalue = "1e6*y"\n'
    of = problem(WALL.replace("end = 10.0", 'end = 1.0\ndt = 0.5\nmethod = "euler"') + varying + OUT)
    found = heats_of(of, after(of, 1)[0])
    assert found["room"] == pytest.approx(1e6 * 0.005 * 1e-4 * 0.5, rel=1e-9)
    film = 1.0 / (1.0 / 25.0 + 0.005 / 0.5)
    assert found["outside"] == pytest.approx(1e-4 * film * -6.85 * 0.5, rel=1e-9)


def test_round_rooms_and_axial_rooms() -> None:
    """A flux through the smooth area of a sphere-shaped room, 4·π·r², and of a ring-shaped one of an axial domain."""
    text = WALL.replace("[0.3, 0.01, 0.01]", "[0.3, 0.1, 0.1]").replace("[30, 2, 2]", "[48, 16, 16]")
    text = text[: text.index("[[regions]]")] + text[text.index("[initial]") :]
    text = text.replace("end = 10.0", 'end = 1.0\ndt = 0.5\nmethod = "euler"')
    flux = 'type = "flux"\nvalue = 1e3\n'
    for name, x in (("a", 0.06), ("b", 0.2)):
        sphere = f"sphere = {{ centre = [{x}, 0.05, 0.05], radius = 0.03 }}"
        text += f'[[regions]]\nname = "{name}"\nmaterial = "void"\n{sphere}\n'
    of = problem(text + f'[[surfaces]]\nof = "a"\n{flux}[[surfaces]]\nof = "b"\n{flux.replace("1e3", "-2e3")}')
    found = heats_of(of, after(of, 1)[0])
    area = 4.0 * pi * 0.03**2
    assert found["a"] == pytest.approx(1e3 * area * 0.5, rel=2e-3)
    assert found["b"] == pytest.approx(-2e3 * area * 0.5, rel=2e-3)
    ring = text[: text.index("[[regions]]")].replace("size = [0.3, 0.1, 0.1]", 'size = [0.3, 0.1]\nsymmetry = "axial"')
    ring = ring.replace("cells = [48, 16, 16]", "cells = [30, 10]")
    ring += box("ring", "void", "[0.1, -1.0, 0.0]", "[0.2, 1.0, 0.1]")
    of = problem(ring + f'[[surfaces]]\nof = "ring"\n{flux}')
    heat = 1e3 * 2.0 * pi * (0.1 + 0.2) * 0.1 * 0.5
    assert heats_of(of, after(of, 1)[0])["ring"] == pytest.approx(heat, rel=1e-9)


def test_a_probe_of_a_room_without_its_own_condition(tmp_path: Path) -> None:
    """All surfaces have the condition of `boundaries.void`; the room towards the source is warmer."""
    film = FILM.format(10.0, 280.0).strip().replace("\n", ", ")
    source = "box = { min = [0.1, 0.0, 0.0], max = [0.11, 0.01, 0.01] }"
    text = WALL + f'[boundaries]\nvoid = {{ {film} }}\n[[sources]]\nname = "s"\npower = 0.01\n{source}\n' + PROBES
    row = last_rows(tmp_path, (text + PAINTED).replace("end = 10.0", STEADY))
    assert row["inside (K)"] > row["of the wall (K)"] + 1.0


def test_the_resolved_scenario_has_rooms(tmp_path: Path) -> None:
    of = scenario(WALL + PAINTED + IN + OUT + PROBES)
    write_resolved(of, tmp_path)
    resolved = tomllib.loads((tmp_path / "scenario.toml").read_text(encoding="utf-8"))
    assert [{*surface} & {"of", "between"} for surface in resolved["surfaces"]] == [{"of"}, {"between"}]
    assert load(tmp_path / "scenario.toml") == of


STEADY = 'method = "steady"\ntolerance = 1e-9'
MEETING = f'[[surfaces]]\nbetween = ["plaster", "room"]\n{FILM.format(1.0, 300.0)}'


@pytest.mark.parametrize(
    ("text", "key", "fragment"),
    [
        (WALL + IN.replace('"room"', '"roon"'), "surfaces.0.of", 'did you mean "room"?'),
        (WALL + IN * 2, "surfaces.1.of", "a second time"),
        (
            WALL + OUT + OUT.replace('"outside", "plaster"', '"plaster", "outside"'),
            "surfaces.1.between",
            "a second time",
        ),
        (WALL + IN.replace("of =", 'between = ["plaster", "room"]\nof ='), "surfaces.0.between", "write one of them"),
        (WALL + OUT.replace("plaster", "room"), "surfaces.0.between", "both void"),
        (WALL + PAINTED + OUT.replace("outside", "wall"), "surfaces.0.between", "both conduct"),
        (WALL + OUT.replace("outside", "void"), "surfaces.0.between", 'of = "plaster"'),
        (WALL + OUT.replace('"plaster"', '"plastr"'), "surfaces.0.between", 'did you mean "plaster"?'),
        (WALL.replace('"room"', '"x_min"') + IN.replace('"room"', '"x_min"'), "surfaces.0.of", "a face of the box has"),
        (
            WALL.replace('"room"', '"void"', 1) + IN.replace('"room"', '"void"'),
            "surfaces.0.of",
            "towards void have this name",
        ),
        (WALL.replace('"room"', '"plaster"') + IN.replace('"room"', '"plaster"'), "surfaces.0.of", "a material has"),
        (WALL.replace('"room"', '"x_max"') + PROBES.replace('"room"', '"x_max"'), "probes.0.surface", "rename"),
        (WALL + PAINTED + IN + PROBES.replace('"room"', '"rom"'), "probes.0.surface", 'did you mean "room"?'),
        (WALL + PAINTED + IN + PROBES.replace('"room"', '"wall"'), "probes.0.surface", 'and region = "wall"'),
        (WALL + IN + MEETING, "surfaces.1.between", "4 boundary faces (0.0001 m²) in common with surfaces.0"),
        (WALL + IN + MEETING, "surfaces.1.between", 'remove the entry with of = "room"'),
        (
            WALL + PAINTED.replace("0.01]", "0.005]") + MEETING.replace("plaster", "wall") + IN,
            "surfaces.1.of",
            'write an entry with between = ["plaster", "room"], and remove the entry with of = "room"',
        ),
        (
            WALL + PAINTED.replace('"wall"', '"plaster"') + IN.replace("room", "plaster"),
            "surfaces.0.of",
            "a material has this name too: rename the region",
        ),
        (WALL + PAINTED.replace("[0.1,", "[0.0,") + IN, "surfaces.0.of", "painted over all of"),
        (WALL.replace("[0.2, 0.0", "[0.1, 0.0", 1).replace('"plaster"', '"void"') + IN, "regions", "nothing conducts"),
        (
            WALL + PAINTED.replace("0.2,", "0.15,") + OUT.replace("plaster", "wall"),
            "surfaces.0.between",
            '"wall" does not border on "outside"',
        ),
        (
            WALL + PAINTED.replace("[0.1,", "[0.0,") + OUT + PROBES.replace('region = "wall"\n', ""),
            "probes.0.surface",
            "no cell that conducts borders on",
        ),
    ],
)
def test_misuse_is_refused_at_its_key(text: str, key: str, fragment: str) -> None:
    found = refusals(text)
    assert fragment in found.get(key, ""), found


def test_a_room_of_void_alone_is_refused() -> None:
    """A room that other void surrounds has no surface."""
    inner = box("inner", "void", "[0.0, 0.0, 0.0]", "[0.05, 0.01, 0.01]")
    found = refusals(WALL + inner + IN + IN.replace('"room"', '"inner"'))
    assert found == {
        "surfaces.1.of": 'got "inner"; no cell that conducts borders on "inner": void or faces of the box surround it'
    }


def test_plans_and_pictures_show_rooms() -> None:
    of = scenario(WALL + PAINTED + IN + OUT + PROBES)
    lines = "\n".join(describe_model(HeatProblem.from_scenario(of)))
    assert 'all towards room "room": convection 8 W/(m² K) to 293.15 K; 1 cm²' in lines
    assert '"plaster" towards room "outside": convection 25 W/(m² K) to 273.15 K; 1 cm²' in lines
    assert 'min of the surface towards room "room"' in lines
    towards, between = geometry_of(of).surfaces
    assert towards.text == "surface all towards room: convection 8 W/(m² K) to 293.15 K"
    assert between.text.startswith("surface plaster towards outside: convection")
    (rectangle,) = towards.rectangles(of.grid)
    assert rectangle.normal == 0
    assert (*rectangle.low, *rectangle.high) == pytest.approx((0.1, 0.0, 0.0, 0.1, 0.01, 0.01))
    (rectangle,) = between.rectangles(of.grid)
    assert rectangle.low[0] == pytest.approx(0.2)
