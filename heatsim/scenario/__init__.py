"""Scenarios: TOML files read into frozen, checked models in SI units."""

from heatsim.scenario.boundaries import Boundaries, Convection, Face, Flux, Insulated, Periodic, Temperature
from heatsim.scenario.expressions import Expression
from heatsim.scenario.initial import ArrayFile, ImageFile
from heatsim.scenario.load import load, parse, read_document
from heatsim.scenario.model import Domain, Initial, Material, Output, Probe, Scenario, Solver, Time
from heatsim.scenario.problems import suggest
from heatsim.scenario.resolved import write_resolved
from heatsim.scenario.timefunction import Constant, Formula, Table, TimeFunction

__all__ = [
    "ArrayFile",
    "Boundaries",
    "Constant",
    "Convection",
    "Domain",
    "Expression",
    "Face",
    "Flux",
    "Formula",
    "ImageFile",
    "Initial",
    "Insulated",
    "Material",
    "Output",
    "Periodic",
    "Probe",
    "Scenario",
    "Solver",
    "Table",
    "Temperature",
    "Time",
    "TimeFunction",
    "load",
    "parse",
    "read_document",
    "suggest",
    "write_resolved",
]
