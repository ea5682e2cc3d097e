"""Random scenarios that try to deceive a method in time: opposite heats, short pulses, jumps, awkward expressions."""

from itertools import product
from random import Random
from typing import Any, NamedTuple

import numpy as np
from adversary.semi_discrete import FACES, Body

Marks = list[tuple[float, float]]
MOST_EULER_STEPS = 3000


class Shape(NamedTuple):
    """What a value does in time, between 0 (or −1) and 1.

    Attributes:
        kind: for statistics.
        value: an expression in t, or a table.
        marks: times and widths of what it does shortly.
        duration: how long it stays at 1, in s.
    """

    kind: str
    value: str | dict[str, Any]
    marks: Marks
    duration: float

    @property
    def positive(self) -> bool:
        """Whether it has no negative values."""
        return self.kind in ("gaussian", "triangle", "table block", "window", "step", "abs", "sawtooth")

    def between(self, low: float, high: float) -> str | dict[str, Any]:
        """The same with ``low`` for 0 and ``high`` for 1."""
        if isinstance(self.value, dict):
            return {**self.value, "values": [low + (high - low) * value for value in self.value["values"]]}
        return f"{low!r} + {high - low!r}*({self.value})"


class Case(NamedTuple):
    """A scenario, and the times and widths of what its drives do shortly."""

    seed: int
    kinds: tuple[str, ...]
    document: dict[str, Any]
    marks: Marks


def log_uniform(rng: Random, low: float, high: float) -> float:
    return short(np.exp(rng.uniform(np.log(low), np.log(high))))


def short(value: float, digits: int = 5) -> float:
    """Five digits, so that scenarios stay legible."""
    return float(f"{value:.{digits}g}")


def pulse(rng: Random, end: float) -> Shape:
    """A pulse of a width between a millionth and a tenth of the run."""
    w = log_uniform(rng, 1e-6 * end, 0.1 * end)
    a = short(rng.uniform(0.02, 0.98) * end, 7)
    table = {"times": [a - w, a, a + w], "values": [0.0, 1.0, 0.0]}
    block = {"times": [a - w, a - w, a + w, a + w], "values": [0.0, 1.0, 1.0, 0.0]}
    if a - w < 0.0 or rng.random() < 0.4:
        return Shape("gaussian", f"exp(-((t - {a!r})/{w!r})^2)", [(a, w)], 1.8 * w)
    shapes = [
        Shape("triangle", table, [(a - w, w), (a, w), (a + w, w)], w),
        Shape("table block", block, [(a - w, w), (a + w, w)], 2.0 * w),
        Shape("window", f"where(abs(t - {a!r}) < {w!r}, 1, 0)", [(a - w, w), (a + w, w)], 2.0 * w),
        Shape("two-sided", f"2.3*(t - {a!r})/{w!r}*exp(-((t - {a!r})/{w!r})^2)", [(a, w)], w),
    ]
    return rng.choice(shapes)


