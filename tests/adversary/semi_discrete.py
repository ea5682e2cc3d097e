"""The cells of a scenario as ordinary differential equations, assembled and integrated without heatsim.

C·dT/dt = K·T + b(t): finite volumes on a uniform grid, half cells in series with contacts and films. If K is constant,
each eigenmode is integrated exactly with the polynomial that interpolates its drive between two edges. Edges are added
until polynomials of degree 7 follow every drive. Bodies whose surfaces exchange heat otherwise go to Radau's method.
"""

import ast
from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

FACES = ("x_min", "x_max", "y_min", "y_max", "z_min", "z_max")
STEFAN_BOLTZMANN = 5.670374419e-8
_FUNCTIONS = {
    **{name: getattr(np, name) for name in ("sin", "cos", "exp", "floor", "sqrt", "tanh", "sign", "where")},
    "abs": np.abs,
    "min": lambda *values: reduce(np.minimum, values),
    "max": lambda *values: reduce(np.maximum, values),
    "pi": np.pi,
}
_NODES, _WEIGHTS = (values / 2.0 for values in np.polynomial.legendre.leggauss(8))
_NODES = _NODES + 0.5
_POWERS = np.linalg.inv(np.vander(_NODES, increasing=True))  # values at nodes → coefficients of s⁰ … s⁷
_LEGENDRE = np.linalg.inv(np.polynomial.legendre.legvander(2.0 * _NODES - 1.0, 7))
# Beside both ends of a panel, the values there of the polynomial through the nodes.
_ENDS = np.array([1e-9, 1.0 - 1e-9])
_AT_ENDS = np.polynomial.legendre.legvander(2.0 * _ENDS - 1.0, 7) @ _LEGENDRE


def formula(text: str, **variables: Any) -> Any:
    """The value of an expression."""
    return eval(text.replace("^", "**"), {"__builtins__": {}}, {**_FUNCTIONS, **variables})


def of_time(value: Any) -> Function:
    """A number, an expression in t or a table as a function of times."""
    if isinstance(value, str):
        return lambda t: formula(value, t=t) + 0.0 * t
    if isinstance(value, dict):
        times, values, repeats = value["times"], value["values"], value.get("repeat", False)
        return lambda t: np.interp(t % times[-1] if repeats else t, times, values)
    return lambda t: value + 0.0 * t


def factors(product: str) -> tuple[Function, str]:
    """The first factor of a product, as a function of times, and the second one, which is an expression in space."""
    tree = ast.parse(product.replace("^", "**"), mode="eval").body
    assert isinstance(tree, ast.BinOp)
    assert isinstance(tree.op, ast.Mult)
    return of_time(ast.unparse(tree.left)), ast.unparse(tree.right)


class Drive(NamedTuple):
    """Heat in W: an amount in time, and how much of it each cell gets; ``owner`` is a face or "sources"."""

    owner: str
    amount: Function
    share: Array


class Face(NamedTuple):
    """A face of the box: its cells, the conductance of their half cells and their area."""

    condition: dict[str, Any]
    cells: NDArray[np.int64]
    half: Array
    area: Array


