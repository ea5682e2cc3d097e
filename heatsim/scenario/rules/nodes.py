"""The rules of nodes and channels; each returns every mistake, as those in ``checks``."""

from collections.abc import Iterator

from heatsim.errors import Mistake
from heatsim.grid import FACES
from heatsim.scenario.messages import did_you_mean, missing_key, show
from heatsim.scenario.rules.interfaces import wrong_room
from heatsim.scenario.rules.validation import entries, known
from heatsim.scenario.tables.boundaries import Convection, Face, Radiation
from heatsim.scenario.tables.model import Scenario
from heatsim.scenario.tables.nodes import Node
from heatsim.scenario.values.nodetemperature import NodeTemperature
from heatsim.scenario.values.surfacefunction import SurfaceFunction
from heatsim.scenario.values.timefunction import Constant

_ROUNDING = 1e-9  # of flows


def nodes_are_known(scenario: Scenario) -> list[Mistake]:
    """Conditions, links and flows name nodes that exist, and no node names itself."""
    names = [node.name for _, node in entries(scenario.nodes) if known(node.name)]
    mistakes = []
    for index, node in entries(scenario.nodes):
        others = [(f"links.{number}", link.node) for number, link in entries(node.links)]
        others += [(f"flows.{number}", flow.node) for number, flow in entries(node.flows)]
        for place, other in others:
            key = f"nodes.{index}.{place}.node"
            if other is not None and other == node.name:
                mistakes.append(Mistake(key, f"got {show(other)}, the node itself; another node is expected"))
            elif other is not None:
                mistakes += _unknown(key, other, names)
    for key, _, value in _node_temperatures(scenario):
        mistakes += _unknown(key, value.node, names)
    return mistakes


def _unknown(key: str, name: str, names: list[str]) -> list[Mistake]:
    if name in names:
        return []
    choice = f"one of {', '.join(map(show, names))} is expected" if names else "there are no [[nodes]]"
    return [Mistake(key, f"got {show(name)}; {choice}{did_you_mean(name, names)}")]


def nodes_start_somewhere(scenario: Scenario) -> list[Mistake]:
    """A node with a heat capacity has an initial temperature, if time passes."""
    if not known(scenario.time) or scenario.steady:
        return []
    return [
        Mistake(f"nodes.{index}.initial_temperature", missing_key('initial_temperature = "20 degC"'))
        for index, node in entries(scenario.nodes)
        if known(node.heat_capacity) and node.heat_capacity > 0.0 and node.initial_temperature is None
    ]


def nodes_give_what_enters(scenario: Scenario) -> list[Mistake]:
    """Other nodes draw no more fluid from a node than enters it."""
    nodes = [node for _, node in entries(scenario.nodes)]
    flows = [(node, flow) for node in nodes for _, flow in entries(node.flows)]
    if not known(*(value for _, flow in flows for value in (flow.mass_flow, flow.specific_heat))):
        return []
    mistakes = []
    for index, node in entries(scenario.nodes):
        enters = sum(flow.capacity_rate for to, flow in flows if to.name == node.name)
        drawn = sum(flow.capacity_rate for _, flow in flows if flow.node == node.name)
        if drawn > enters * (1.0 + _ROUNDING):
            message = (
                f"other nodes draw {drawn:.6g} W/K of fluid (mass flow · specific heat) from {show(node.name)}, and "
                f"{enters:.6g} W/K enters it; let at least as much enter it"
            )
            mistakes.append(Mistake(f"nodes.{index}.flows", message))
    return mistakes


def nodes_reach_a_known_temperature(scenario: Scenario) -> list[Mistake]:
    """Each node without a heat capacity, and in a steady state each node, is tied to a temperature or a surface."""
    nodes = {node.name: node for _, node in entries(scenario.nodes) if known(node.name)}
    if not known(scenario.time) or len(nodes) != len(scenario.nodes or ()):
        return []
    reached = {value.node for _, _, value in _node_temperatures(scenario)}
    reached |= {name for name, node in nodes.items() if _is_tied(node, scenario.steady)}
    while more := {name for name, node in nodes.items() if name not in reached and _is_beside(node, reached, nodes)}:
        reached |= more
    return [
        Mistake(
            f"nodes.{index}",
            f"{show(node.name)} exchanges heat with no surface, no given temperature and no node that does, so it has "
            "no temperature; give it a link, a flow, or a surface with "
            f"ambient = {{ node = {show(node.name)} }}",
        )
        for index, node in entries(scenario.nodes)
        if node.name not in reached
    ]


def _is_tied(node: Node, steady: bool) -> bool:
    """Whether something fixes the temperature of a node."""
    # One of the ends of a link or flow is given; or none of them could be read.
    others = [*(link.node for _, link in entries(node.links)), *(flow.node for _, flow in entries(node.flows))]
    given = any(other is None for other in others)
    unread = not known(node.heat_capacity, node.links, node.flows, *(node.links or ()), *(node.flows or ()))
    return given or unread or (node.heat_capacity > 0.0 and not steady)


def _is_beside(node: Node, reached: set[str], nodes: dict[str, Node]) -> bool:
    """Whether a node takes heat from one of some nodes."""
    ends = {*(link.node for _, link in entries(node.links)), *(flow.node for _, flow in entries(node.flows))}
    return bool(ends & reached) or any(
        link.node == node.name for name in reached if name in nodes for _, link in entries(nodes[name].links)
    )


