"""The cells for `domain.accuracy` on several ranks: the first rank finds them, all take them."""

import tomllib

from thread_team import on_ranks

from heatsim.parallel.team import Team
from heatsim.run.error.refinement import Refinement, refine, refine_on_first
from heatsim.scenario import Scenario, parse

TEXT = """
time.method = "steady"
material = { conductivity = 1.0, density = 1000.0, specific_heat = 1000.0 }
domain = { size = [0.1, 0.2], cells = "auto", symmetry = "axial", accuracy = "0.04 K" }
boundaries.x_max = { type = "convection", coefficient = 50.0, ambient = "20 degC" }
boundaries.z_min = { type = "temperature", value = "80 degC" }
probes = [{ name = "axis", point = [0.0, 0.0, 0.05] }]
"""


def scenario() -> Scenario:
    return parse(tomllib.loads(TEXT), "ranks.toml")


def test_all_ranks_take_the_cells_that_the_first_one_finds() -> None:
    def found(team: Team) -> tuple[Scenario, Refinement | None]:
        return refine_on_first(scenario(), team, progress=False)

    alone, refinement = refine(scenario())
    for cells, said in on_ranks(2, found):
        assert cells == alone
        assert said is not None
        assert said.rounds == refinement.rounds
        assert len(said.rounds) > 1
