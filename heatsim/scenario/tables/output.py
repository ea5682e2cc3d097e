"""The files that a run writes, and when."""

from pydantic import BaseModel, Field

from heatsim.scenario.tables.fields import STRICT, Duration, ErrorName, Flag, ShownTemperature, TemperatureName
from heatsim.temperature_units import KELVIN, TEMPERATURE_UNITS, TemperatureUnit

# The value of an interval that the scenario does not give.
NEVER = float("inf")


class Output(BaseModel):
    """The files of a run and their times: s of simulated time, but ``checkpoint_wall`` in s of wall-clock time."""

    model_config = STRICT

    every: Duration = Field(
        default=NEVER,
        validate_default=False,
        description="Interval between fields and pictures",
        json_schema_extra={"default": "`time.end`"},
    )
    probe_every: Duration = Field(
        default=NEVER,
        validate_default=False,
        description="Interval between rows of `probes.csv` and `energy.csv`",
        json_schema_extra={"default": "`every`"},
    )
    checkpoint_wall: Duration = Field(default=60.0, description="Wall-clock time between checkpoints")
    fields: Flag = Field(default=True, description="Write `fields.vtkhdf`")
    energy: Flag = Field(default=True, description="Write `energy.csv`")
    region_heat: Flag = Field(
        default=False, description="Add the heat of each region and the flow through each contact to `energy.csv`"
    )
    heat_flux: Flag = Field(default=False, description="Add heat flux vectors to `fields.vtkhdf`")
    figures: Flag = Field(default=True, description="Draw pictures at the end")
    error: ErrorName = Field(
        default="auto",
        description="Find the error in space with a run on a coarser grid, if that takes at most a tenth of the time",
    )
    temperature: ShownTemperature = Field(
        default="auto",
        description="Unit of temperatures in pictures, in reports and on the terminal; `auto`: the unit that most "
        "temperatures of the scenario have; fields are in K",
    )
    table_temperature: TemperatureName | None = Field(
        default=None,
        description="Unit of temperatures in CSV tables",
        json_schema_extra={"default": "`temperature`; with `auto`: `K`"},
    )

    @property
    def temperature_unit(self) -> TemperatureUnit:
        """The unit in which temperatures are shown."""
        return TEMPERATURE_UNITS.get(self.temperature, KELVIN)

    @property
    def table_unit(self) -> TemperatureUnit:
        """The unit of temperatures in tables."""
        return self.temperature_unit if self.table_temperature is None else TEMPERATURE_UNITS[self.table_temperature]

    def until(self, end: float) -> "Output":
        """The same for a run that ends at ``end`` (s): ``every`` defaults to ``end``, ``probe_every`` to ``every``."""
        every = end if self.every == NEVER else self.every
        probe_every = every if self.probe_every == NEVER else self.probe_every
        return self.model_copy(update={"every": every, "probe_every": probe_every})
