"""Scenarios: TOML files read into frozen, checked models in SI units."""

from heatsim.scenario.boundaries import (
    Boundaries,
    Convection,
    Face,
    Flux,
    Insulated,
    Periodic,
    Radiation,
    Surface,
    Temperature,
    depends_on_surface,
    is_linear,
    radiates,
)
from heatsim.scenario.contacts import Contact
from heatsim.scenario.domain import Domain
from heatsim.scenario.expressions import Expression
from heatsim.scenario.initial import ArrayFile, ImageFile
from heatsim.scenario.labels import Labels, load_labels
from heatsim.scenario.layers import Layer, Plane
from heatsim.scenario.load import load, parse, parse_dict, read_document
from heatsim.scenario.materialfunction import MaterialFormula, MaterialFunction, MaterialTable
from heatsim.scenario.materials import VOID, Material
from heatsim.scenario.messages import suggest
from heatsim.scenario.model import Initial, Scenario
from heatsim.scenario.output import Output
from heatsim.scenario.patches import Patch, Rectangle, face_axes
from heatsim.scenario.probes import EXTENTS, LIQUID_FRACTION, TIME_BELOW, TIMES_BEYOND, TOWARDS_VOID, Line, Probe
from heatsim.scenario.regions import Box, Cylinder, Region, Shape, Sphere, Stl
from heatsim.scenario.resolved import input_checksums, input_names, write_resolved
from heatsim.scenario.solver import Solver
from heatsim.scenario.sources import Beam, Source
from heatsim.scenario.surfacefunction import SurfaceFormula
from heatsim.scenario.time import ADAPTIVE, Time
from heatsim.scenario.timefunction import Constant, Formula, SpaceFormula, Table, TimeFunction

__all__ = [
    "ADAPTIVE",
    "EXTENTS",
    "LIQUID_FRACTION",
    "TIMES_BEYOND",
    "TIME_BELOW",
    "TOWARDS_VOID",
    "VOID",
    "ArrayFile",
    "Beam",
    "Boundaries",
    "Box",
    "Constant",
    "Contact",
    "Convection",
    "Cylinder",
    "Domain",
    "Expression",
    "Face",
    "Flux",
    "Formula",
    "ImageFile",
    "Initial",
    "Insulated",
    "Labels",
    "Layer",
    "Line",
    "Material",
    "MaterialFormula",
    "MaterialFunction",
    "MaterialTable",
    "Output",
    "Patch",
    "Periodic",
    "Plane",
    "Probe",
    "Radiation",
    "Rectangle",
    "Region",
    "Scenario",
    "Shape",
    "Solver",
    "Source",
    "SpaceFormula",
    "Sphere",
    "Stl",
    "Surface",
    "SurfaceFormula",
    "Table",
    "Temperature",
    "Time",
    "TimeFunction",
    "depends_on_surface",
    "face_axes",
    "input_checksums",
    "input_names",
    "is_linear",
    "load",
    "load_labels",
    "parse",
    "parse_dict",
    "radiates",
    "read_document",
    "suggest",
    "write_resolved",
]