class Body:
    """The cells of a scenario, numbered with x fastest."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        domain, self.end = document["domain"], document["time"]["end"]
        self.shape = tuple(domain["cells"][::-1])
        self.spacing = [size / count for size, count in zip(domain["size"], domain["cells"], strict=True)]
        places = [(np.arange(count) + 0.5) * d for count, d in zip(domain["cells"], self.spacing, strict=True)]
        self.z, self.y, self.x = np.meshgrid(*places[::-1], indexing="ij")
        self.volume = float(np.prod(self.spacing))
        names = np.full(self.shape, domain["material"], dtype=object)
        for region in document.get("regions", []):
            names[self.inside(region["box"])] = region["material"]
        known, self.kinds = np.unique(names.ravel().astype(str), return_inverse=True)
        of_kinds = [document["materials"][name] for name in known]
        self.k = np.array([np.broadcast_to(kind["conductivity"], 3) for kind in of_kinds])[self.kinds].T
        heat = np.array([kind["density"] * kind["specific_heat"] for kind in of_kinds])
        self.C = heat[self.kinds] * self.volume
        self.count = len(self.C)
        self.resistances = np.zeros((len(known), len(known)))
        for contact in document.get("contacts", []):
            i, j = np.searchsorted(known, contact["between"])
            self.resistances[i, j] = self.resistances[j, i] = contact["resistance"]
        self.T0 = np.full(self.shape, 0.0)
        initial = document["initial"]["temperature"]
        self.T0[...] = formula(initial, x=self.x, y=self.y, z=self.z) if isinstance(initial, str) else initial
        for region in document.get("regions", []):
            if "initial_temperature" in region:
                self.T0[self.inside(region["box"])] = region["initial_temperature"]
        self.T0 = self.T0.ravel()
        self.K = np.zeros((self.count, self.count))
        self.faces: dict[str, Face] = {}
        for axis in range(3):
            self._connect(axis)
        for layer in document.get("layers", []):
            self._lay(layer)
        self.drives = [self.source(source) for source in document.get("sources", [])]
        self.conductances: dict[str, Array] = {}
        self.nonlinear: list[Face] = []
        for name, face in self.faces.items():
            self._add_face(name, face)

    def inside(self, box: dict[str, Sequence[float]] | None) -> NDArray[np.bool_]:
        """Which cells have their centres in a box."""
        found = np.ones(self.shape, dtype=bool)
        if box is not None:
            for places, low, high in zip((self.x, self.y, self.z), box["min"], box["max"], strict=True):
                found &= (places > low) & (places < high)
        return found

    def _connect(self, axis: int) -> None:
        """Add the links along an axis and the faces at its ends."""
        d, area = self.spacing[axis], self.volume / self.spacing[axis]
        numbers = np.moveaxis(np.arange(self.count).reshape(self.shape), 2 - axis, 0)
        pairs = [(numbers[:-1], numbers[1:])]
        conditions = self.document["boundaries"]
        for name, cells in ((FACES[2 * axis], numbers[0]), (FACES[2 * axis + 1], numbers[-1])):
            condition = conditions.get(name, conditions.get("default", {"type": "insulated"}))
            if condition["type"] == "periodic":
                if name.endswith("max"):
                    pairs.append((numbers[-1], numbers[0]))
                continue
            flat = cells.ravel()
            self.faces[name] = Face(condition, flat, 2.0 * self.k[axis][flat] * area / d, np.full(len(flat), area))
        for i, j in ((first.ravel(), second.ravel()) for first, second in pairs):
            half_cells = d / (2.0 * self.k[axis][i]) + d / (2.0 * self.k[axis][j])
            G = np.where(i == j, 0.0, area / (half_cells + self.resistances[self.kinds[i], self.kinds[j]]))
            self._link(i, j, G)

    def _lay(self, layer: dict[str, Any]) -> None:
        """Put a layer across the body: its node is that of the cells below it, of which a third moves to those behind.

        The body has one material here, and only its faces along the normal of the layer exchange heat.
        """
        axis = "xyz".index(layer["plane"]["axis"])
        d, area, t = self.spacing[axis], self.volume / self.spacing[axis], layer["thickness"]
        of = self.document["materials"][layer["material"]]
        planes = np.moveaxis(np.arange(self.count).reshape(self.shape), 2 - axis, 0)
        above = round(layer["plane"]["at"] / d)
        own, behind, k = np.sort(planes[above - 1].ravel()), np.sort(planes[above - 2].ravel()), self.k[axis][0]
        self._link(own, planes[above].ravel(), area / (t / of["conductivity"] + d / (2.0 * k)) - area * k / d)
        self._link(own, behind, area / (1.5 * d / k) - area * k / d)
        for along in {0, 1, 2} - {axis}:
            lines = np.moveaxis(np.arange(self.count).reshape(self.shape), 2 - along, 0)
            pairs = np.stack((lines[:-1].ravel(), lines[1:].ravel()))
            i, j = pairs[:, np.isin(pairs[0], own)]
            G, S = self.K[i, j], of["conductivity"] * t * self.volume / (d * self.spacing[along] ** 2)
            to_behind = behind[np.searchsorted(own, i)], behind[np.searchsorted(own, j)]
            self._link(i, j, S - G / 3.0)
            self._link(*to_behind, G / 3.0)
        self.C[behind] += self.C[own] / 3.0
        self.C[own] = self.C[own] / 1.5 + of["density"] * of["specific_heat"] * t * area

    def _link(self, i: Any, j: Any, G: Any) -> None:
        """Add conductances between cells."""
        for row, column, sign in ((i, j, 1.0), (j, i, 1.0), (i, i, -1.0), (j, j, -1.0)):
            np.add.at(self.K, (row, column), sign * G)

    def source(self, source: dict[str, Any]) -> Drive:
        """A source as a drive; a density is a number, an expression in t, or a product of one in t and one in space."""
        box = next((r["box"] for r in self.document.get("regions", []) if r["name"] == source.get("region")), None)
        where = self.inside(source.get("box", box))
        scale, (start, stop) = of_time(source.get("scale", 1.0)), source.get("during", (0.0, np.inf))
        in_time = of_time(1.0)
        if "power" in source:
            share = where * source["power"] / where.sum()
        else:
            in_time, in_space = factors(source["power_density"])
            share = where * self.volume * formula(in_space, x=self.x, y=self.y, z=self.z)
        return Drive(
            "sources",
            lambda t: scale(t) * in_time(t) * ((t >= start) & (t < stop)),
            share.ravel().astype(float),
        )

    def _add_face(self, name: str, face: Face) -> None:
        condition, share = face.condition, np.zeros(self.count)
        match condition["type"]:
            case "temperature":
                G, drive = face.half, condition["value"]
            case "flux":
                G, drive = 0.0 * face.half, condition.get("value", condition.get("power"))
            case "convection" if not isinstance(condition["coefficient"], str | dict) and "emissivity" not in condition:
                film = condition["coefficient"] * face.area
                G, drive = film * face.half / (film + face.half), condition["ambient"]
            case "insulated":
                return
            case _:
                self.nonlinear.append(face)
                return
        amount = of_time(drive)
        flux = face.area / (face.area.sum() if "power" in condition else 1.0)
        if isinstance(drive, str) and any(f"*{axis}" in drive for axis in "xyz"):
            amount, in_space = factors(drive)
            flux = flux * formula(in_space, **{v: getattr(self, v).ravel()[face.cells] for v in "xyz"})
        share[face.cells] = flux if condition["type"] == "flux" else G
        self.K[face.cells, face.cells] -= G
        self.conductances[name] = np.zeros(self.count)
        self.conductances[name][face.cells] = G
        self.drives.append(Drive(name, amount, share))

    @cached_property
    def modes(self) -> tuple[Array, Array, Array]:
        """The rates of the eigenmodes in 1/s, and the matrices from temperatures to modes and back."""
        root = np.sqrt(self.C)
        rates, Q = np.linalg.eigh(self.K / np.outer(root, root))
        return np.minimum(rates, 0.0), Q.T * root, Q / root[:, np.newaxis]

    def rise(self, share: Array, duration: float) -> float:
        """The largest change of a cell in K by a constant heat for some time."""
        rates, into, back = self.modes
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.where(rates * duration > -1e-9, duration, np.expm1(rates * duration) / rates)
        return float(np.abs(back @ (times * (into @ (share / self.C)))).max())


class Solution(NamedTuple):
    """What the equations give at some times.

    Attributes:
        T: temperatures in K, shape (times, cells).
        heats: in J since t = 0 by "sources" and by the names of faces whose exchange is linear, shape (times,).
        given: ∫|heat| in J of all sources and given fluxes until the end.
        low, high: extremes in K at these times; of nonlinear bodies at all steps of the integration.
    """

    T: Array
    heats: dict[str, Array]
    given: float
    low: float
    high: float


def solve(body: Body, times: Array, marks: Sequence[tuple[float, float]], fine: bool = False) -> Solution:
    """The solution at ``times``; marks are times and widths of what drives may do too shortly to be found."""
    eps = 1e-12 if fine else 1e-10
    edges = _edges(body, times, marks, eps)
    h, start = np.diff(edges), edges[:-1]
    nodes = start[:, np.newaxis] + h[:, np.newaxis] * _NODES
    values = np.array([drive.amount(nodes) for drive in body.drives]).reshape(-1, *nodes.shape)
    # Temperatures count from one of them: the modes of good and bad conductors round 1e6 times as much as T itself.
    zero = float(body.T0[0])
    for row, drive in zip(values, body.drives, strict=True):
        row -= zero * body.conductances.get(drive.owner, np.zeros(1)).any()
    steps = np.searchsorted(edges, times)
    sums = np.pad(np.cumsum((values @ _WEIGHTS) * h, axis=1), ((0, 0), (1, 0)))
    heats = {"sources": np.zeros(len(times))}
    for drive, total in zip(body.drives, sums, strict=True):
        heats[drive.owner] = heats.get(drive.owner, 0.0) + total[steps] * drive.share.sum()
    given = sum(
        float((np.abs(row) @ _WEIGHTS * h).sum() * np.abs(drive.share).sum())
        for drive, row in zip(body.drives, values, strict=True)
        if not body.conductances.get(drive.owner, np.zeros(1)).any()
    )
    if body.nonlinear:
        linear = {name: heats[name] for name in heats if not body.conductances.get(name, np.zeros(1)).any()}
        T, low, high = _by_radau(body, times, marks, fine)
        return Solution(T, linear, given, low, high)
    T, of_T = _by_modes(body, zero, h, values, steps)
    for name, G in body.conductances.items():
        heats[name] = heats[name] - of_T @ G
    return Solution(T + zero, heats, given, float(T.min()) + zero, float(T.max()) + zero)


def _edges(body: Body, times: Array, marks: Sequence[tuple[float, float]], eps: float) -> Array:
    """Times between which polynomials follow every drive."""
    around = [a + factor * w for a, w in marks for factor in (-6, -3, -1.5, 0, 1.5, 3, 6)]
    edges = np.concatenate((np.linspace(0.0, body.end, 65), times, [a for a in around if 0.0 < a < body.end]))
    edges = np.unique(edges)
    for _ in range(60):
        h = np.diff(edges)
        places = edges[:-1, np.newaxis] + h[:, np.newaxis] * np.append(_NODES, _ENDS)
        values = np.array([d.amount(places) for d in body.drives])
        if not len(values):
            return edges
        values = values - np.median(values, axis=(1, 2), keepdims=True)
        values, ends = values[:, :, :8], values[:, :, 8:]
        # A kink between the last node and the end shows at the end alone.
        tail = np.maximum(np.abs(values @ _LEGENDRE.T)[:, :, -2:], np.abs(values @ _AT_ENDS.T - ends)).max(axis=2)
        size, heat = np.abs(values).max(axis=(1, 2))[:, np.newaxis], (np.abs(values) @ _WEIGHTS) @ h
        split = ((tail > eps * size) & (tail * h > 0.01 * eps * heat[:, np.newaxis])).any(axis=0)
        split &= h > 1e-15 * body.end
        if not split.any():
            break
        edges = np.sort(np.concatenate((edges, (edges[:-1] + h / 2.0)[split])))
    return edges


def _by_modes(body: Body, zero: float, h: Array, values: Array, steps: NDArray[np.int64]) -> tuple[Array, Array]:
    """Temperatures above ``zero`` (K) after some steps, and their integrals over time."""
    rates, into, back = body.modes
    shares = np.array([into @ (drive.share / body.C) for drive in body.drives]).reshape(-1, body.count)
    y, total, wanted = into @ (body.T0 - zero), np.zeros(body.count), set(steps.tolist())
    found = {0: (y, total)}
    at_once = max(1, 200_000 // body.count)
    for first in range(0, len(h), at_once):
        some = h[first : first + at_once, np.newaxis]
        z = rates * some
        E, I0, added, added_total = _exponentials(z, values[:, first : first + at_once], shares)
        for i in range(len(some)):
            total = total + some[i] * (I0[i] * y + some[i] * added_total[i])
            y = E[i] * y + some[i] * added[i]
            if first + i + 1 in wanted:
                found[first + i + 1] = (y, total)
    return (
        np.array([back @ found[step][0] for step in steps.tolist()]),
        np.array([back @ found[step][1] for step in steps.tolist()]),
    )


def _exponentials(z: Array, values: Array, shares: Array) -> tuple[Array, Array, Array, Array]:
    """exp(z), ∫exp(z·s) and ∫exp(z·(1 − s))·p(s) ds, with its integral, for p from values at nodes."""
    p = np.einsum("dpm,dn->mpn", values, shares)
    short = z > -2.0
    safe = np.where(short, -2.0, z)
    E = np.exp(z)
    moment = I0 = np.expm1(safe) / safe
    coefficients = np.einsum("im,mpn->ipn", _POWERS, p)
    long, long_total = np.zeros(z.shape), np.zeros(z.shape)
    for i in range(len(_NODES)):
        if i:
            moment = (i * moment - 1.0) / safe
        long += moment * coefficients[i]
        long_total += (moment - 1.0 / (i + 1)) / safe * coefficients[i]
    x = np.where(short, z, -1.0) * (1.0 - _NODES)[:, np.newaxis, np.newaxis]
    ratio = np.where(np.abs(x) < 1e-12, 1.0, np.expm1(x) / np.where(x == 0.0, 1.0, x))
    brief = np.einsum("m,mpn,mpn->pn", _WEIGHTS, np.exp(x), p)
    brief_total = np.einsum("m,mpn,mpn->pn", _WEIGHTS * (1.0 - _NODES), ratio, p)
    tiny = np.where(np.abs(z) < 1e-12, 1.0, np.expm1(z) / np.where(z == 0.0, 1.0, z))
    return E, np.where(short, tiny, I0), np.where(short, brief, long), np.where(short, brief_total, long_total)


def _by_radau(body: Body, times: Array, marks: Sequence[tuple[float, float]], fine: bool) -> tuple[Array, float, float]:
    """Temperatures of a body whose films change or that radiates, and their extremes at all steps."""

    def exchange(face: Face, t: float, T: Array) -> Array:
        condition = {key: float(of_time(v)(np.float64(t))) for key, v in face.condition.items() if key != "type"}
        film = condition.get("coefficient", 0.0)
        emitted, ambient = condition.get("emissivity", 0.0) * STEFAN_BOLTZMANN, condition["ambient"]
        surroundings, K = condition.get("surroundings", ambient), face.half / face.area
        surface = (K * T + film * ambient) / (K + film) if film or not emitted else T.copy()
        for _ in range(30 if emitted else 0):
            # Below 0 K, where too much heat is taken out, T⁴ would take out ever more of it.
            radiated = emitted * (surroundings**4 - np.abs(surface) ** 3 * surface)
            left = film * (ambient - surface) + radiated - K * (surface - T)
            change = left / (film + 4.0 * emitted * np.maximum(surface, 1.0) ** 3 + K)
            surface = surface + change
            if np.abs(change).max() < 1e-11 * np.abs(surface).max():
                break
        return K * (surface - T) * face.area

    def rate(t: float, T: Array) -> Array:
        heat = body.K @ T
        for drive in body.drives:
            heat += drive.amount(np.float64(t)) * drive.share
        for face in body.nonlinear:
            np.add.at(heat, face.cells, exchange(face, t, T[face.cells]))
        return heat / body.C

    def jacobian(t: float, T: Array) -> Array:
        J = body.K.copy()
        for face in body.nonlinear:
            here = T[face.cells]
            J[face.cells, face.cells] += (exchange(face, t, here + 0.01) - exchange(face, t, here - 0.01)) / 0.02
        return J / body.C[:, np.newaxis]

    around = [a + factor * w for a, w in marks for factor in (-6, -2, 0, 2, 6)]
    edges = np.unique(np.concatenate(([0.0], times, [a for a in around if 0.0 < a < body.end])))
    T, found, tolerance = body.T0, {0.0: body.T0}, 1e-11 if fine else 1e-8
    low, high = float(T.min()), float(T.max())
    for start, end in pairwise(edges.tolist()):
        inside = (start + 1e-12 * (end - start), end - 1e-12 * (end - start))
        solved = solve_ivp(rate, inside, T, "Radau", jac=jacobian, rtol=tolerance, atol=100.0 * tolerance)
        assert solved.success, solved.message
        T = found[end] = solved.y[:, -1]
        low, high = min(low, float(solved.y.min())), max(high, float(solved.y.max()))
    return np.array([found[float(time)] for time in times]), low, high
