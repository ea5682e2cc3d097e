"""Sums in sections and parts: the same bits however the sections are spread over processes, on the CPU and the host."""

from collections.abc import Sequence
from itertools import pairwise
from math import fsum
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import PlaneGroups
from heatsim.kernels.reductions import find, fused
from heatsim.kernels.reductions.fused import PART, WHOLE, Labelling, PlaneWeights, Sections, Thermometers
from heatsim.kernels.reductions.statistics import Partials, combined
from heatsim.physics.matter.enthalpy import TemperatureTables, Thermometer, constant, tabulate
from heatsim.scenario import Material

PRECISIONS = ("float32", "float64")
PIECES = (1, 2, 3, 8)
SHAPE = (37, 13, 22)  # an odd number of planes, and planes that begin at no multiple of 16 bytes


def random_weights(where: Device, shape: Sequence[int]) -> tuple[PlaneWeights, NDArray[np.float64]]:
    """Weights of planes, over three orders of magnitude, and their products."""
    random = np.random.default_rng(11)
    across, along = 10.0 ** random.uniform(-2.0, 1.0, shape[1] * shape[2]), 10.0 ** random.uniform(-2.0, 1.0, shape[0])
    return PlaneWeights(where.xp.asarray(across), where.xp.asarray(along)), np.outer(along, across).reshape(shape)


def random_field(precision: str, shape: Sequence[int] = SHAPE) -> NDArray[Any]:
    return np.random.default_rng(5).uniform(-100.0, 300.0, shape).astype(precision)


