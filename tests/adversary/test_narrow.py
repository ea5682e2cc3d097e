"""Tables of laws, heats and materials that bend within a part of a range of temperatures of a few millikelvins."""

import pytest
from adversary.narrow_cases import KINDS, error_in_tolerances, narrow_case

from heatsim.physics.conditions.surface_laws import law_of
from heatsim.physics.problem import HeatProblem
from heatsim.scenario.documents.load import parse_dict

pytestmark = pytest.mark.usefixtures("one_thread")

# When tables did not follow the temperatures that can occur, these were off by 23 to 2,237 times the tolerance.
SEEDS = {"film": (1, 3, 4, 10), "emissivity": (1, 2, 11), "thermostat": (0, 3, 5, 8), "melting": (2, 6)}


@pytest.mark.parametrize(("kind", "seed"), [(kind, seed) for kind in KINDS for seed in SEEDS[kind]])
def test_tables_follow_what_bends_within_millikelvins(kind: str, seed: int) -> None:
    assert error_in_tolerances(narrow_case(seed, kind)) < 2.0


def test_a_table_of_the_user_has_nodes_at_its_kinks() -> None:
    document = narrow_case(0, "film")
    T = [310.0, 325.3, 371.4, 395.2]
    document["initial"]["temperature"] = 400.0
    table = {"temperatures": T, "values": [20.0, 900.0, 30.0, 700.0]}
    document["boundaries"]["x_min"] = {"type": "convection", "coefficient": table, "ambient": 300.0}
    law = law_of(HeatProblem.from_scenario(parse_dict(document)).boundary.unchecked_rows(0.0), 0)
    assert all(abs(law.ambient + law.nodes - kink).min() < 1e-9 for kink in T)