def laws_towards_nodes_follow_the_difference(scenario: Scenario) -> list[Mistake]:
    """A law in T and Tamb towards a node is one table that shifts: a coefficient alone, at a stated temperature."""
    mistakes = []
    for key, condition, value in _node_temperatures(scenario):
        film = condition.coefficient if isinstance(condition, Convection) else Constant(0.0)
        if isinstance(condition.emissivity, SurfaceFunction):
            message = "an emissivity that depends on the temperature radiates to given temperatures, not to a node"
        elif not isinstance(film, SurfaceFunction):
            continue
        elif condition.emissivity != Constant(0.0) or condition.flux != Constant(0.0):
            message = "a coefficient in T or Tamb towards a node stands alone; remove emissivity and flux"
        elif value.at_temperature is None:
            message = (
                "a coefficient in T or Tamb towards a node is taken at one ambient temperature, and shifted with the "
                f'node; write ambient = {{ node = {show(value.node)}, at = "20 degC" }}'
            )
        else:
            continue
        mistakes.append(Mistake(key, f"got the node {show(value.node)}; {message}"))
    return mistakes


def _node_temperatures(scenario: Scenario) -> Iterator[tuple[str, Convection | Radiation, NodeTemperature]]:
    """Every key with the temperature of a node, its condition and the value."""
    seen = set()
    for place, condition in _conditions(scenario):
        if not isinstance(condition, Convection | Radiation):
            continue
        for name in ("ambient", "surroundings"):
            value = getattr(condition, name, None)
            # Faces share `default`, and surroundings are the ambient where the file has none.
            if isinstance(value, NodeTemperature) and id(value) not in seen:
                seen.add(id(value))
                yield f"{place}.{name}", condition, value


def _conditions(scenario: Scenario) -> Iterator[tuple[str, Face | None]]:
    """The conditions of faces, patches and surfaces towards void, with their keys."""
    if known(scenario.boundaries):
        for name in ("default", *FACES, "void"):
            yield f"boundaries.{name}", getattr(scenario.boundaries, name)
    yield from ((f"patches.{index}", patch.condition) for index, patch in entries(scenario.patches))
    yield from ((f"surfaces.{index}", surface.condition) for index, surface in entries(scenario.surfaces))


def channels_flow_through_void(scenario: Scenario) -> list[Mistake]:
    """Channels have different names, and void regions without a condition or another channel."""
    if not known(scenario.regions):
        return []
    names = [node.name for _, node in entries(scenario.nodes) if known(node.name)]
    mistakes, taken = [], dict[str, int]()
    rooms = scenario.rooms
    for index, channel in entries(scenario.channels):
        key = f"channels.{index}.region"
        if known(channel.name):
            if channel.name in names:
                message = f"got {show(channel.name)} a second time; all nodes and channels need different names"
                mistakes.append(Mistake(f"channels.{index}.name", message))
            for number, node in entries(scenario.nodes):
                if known(node.name) and node.name.startswith(f"{channel.name}[") and node.name.endswith("]"):
                    message = f"got {show(node.name)}; the channel {show(channel.name)} has nodes with such names"
                    mistakes.append(Mistake(f"nodes.{number}.name", f"{message}: choose another"))
            names.append(channel.name)
        name = channel.region
        if not known(name):
            continue
        if name not in rooms:
            choice = f"one of {', '.join(map(show, rooms))} is expected" if rooms else "no region is void"
            message = f"got {show(name)}; a void region, {choice}{did_you_mean(name, rooms)}"
            mistakes.append(Mistake(key, message))
        elif (wrong := wrong_room(scenario, name)) is not None:
            mistakes.append(Mistake(key, wrong))
        elif name in taken:
            mistakes.append(Mistake(key, f"got {show(name)}; channels.{taken[name]} flows through it already"))
        taken.setdefault(name, index)
        for number, surface in entries(scenario.surfaces):
            if name in surface.names:
                message = (
                    f"got {show(name)} while the channel {show(channel.name)} flows through it and is the surroundings "
                    "of its walls; remove one of them"
                )
                mistakes.append(Mistake(f"surfaces.{number}.{surface.key}", message))
    return mistakes


def channels_follow_each_other(scenario: Scenario) -> list[Mistake]:
    """The channel from which a fluid comes exists, gives as much as enters it, and lies not behind the channel."""
    channels = {channel.name: channel for _, channel in entries(scenario.channels) if known(channel.name)}
    inlets = (channel.inlet for channel in channels.values())
    if len(channels) != len(scenario.channels or ()) or not known(*inlets):
        return []
    mistakes = []
    drawn = dict.fromkeys(channels, 0.0)
    for index, channel in entries(scenario.channels):
        key, before = f"channels.{index}.inlet.channel", channel.before
        if before is None:
            continue
        if before not in channels:
            choice = f"one of {', '.join(map(show, channels))} is expected"
            mistakes.append(Mistake(key, f"got {show(before)}; {choice}{did_you_mean(before, channels)}"))
            continue
        seen = {channel.name}
        while before in channels and before not in seen:
            seen.add(before)
            before = channels[before].before or ""
        if before in seen:
            mistakes.append(
                Mistake(key, f"got {show(channel.before)}, which lies behind this channel: write a temperature")
            )
            continue
        if not known(channel.mass_flow, channel.specific_heat):
            continue
        first = channels[channel.before or ""]
        drawn[first.name] += channel.capacity_rate
        if known(first.mass_flow, first.specific_heat) and drawn[first.name] > first.capacity_rate * (1.0 + _ROUNDING):
            message = (
                f"channels draw {drawn[first.name]:.6g} W/K of fluid (mass flow · specific heat) from "
                f"{show(first.name)}, which has {first.capacity_rate:.6g} W/K"
            )
            mistakes.append(Mistake(f"channels.{index}.mass_flow", message))
    return mistakes