def in_pieces(
    where: Device,
    values: NDArray[Any],
    labels: NDArray[Any] | None,
    division: Labelling,
    pieces: int,
    weights: PlaneWeights | None = None,
) -> Partials:
    """STATISTICS of a field of which each piece, cut between groups of planes, is a separate array."""
    groups = PlaneGroups.of((len(values), *SHAPE[1:]))
    starts = groups.starts(len(values))
    cuts = starts[[len(starts[:-1]) * piece // pieces for piece in range(pieces)]].tolist()
    found = []
    for first, end in zip(cuts, [*cuts[1:], len(values)], strict=True):
        part = values[first:end]
        bounds = groups.starts(len(part)) * part[0].size
        own = None if labels is None else where.xp.asarray(labels[first:end].copy())
        volumes = None if weights is None else PlaneWeights(weights.across, weights.along[first:end].copy())
        found += fused.partials(where, [Sections(where.xp.asarray(part.copy()), bounds, own, None, volumes)], division)
    return np.concatenate(found)


def test_groups_follow_from_the_whole_grid() -> None:
    for planes, cells in ((1, 1), (2, 9), (3, 9), (16, 1), (120, 42), (513, 2**18), (100_000, 1), (100_000, 2**18)):
        groups = PlaneGroups.of((planes, 1, cells))
        starts = groups.starts(planes)
        assert starts[0] == 0
        assert starts[-1] == planes
        assert groups.size % 2 == 0
        assert (np.diff(starts[:-1]) == groups.size).all()
        assert 0 < starts[-1] - starts[-2] <= groups.size
        assert min(planes // 2, 8) <= len(starts) - 1 <= 4096
    assert PlaneGroups.of((512, 512, 512)).size == 2
    assert PlaneGroups.of((120, 1, 42)).size == 8


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("labelled", [False, True])
def test_pieces_give_the_bits_of_the_whole(where: Device, precision: str, labelled: bool) -> None:
    values = random_field(precision)
    labels = np.random.default_rng(6).integers(0, 5, SHAPE).astype(np.uint8) if labelled else None
    division = Labelling(5) if labelled else WHOLE
    for weights in (None, random_weights(where, SHAPE)[0]):
        whole = in_pieces(where, values, labels, division, 1, weights)
        assert len(whole) == 10
        for pieces in PIECES:
            assert combined(in_pieces(where, values, labels, division, pieces, weights)) == combined(whole)


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("labelled", [False, True])
def test_values_count_with_the_volumes_of_their_cells(where: Device, precision: str, labelled: bool) -> None:
    """In sums; not in extremes. Weights of 1 change no bit, and weights of each value need no planes."""
    shape = (6, 5, 817)  # a section of two planes is longer than a round; planes begin at no multiple of a vector
    values = random_field(precision, shape)
    labels = np.random.default_rng(6).integers(0, 3, shape).astype(np.uint8) if labelled else np.zeros(shape, np.uint8)
    on_device, bounds = where.xp.asarray(values), np.arange(0, 7, 2) * 5 * 817
    of_parts, division = (where.xp.asarray(labels), Labelling(3)) if labelled else (None, WHOLE)
    by_plane, factors = random_weights(where, shape)
    each = PlaneWeights(where.xp.asarray(factors.reshape(-1)), where.xp.ones(1))
    for weights in (by_plane, each):
        (found,) = fused.statistics(where, [Sections(on_device, bounds, of_parts, None, weights)], division)
        for part, of_part in enumerate(found):
            exact, volumes = values[labels == part].astype(np.float64), factors[labels == part]
            magnitude = fsum(np.abs(exact) * volumes)
            assert of_part.total == pytest.approx(fsum(exact * volumes), abs=1e-13 * magnitude)
            assert of_part.absolute_total == pytest.approx(magnitude, rel=1e-13)
            assert (of_part.lowest, of_part.highest, of_part.not_finite) == (exact.min(), exact.max(), 0)
    ones = PlaneWeights(where.xp.ones(5 * 817), where.xp.ones(6))
    plain = Sections(on_device, np.arange(7) * 5 * 817, of_parts)
    of_ones = Sections(on_device, plain.bounds, of_parts, None, ones)
    assert fused.statistics(where, [of_ones], division) == fused.statistics(where, [plain], division)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("label", ["uint8", "uint16"])
def test_each_part_is_described(where: Device, precision: str, label: str) -> None:
    """Parts in long runs, in single cells, in none, and more parts than a block looks for; other bits do not count."""
    parts = 150
    values = random_field(precision, (6, 40, 51))
    labels = np.random.default_rng(7).integers(0, parts - 1, values.shape).astype(label)
    labels[:2] = 3
    labels[2, :, ::2] = 70
    marked = labels | np.where(values > 0.0, 0x100 if label == "uint16" else 0, 0).astype(label)
    array = Sections(where.xp.asarray(values), np.arange(0, 7, 2) * 40 * 51, where.xp.asarray(marked))
    (found,) = fused.statistics(where, [array], Labelling(parts, 0xFF))
    for part in range(parts):
        exact = values[labels == part].astype(np.float64)
        assert found[part].total == pytest.approx(fsum(exact), rel=1e-13, abs=1e-10)
        assert found[part].absolute_total == pytest.approx(fsum(np.abs(exact)), rel=1e-13)
        assert found[part].lowest == exact.min(initial=np.inf)
        assert found[part].highest == exact.max(initial=-np.inf)
        assert found[part].not_finite == 0


def test_values_that_are_not_finite_are_counted_in_their_part(where: Device) -> None:
    values = random_field("float32", (4, 30, 20))
    labels = np.zeros(values.shape, np.uint8)
    labels[:, :, 10:] = 1
    values[1, 7, 3], values[3, 2, 15], values[3, 29, 19] = np.nan, np.inf, -np.inf
    array = Sections(where.xp.asarray(values), np.array([0, 1200, 2400]), where.xp.asarray(labels))
    ((first, second),) = fused.statistics(where, [array], Labelling(2))
    assert (first.not_finite, second.not_finite) == (1, 2)
    assert np.isnan(first.total)
    assert np.isnan(second.total)
    assert (first.lowest, first.highest) == (np.nanmin(values[..., :10]), np.nanmax(values[..., :10]))
    assert (second.lowest, second.highest) == (-np.inf, np.inf)


def test_several_arrays_keep_their_own_sections(where: Device) -> None:
    """Of different lengths, with empty sections, and one without labels."""
    some = [np.arange(5.0), np.arange(70_000.0), np.zeros(0), np.arange(300.0)]
    bounds = [[0, 0, 2, 5], [0, 69_999, 70_000], [0], [0, 300]]
    labels = [None if n == 3 else np.arange(len(one)).astype(np.uint8) % 3 for n, one in enumerate(some)]
    arrays = [
        Sections(where.xp.asarray(one), np.array(its), None if own is None else where.xp.asarray(own))
        for one, its, own in zip(some, bounds, labels, strict=True)
    ]
    found = fused.partials(where, arrays, Labelling(3))
    for one, its, own, got in zip(some, bounds, labels, found, strict=True):
        parts = np.zeros(len(one), np.uint8) if own is None else own
        assert got.shape == (len(its) - 1, 3)
        for section, (first, end) in enumerate(pairwise(its)):
            expected = [fsum(one[first:end][parts[first:end] == part]) for part in range(3)]
            assert got["total"][section].tolist() == expected  # sums of whole numbers are exact


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
def test_temperatures_and_liquid_parts_are_those_of_the_thermometer(where: Device, precision: str) -> None:
    paraffin = Material.model_validate(
        {
            "conductivity": 0.2,
            "density": 800.0,
            "specific_heat": 2000.0,
            "latent_heat": 2e5,
            "solidus": 320.0,
            "liquidus": 330.0,
        }
    )
    enthalpies = [constant((1.0, 1.0, 1.0), 1e6), tabulate(paraffin, 300.0, 250.0, 400.0)]
    contents = np.random.default_rng(8).uniform(-80.0, 250.0, (4, 9, 31)).astype(precision)
    labels = np.random.default_rng(9).integers(0, 2, contents.shape).astype(np.uint8)
    tables = TemperatureTables.of(enthalpies)
    of_part = np.zeros(2, PART)
    for name in ("per_kelvin", "first", "last", "base"):
        of_part[name] = getattr(tables, name)
    of_part["solidus"], of_part["melting"] = (0.0, 20.0), (0.0, 10.0)
    arrays = (where.xp.asarray(one) for one in (of_part.view(np.float64), tables.values, tables.rises))
    given, thermometers = (where.xp.asarray(contents), np.array([0, 558, 1116])), Thermometers(*arrays)
    T = Thermometer(np, enthalpies, lambda place: labels[place])(contents, slice(None))
    liquid = np.clip((T - 20.0) / 10.0, 0.0, 1.0)
    weights, factors = random_weights(where, contents.shape)
    for of_cells, volumes in ((None, np.ones(contents.shape)), (weights, factors)):
        array = Sections(*given, where.xp.asarray(labels), None, of_cells)
        (found,) = fused.statistics(where, [array], Labelling(2, thermometers=thermometers))
        for part in range(2):
            assert found[part].degrees == pytest.approx(fsum((volumes * T)[labels == part]), rel=1e-13)
        assert found[0].liquid == 0.0
        assert found[1].liquid == pytest.approx(fsum((volumes * liquid)[labels == 1]), rel=1e-13)


def test_the_first_cell_of_a_part_is_found(where: Device) -> None:
    values = random_field("float32", (40, 30, 50))
    labels = np.zeros(values.shape, np.uint8)
    labels[20:] = 0x82
    values[3, 4, 5] = values[25, 1, 2] = values[25, 1, 4] = values[39, 0, 0] = -500.0
    among = find.Labelled(where.xp.asarray(labels), 0x7F, 2)
    (found,) = find.first_of_each(where, [where.xp.asarray(values)], [-500.0], [among])
    assert found == (25 * 30 + 1) * 50 + 2
