"""Sources: heat generated in the body, or absorbed from a beam."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from heatsim.scenario.messages import fault, missing_key, refuse, show, validate_beside
from heatsim.scenario.tables.fields import (
    STRICT,
    Absorptivity,
    Distribution,
    FaceName,
    FactorInTime,
    Form,
    Length,
    Moment,
    Pair,
    Power,
    PowerDensity,
    Speed,
    TemperatureRange,
    Text,
    read_entries,
    read_pair,
)
from heatsim.scenario.tables.named import default_names
from heatsim.scenario.tables.regions import SHAPES, Shaped
from heatsim.scenario.values import units
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.materialfunction import MaterialFormula
from heatsim.scenario.values.quantities import COORDINATE, MOMENT
from heatsim.scenario.values.steered import Steered
from heatsim.scenario.values.timefunction import Constant, SpaceFormula, TimeFunction
from heatsim.storage.tables import SOURCE

_DEFAULT_NAME = re.compile("source [0-9]+")

MAX_POINTS = 100_000


def _read_path(value: object) -> tuple[Pair, ...]:
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MAX_POINTS:
        raise ValueError(f"got {show(value)}; a list of points [u, v] on the face is expected")
    points, faults = [], []
    for index, entry in enumerate(value):
        try:
            points.append(read_pair(entry))
        except ValidationError as error:
            faults += [fault(details["msg"], (index, *details["loc"])) for details in error.errors()]
        except ValueError as error:
            faults.append(fault(str(error), (index,)))
    faults += [
        fault(f"got {show(after)} after the same point; each point must differ from the one before", (index + 1,))
        for index, (before, after) in enumerate(pairwise(points))
        if before == after and not faults
    ]
    if faults:
        refuse(faults)
    return tuple(points)


class Beam(BaseModel):
    """A Gaussian beam through a face, along a path at a speed.

    Its flux at a distance r from the centre of the spot is absorptivity · 2P/(πR²) · exp(−2r²/R²) in W/m², with the
    power P in W and the 1/e² radius R in m. It follows the face's normal through void to the first conducting cell,
    whose surface absorbs it. With an absorption depth δ it enters the body: after a distance s in conducting cells
    exp(−s/δ) of the light is left; light that leaves the body is lost. Points of the path are in m along the face's two
    axes in the order x, y, z. The spot starts at ``start`` (s), moves with ``speed`` (m/s), and is off after the end of
    the path. A path of one point is a spot that does not move; it needs no speed.
    """

    model_config = STRICT

    face: FaceName = Field(examples=['face = "z_max"'], description="Face of the box that it heats")
    power: Annotated[Power, Form("≥ 0")] = Field(examples=["power = 50.0"], description="Power P")
    absorptivity: Absorptivity = Field(default=1.0, description="Fraction of the power that the body absorbs")
    absorption_depth: Length | None = Field(
        default=None,
        examples=["absorption_depth = 50e-6"],
        description="Depth δ in the body at which exp(−1) of the light is left; without it the surface absorbs all",
    )
    radius: Length = Field(examples=["radius = 0.5e-3"], description="1/e² radius R")
    path: Annotated[tuple[Pair, ...], PlainValidator(_read_path), COORDINATE, Form("1 to 100,000 points [u, v]")] = (
        Field(
            examples=["path = [[0.01, 0.02], [0.05, 0.02]]"],
            description="Points [u, v] along the axes of the face; a single point is a spot that does not move; in an "
            "axial domain `[[0.0, 0.0]]`",
        )
    )
    speed: Speed | None = Field(
        default=None,
        examples=["speed = 0.2"],
        validate_default=True,
        description="Speed along the path; required for a path of several points",
    )
    start: Moment = Field(default=0.0, description="Time at which it starts; it is off after the end of the path")

    @field_validator("power", mode="before")
    @classmethod
    def _refuse_functions(cls, value: object) -> object:
        """Refuse a function of time, and say what to write instead."""
        if isinstance(value, Mapping) or _is_expression(value):
            advice = "write a change in time as scale, a key of the source"
            raise ValueError(f"got {show(value)}; power must be a number: {advice}")
        return value

    @field_validator("power", mode="after")
    @classmethod
    def _check_power(cls, power: float) -> float:
        if power < 0.0:
            raise ValueError(f"got {power!r}; the power of a beam must be at least 0 W")
        return power

    @field_validator("speed", mode="after")
    @classmethod
    def _check_speed(cls, speed: float | None, info: ValidationInfo) -> float | None:
        if speed is None and len(info.data.get("path", ())) > 1:
            raise ValueError("missing; write for example speed = 0.2, in m/s along the path")
        return speed


def _read_during(value: object) -> tuple[float, float]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"got {show(value)}; two times are expected, the start and the end, as in [0.0, 5.0]")
    start, stop = read_entries(value, MOMENT)
    if start >= stop:
        raise ValueError(f"got {show(value)}; the first time must be before the second")
    return (start, stop)


def _is_expression(value: object) -> bool:
    """Whether a value is a text with an expression, and not a number with a unit."""
    if not isinstance(value, str) or units.split(value) is not None:
        return False
    try:
        Expression(value, ("x", "y", "z", "t", "T"))
    except ValueError:
        return False
    return True


def _has_T(text: str) -> bool:
    """Whether a text is an expression with T."""
    try:
        return "T" in Expression(text, ("x", "y", "z", "t", "T")).used
    except ValueError:
        return False


class Source(Shaped):
    """A heat source in a region, in a shape or everywhere, or a beam on a face.

    ``power`` is the total in W, spread over the volume of the conducting cells evenly, or as ``distribution`` says.
    ``power_density`` is in W/m³: a number, a function of place and time, or a function of the cell's temperature.
    Beyond ``temperature_range`` (K) the value at its nearer end holds. Negative values remove heat. The source is on
    between the two times of ``during`` (s); ``scale`` is a function of t that multiplies its power.
    """

    name: Text = Field(examples=['name = "die"'], description="Name", json_schema_extra={"default": "`source 1`, …"})
    region: Text | None = Field(default=None, examples=['region = "die"'], description="Region that it heats")
    power: Power | None = Field(
        default=None,
        examples=["power = 120.0"],
        description="Total power, spread evenly over the conducting cells; negative values remove heat",
    )
    distribution: Distribution | None = Field(
        default=None,
        examples=['distribution = "exp(-(x/0.01)^2)"'],
        description="With `power`: the shape of the power density; only ratios of its values matter",
    )
    power_density: PowerDensity | None = Field(
        default=None, examples=["power_density = 1e6"], description="Power per volume"
    )
    temperature_range: TemperatureRange | None = Field(
        default=None,
        examples=["temperature_range = [250.0, 600.0]"],
        description="Range in which a `power_density` with T is valid; beyond it, the value at the nearer end holds",
        json_schema_extra={"default": "1 to 10,000 K"},
    )
    beam: Beam | None = Field(
        default=None,
        examples=[
            'beam = { face = "z_max", power = 50.0, radius = 0.5e-3, path = [[0.01, 0.02], [0.05, 0.02]], speed = 0.2 }'
        ],
        description="A laser beam on a face, instead of the other keys",
    )
    during: Annotated[tuple[float, float], PlainValidator(_read_during), MOMENT, Form("two times ≥ 0")] | None = Field(
        default=None, examples=["during = [0.0, 5.0]"], description="Start and end"
    )
    scale: FactorInTime = Field(default=Constant(1.0), description="Factor for the power as a function of t")

    @field_validator("power", mode="before")
    @classmethod
    def _refuse_functions(cls, value: object) -> object:
        """Refuse an expression or a table, and say what to write instead."""
        if isinstance(value, Mapping):
            of_time = "write power = 1.0, and this table as scale (a factor in time)"
            remedy = "write a function of the temperature as power_density" if "temperatures" in value else of_time
            raise ValueError(f"got {show(value)}; power must be a number: {remedy}")
        if _is_expression(value):
            raise ValueError(
                f"got {show(value)}; power must be a number: write a change in time as scale, its distribution over "
                "the cells as distribution, and a function of the temperature as power_density"
            )
        return value

    @model_validator(mode="wrap")
    @classmethod
    def _check_kind(cls, table: Any, validate: ModelWrapValidatorHandler["Source"]) -> "Source":
        faults = []
        if isinstance(table, Mapping):
            places = [key for key in ("region", *SHAPES, "beam") if key in table]
            amounts = [key for key in ("power", "power_density") if key in table]
            if len(places) > 1:
                faults.append(fault(f"got {' and '.join(places)}; write at most one place for the heat"))
            if "beam" in table and amounts:
                message = f"got {' and '.join(amounts)} beside beam; write the power inside the beam's table"
                faults.append(fault(message))
            if "beam" not in table and not amounts:
                faults.append(fault(missing_key("power = 120.0, or power_density = 1e6"), ("power",)))
            if "beam" not in table and len(amounts) > 1:
                faults.append(fault("got power and power_density; write one of them"))
            if "distribution" in table and "power" not in table:
                faults.append(fault("it needs power, in W", ("distribution",)))
            density = table.get("power_density")
            of_temperature = isinstance(density, MaterialFormula) or (isinstance(density, str) and _has_T(density))
            if "temperature_range" in table and not of_temperature:
                faults.append(fault("it needs a power_density that is an expression in T", ("temperature_range",)))
        return validate_beside(faults, validate, table)

    _steered: Steered | None = PrivateAttr(default=None)

    @property
    def factor(self) -> TimeFunction:
        """The factor in time of :attr:`nominal`: ``scale``, or a power that is set during the run."""
        return self.scale if self._steered is None else self._steered

    @property
    def nominal(self) -> float | None:
        """The power in W at a factor of 1; None if the source has a density or a beam."""
        return self.power if self._steered is None else 1.0

    @property
    def power_is_set(self) -> bool:
        """Whether its power is set during the run."""
        return self._steered is not None

    def steer(self, power: Steered) -> None:
        """Let the power be set during the run; the scale is 1."""
        self._steered = power

    def with_factor(self, value: float) -> "Source":
        """The same source with a constant factor."""
        other = self.model_copy(update={"power": self.nominal, "scale": Constant(value)})
        other._steered = None
        return other

    @property
    def label(self) -> str:
        """Its name in tables and pictures: "source die"; that of a source without a name is "source 1" already."""
        return self.name if _DEFAULT_NAME.fullmatch(self.name) else SOURCE + self.name

    @property
    def even(self) -> bool:
        """Whether it gives the same power density to all its cells, whatever their temperature."""
        return self.beam is None and self.distribution is None and isinstance(self.power_density, float | None)

    def functions_in_time(self) -> Iterator[TimeFunction]:
        """The functions of time of its power; of a density in space its factors in time."""
        yield self.factor
        if isinstance(self.power_density, SpaceFormula):
            yield from (factor for factor, _ in self.power_density.products() or ())


Sources = Annotated[tuple[Source, ...], default_names("sources")]
