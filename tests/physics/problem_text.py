"""A scenario's text turned into a problem, without a file."""

import tomllib

from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse

BOX = """
[domain]
size = [0.1, 0.1, 0.1]
cells = [5, 4, 2]
[material]
conductivity = 20.0
density = 1000.0
specific_heat = 300.0
[initial]
temperature = 300.0
[time]
method = "stabilized"
"""


def problem(text: str) -> HeatProblem:
    return HeatProblem.from_scenario(parse(tomllib.loads(text), "case.toml"))


def box(extra: str, end: float = 10.0) -> HeatProblem:
    """A box whose steps follow a tolerance up to ``end`` seconds, with ``extra`` conditions and sources."""
    return problem(f"{BOX}end = {end!r}\n{extra}")