def wave(rng: Random, end: float) -> Shape:
    """Anything else that changes in time."""
    P, Q = (log_uniform(rng, end / 30.0, 5.0 * end) for _ in range(2))
    a, b = sorted(short(rng.uniform(0.0, 1.0) * end, 7) for _ in range(2))
    phase = short(rng.uniform(0.0, 6.28), 3)
    w = log_uniform(rng, 1e-4 * end, 0.1 * end)
    times = sorted(short(rng.uniform(0.0, end)) for _ in range(rng.randint(3, 7)))
    values = [short(rng.uniform(-1.0, 1.0), 3) for _ in times]
    for i in range(1, len(times), 2):
        times[i] = times[i - 1]  # jumps
    period = [0.0, short(0.3 * P), short(0.3 * P), short(0.6 * P), P]
    jumps = [
        (k * P + part, 1e-3 * P) for k in range(int(end / P) + 1) for part in (0.0, short(0.3 * P), short(0.6 * P))
    ]
    on = [(k * P + part, 1e-3 * P) for k in range(int(end / P) + 1) for part in (0.0, short(P / 3.0))]
    sine = f"sin({short(6.2832 / P)!r}*t + {phase!r})"
    choices = [
        Shape("step", f"where(t < {a!r}, 0, 1)", [(a, w)], end - a),
        Shape("sine", sine, [], min(P, end)),
        Shape("two sines", f"({sine} + 0.5*cos({short(6.2832 / Q)!r}*t))/1.5", [], min(P, Q, end)),
        Shape("abs", f"abs({sine})", [], end),
        Shape("clipped", f"min(1, max(-1, 2*{sine}))", [], min(P, end)),
        Shape("square", f"where(t % {P!r} < {short(P / 3.0)!r}, 1, -0.5)", on, min(P, end)),
        Shape("sawtooth", f"t % {P!r} / {P!r}", on, end),
        Shape("switch", f"tanh((t - {a!r})/{w!r})", [(a, w)], end),
        Shape("table", {"times": times, "values": values}, [(time, w) for time in times], end / len(times)),
        Shape("periodic table", {"times": period, "values": [0, 1, -1, 0.5, 0], "repeat": True}, jumps, min(P, end)),
        Shape("chirp", f"sin(6*(t/{short(end / 5.0)!r})^2)", [], end / 100.0),
        Shape("between", f"where({a!r} < t, 1, 0)*where(t < {b!r}, 1, 0)*{sine}", [(a, w), (b, w)], min(P, b - a + w)),
    ]
    return rng.choice(choices)


def random_case(seed: int) -> Case:
    """A legal scenario of 2 to 500 cells without its method."""
    rng = Random(seed)
    document = _body(rng)
    _conditions(rng, document)
    end = log_uniform(rng, 3.0, 1e5) / _fastest_rate(document)
    document["time"] = {"end": end}
    kinds, marks = list[str](), Marks()
    document["sources"] = []
    body = Body(document)
    kinds += ["layer"] * ("layers" in document)
    how = rng.choice(("opposite", "opposite", "faces", "faces", "source", "both"))
    if how in ("opposite", "both"):
        _opposite_sources(rng, document, body, kinds, marks)
    if how == "source" or (how == "both" and rng.random() < 0.5):
        _single_source(rng, document, body, kinds, marks)
    if how in ("faces", "both"):
        _driven_faces(rng, document, body, kinds, marks)
    document["time"]["tolerance"] = log_uniform(rng, 3e-3, 0.3)
    if rng.random() < 0.3:
        del document["time"]["tolerance"]
    document["time"]["method"] = rng.choice(("auto", "stabilized", "stabilized", "implicit", "implicit"))
    if rng.random() < 0.2 and end * _fastest_rate(document) < MOST_EULER_STEPS:
        document["time"] = {"end": end, "method": "euler"}
    document["solver"] = {"device": "cpu", "precision": rng.choice(("float32", "float64"))}
    rows = short(end / rng.uniform(2.5, 25.0), 4)
    document["output"] = {"figures": False, "fields": False, "probe_every": rows}
    document["probes"] = [{"name": "hottest", "statistic": "max"}]
    return Case(seed, tuple(kinds), document, marks)


