"""A scenario's text turned into a problem, without a file."""

import tomllib

from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse


def problem(text: str) -> HeatProblem:
    return HeatProblem.from_scenario(parse(tomllib.loads(text), "case.toml"))
