"""The device, the kernel and the arithmetic of a run."""

from pydantic import BaseModel, Field

from heatsim.scenario.tables.fields import STRICT, Device, Precision, Text


class Solver(BaseModel):
    """The device and the numerical method; the catalogue of kernels checks the name ``kernel``."""

    model_config = STRICT

    device: Device = Field(default="auto", description="Device; `auto` takes a GPU if there is one")
    kernel: Text = Field(default="auto", description="Kernel; `heatsim kernels` lists the names")
    precision: Precision = Field(
        default="auto",
        description="Floating-point type of the field; `auto`: `float32`, unless its rounding may be more than a tenth "
        "of the tolerance of the run; the same for all runs of a study",
    )