def _body(rng: Random) -> dict[str, Any]:
    """Cells, materials, contacts and the initial temperature."""
    most = log_uniform(rng, 2.0, 500.0)
    cells = [1, 1, 1]
    axes = rng.sample(range(3), rng.randint(1, 3))
    for axis in axes:
        share = most ** (1.0 / len(axes)) * np.exp(rng.uniform(-0.7, 0.7))
        cells[axis] = max(1, min(int(share), int(500 / np.prod(cells))))
    if np.prod(cells) < 2:
        cells[axes[0]] = 2
    d = log_uniform(rng, 1e-4, 1e-2)
    size = [short(n * d * (np.exp(rng.uniform(-1.0, 1.0)) if rng.random() < 0.3 else 1.0)) for n in cells]
    layered = rng.random() < 0.15 and max(cells) > 2
    names = ("a", "b", "c")[: 1 if layered else rng.choice((1, 1, 2, 3))]
    k = log_uniform(rng, 0.1, 100.0)
    materials = {
        name: {
            "conductivity": short(k * np.exp(rng.uniform(-2.0, 2.0))),
            "density": short(rng.uniform(1000.0, 9000.0), 3),
            "specific_heat": short(rng.uniform(300.0, 1500.0), 3),
        }
        for name in names
    }
    if rng.random() < 0.2:
        values = [materials["a"]["conductivity"] * factor for factor in (1.0, 0.3, 3.0)]
        materials["a"]["conductivity"] = [short(value) for value in values]
    T = short(rng.uniform(280.0, 600.0))
    document = {
        "domain": {"size": size, "cells": cells, "material": "a"},
        "materials": materials,
        "initial": {"temperature": T},
        "regions": [],
        "boundaries": {},
    }
    if len(names) > 1:
        parts = _parts(rng, document)
        for number, box in enumerate(parts):
            name = names[number % len(names)]
            if name != "a":
                document["regions"].append({"name": f"r{number}", "material": name, "box": box})
    if layered:
        _add_layer(rng, document)
    elif rng.random() < 0.3:
        amplitude, wave_number = short(rng.uniform(1.0, 100.0), 3), [short(6.0 / length) for length in size]
        waves = "*".join(f"cos({kn!r}*{v})" for kn, v in zip(wave_number, "xyz", strict=True))
        document["initial"]["temperature"] = f"{T!r} + {amplitude!r}*{waves}"
    for region in document["regions"]:
        if rng.random() < 0.2:
            region["initial_temperature"] = short(T + rng.uniform(-100.0, 100.0))
    document["contacts"] = []
    for i, name in enumerate(names):
        for other in names[:i]:
            if rng.random() < 0.6 and {name, other} <= {"a", *(r["material"] for r in document["regions"])}:
                R = short(d / k * log_uniform(rng, 1e-2, 1e3))
                document["contacts"].append({"between": [other, name], "resistance": R})
    return document


def _add_layer(rng: Random, document: dict[str, Any]) -> None:
    """A good conductor between two planes of cells; faces along it stay insulated."""
    size, cells = document["domain"]["size"], document["domain"]["cells"]
    axis = rng.choice([axis for axis in range(3) if cells[axis] > 2])
    d = size[axis] / cells[axis]
    plane = {"axis": "xyz"[axis], "at": d * rng.randint(2, cells[axis] - 1)}
    document["materials"]["foil"] = {"conductivity": 390.0, "density": 8960.0, "specific_heat": 385.0}
    document["layers"] = [{"material": "foil", "thickness": short(d * log_uniform(rng, 1e-3, 0.5)), "plane": plane}]


def _axes_of_faces(document: dict[str, Any]) -> list[int]:
    """The axes along which faces may exchange heat."""
    return ["xyz".index(layer["plane"]["axis"]) for layer in document.get("layers", [])] or [0, 1, 2]


