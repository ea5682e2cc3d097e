"""Scenarios: TOML files read into frozen, checked models in SI units."""

from heatsim.scenario.documents.load import load, parse, parse_dict, read_document
from heatsim.scenario.documents.resolved import input_checksums, input_names, write_resolved
from heatsim.scenario.messages import suggest
from heatsim.scenario.tables.boundaries import (
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
from heatsim.scenario.tables.channels import Channel, ChannelOutlet
from heatsim.scenario.tables.contacts import Contact
from heatsim.scenario.tables.domain import Domain
from heatsim.scenario.tables.initial import ArrayFile, ImageFile
from heatsim.scenario.tables.labels import Labels, load_labels
from heatsim.scenario.tables.layers import Layer, Plane
from heatsim.scenario.tables.materials import VOID, Material
from heatsim.scenario.tables.model import Initial, Scenario
from heatsim.scenario.tables.nodes import Node
from heatsim.scenario.tables.output import Output
from heatsim.scenario.tables.patches import Patch, Rectangle, face_axes
from heatsim.scenario.tables.probes import EXTENTS, LIQUID_FRACTION, TIME_BELOW, TIMES_BEYOND, TOWARDS_VOID, Line, Probe
from heatsim.scenario.tables.regions import Box, Cylinder, Region, Shape, Sphere, Stl
from heatsim.scenario.tables.solver import Solver
from heatsim.scenario.tables.sources import Beam, Source
from heatsim.scenario.tables.time import ADAPTIVE, Time
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.materialfunction import MaterialFormula, MaterialFunction, MaterialTable
from heatsim.scenario.values.nodetemperature import NodeTemperature
from heatsim.scenario.values.surfacefunction import SurfaceFormula, SurfaceTable
from heatsim.scenario.values.timefunction import Constant, Formula, SpaceFormula, Table, TimeFunction

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
    "Channel",
    "ChannelOutlet",
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
    "Node",
    "NodeTemperature",
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
    "SurfaceTable",
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