def _parts(rng: Random, document: dict[str, Any]) -> list[dict[str, list[float]]]:
    """Boxes that divide the body along whole cells: planes, columns or blocks; neighbours differ in number."""
    size, cells = document["domain"]["size"], document["domain"]["cells"]
    cuts = []
    for length, count in zip(size, cells, strict=True):
        pieces = min(count, rng.choice((1, 2, 2, 3, 4, 6)))
        places = sorted(rng.sample(range(1, count), pieces - 1)) if pieces > 1 else []
        cuts.append([length * place / count for place in (0, *places, count)])
    if all(len(cut) == 2 for cut in cuts):
        axis = int(np.argmax(cells))
        cuts[axis] = [0.0, size[axis] * (cells[axis] // 2) / cells[axis], size[axis]]
    boxes = []
    for i, j, k in product(*(range(len(cut) - 1) for cut in cuts)):
        box = {"min": [cuts[0][i], cuts[1][j], cuts[2][k]], "max": [cuts[0][i + 1], cuts[1][j + 1], cuts[2][k + 1]]}
        boxes.append((i + j + k, box))
    boxes.sort(key=lambda numbered: numbered[0] % 2)  # even ones first
    half = sum(1 for number, _ in boxes if number % 2 == 0)
    even, odd = [box for _, box in boxes[:half]], [box for _, box in boxes[half:]]
    paired = [box for pair in zip(even, odd, strict=False) for box in pair]
    return paired + even[len(odd) :] + odd[len(even) :]


def _conditions(rng: Random, document: dict[str, Any]) -> None:
    """Faces that do not change in time."""
    T = float(str(document["initial"]["temperature"]).split(" ")[0])
    k, size = document["materials"]["a"]["conductivity"], document["domain"]["size"]
    k = k if isinstance(k, float) else k[0]
    for axis in _axes_of_faces(document):
        if rng.random() < 0.15 and "layers" not in document:
            for name in FACES[2 * axis : 2 * axis + 2]:
                document["boundaries"][name] = {"type": "periodic"}
            continue
        for name in FACES[2 * axis : 2 * axis + 2]:
            ambient = short(T + rng.choice((0.0, 0.0, rng.uniform(-80.0, 80.0))))
            kind = rng.choice(("insulated", "insulated", "convection", "temperature", "flux"))
            h = short(k / max(size) * log_uniform(rng, 1e-3, 10.0))
            condition: dict[str, Any] = {"type": kind}
            if kind == "convection":
                condition |= {"coefficient": h, "ambient": ambient}
            elif kind == "temperature":
                condition["value"] = ambient
            elif kind == "flux":
                condition["value"] = 0.0
            document["boundaries"][name] = condition


def _fastest_rate(document: dict[str, Any]) -> float:
    """The rate in 1/s at which the fastest cell follows its neighbours."""
    body = Body({**document, "time": {"end": 1.0}})
    return float((-np.diag(body.K) / body.C).max()) or 1e-3


def _shape(rng: Random, end: float, marks: Marks, kinds: list[str], what: str) -> Shape:
    shape = pulse(rng, end) if rng.random() < 0.5 else wave(rng, end)
    marks.extend(shape.marks)
    kinds.append(f"{what}: {shape.kind}")
    return shape


def _rise(rng: Random) -> float:
    """By how many kelvins something heats a cell."""
    return rng.choice((1.0, 10.0, 100.0)) * rng.uniform(0.1, 1.0)


def _opposite_sources(rng: Random, document: dict[str, Any], body: Body, kinds: list[str], marks: Marks) -> None:
    """Heats of alternating signs in neighbouring parts, or as a density that alternates from cell to cell."""
    shape = _shape(rng, body.end, marks, kinds, "opposite")
    if rng.random() < 0.3:
        signs = "*".join(
            f"cos(pi*floor({v}/{d!r}))"
            for v, d, n in zip("xyz", body.spacing, document["domain"]["cells"], strict=True)
            if n > 1 and rng.random() < 0.7
        )
        source = {"power_density": f"1.0*({signs or '1.0'} + 0*x)"}
        power = short(_rise(rng) / body.rise(body.source(source).share, shape.duration))
        document["sources"].append({**source, "scale": shape.between(0.0, power)})
        return
    boxes = _parts(rng, document)[: rng.choice((2, 2, 4, 10))]
    if len(boxes) % 2:
        boxes = boxes[:-1]
    total = np.sum([body.source({"power": (-1.0) ** i, "box": box}).share for i, box in enumerate(boxes)], axis=0)
    power = _rise(rng) / body.rise(total, shape.duration)
    unlike = rng.choice((0.0, 0.0, log_uniform(rng, 1e-8, 1e-1)))
    for i, box in enumerate(boxes):
        source = {"power": short((-1.0) ** i * power * (1.0 + unlike * (i == 0)), 9), "box": box}
        if shape.kind == "step":
            source["during"] = [shape.marks[0][0], 2.0 * body.end]
        else:
            source["scale"] = shape.between(0.0, 1.0)
        document["sources"].append(source)


def _single_source(rng: Random, document: dict[str, Any], body: Body, kinds: list[str], marks: Marks) -> None:
    """One source in a part or in all cells, with one or two factors that change."""
    shape = _shape(rng, body.end, marks, kinds, "source")
    box = rng.choice(_parts(rng, document))
    rise = _rise(rng)
    if isinstance(shape.value, str) and rng.random() < 0.4:
        other = _shape(rng, body.end, marks, kinds, "second factor")
        source = {"box": box, "power_density": "1.0*(1.0 + 0*x)"}
        power = short(rise / body.rise(body.source(source).share, shape.duration))
        source["power_density"] = f"({shape.between(0.0, power)})*(1.0 + 0*x)"
        source["scale"] = other.between(0.0, 1.0)
    else:
        source = {"box": box, "power": 1.0}
        source["power"] = short(rise / body.rise(body.source(source).share, shape.duration))
        source["scale"] = shape.between(0.0, 1.0)
    document["sources"].append(source)


def _driven_faces(rng: Random, document: dict[str, Any], body: Body, kinds: list[str], marks: Marks) -> None:
    """One or two faces whose values change; two held ones may jump in opposite directions."""
    axes = _axes_of_faces(document)
    free = [name for axis in axes for name in FACES[2 * axis : 2 * axis + 2] if name in body.faces]
    if not free:
        return
    first = _shape(rng, body.end, marks, kinds, "face")
    kind = rng.choice(("temperature", "temperature", "convection", "flux", "film", "emissivity", "radiation"))
    if kind in ("film", "emissivity", "radiation") and (body.count > 40 or len(marks) > 12):
        kind = "temperature"
    axis = rng.randrange(3)
    pair = [name for name in FACES[2 * axis : 2 * axis + 2] if name in free] or free
    for i, name in enumerate(pair[:2] if rng.random() < 0.4 else rng.sample(free, 1)):
        kinds.append(kind)
        document["boundaries"][name] = _driven(rng, kind, first, body, name, -1.0 if i else 1.0)


def _driven(rng: Random, kind: str, shape: Shape, body: Body, name: str, sign: float) -> dict[str, Any]:
    """A condition of which one value changes."""
    T, amplitude = short(rng.uniform(300.0, 500.0)), sign * short(rng.uniform(1.0, 100.0), 3)
    h = short(np.mean(body.k) / max(body.document["domain"]["size"]) * log_uniform(rng, 1e-2, 100.0))
    match kind:
        case "temperature":
            return {"type": "temperature", "value": shape.between(T, T + amplitude)}
        case "convection":
            return {"type": "convection", "coefficient": h, "ambient": shape.between(T, T + amplitude)}
        case "radiation":
            return {
                "type": "radiation",
                "emissivity": 0.8,
                "ambient": shape.between(2.0 * T, 2.0 * T + 5.0 * amplitude),
            }
        case "film":
            highest = h * (rng.choice((10.0, 1000.0)) if shape.positive else rng.uniform(1.1, 2.0))
            return {"type": "convection", "coefficient": shape.between(h, highest), "ambient": T + amplitude}
        case "emissivity":
            ambient = short(T * rng.uniform(0.5, 3.0))
            return {"type": "radiation", "emissivity": shape.between(0.4, 0.7), "ambient": ambient}
    share = np.zeros(body.count)
    share[body.faces[name].cells] = body.faces[name].area
    q = short(sign * _rise(rng) / body.rise(share, shape.duration))
    along = "yzx"[FACES.index(name) // 2]
    if isinstance(shape.value, str) and rng.random() < 0.3:
        return {
            "type": "flux",
            "value": f"({shape.between(0.0, q)})*(1.0 + {short(1.0 / max(body.spacing))!r}*{along})",
        }
    return {"type": "flux", "value": shape.between(0.0, q)}
