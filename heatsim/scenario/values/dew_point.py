"""The dew point of humid air.

    p_sat = 610.5·exp(a·θ/(b + θ)) in Pa, θ in °C      a = 17.269, b = 237.3 from 0 °C on; 21.875, 265.5 below, over ice

Source: ISO 13788:2012, Hygrothermal performance of building components, annex E. (An equation of the form of Magnus.)
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_FREEZING = 273.15  # K
_WATER, _ICE = (17.269, 237.3), (21.875, 265.5)


def dew_point(air: Array, humidity: Array) -> Array:
    """The temperature in K at which the vapour of air saturates it: p_sat(dew point) = humidity·p_sat(air), exactly.

    Args:
        air: its temperature in K.
        humidity: its relative humidity, above 0 and at most 1.
    """
    celsius = air - _FREEZING
    a, b = np.where(celsius >= 0.0, np.reshape(_WATER, (2, 1)), np.reshape(_ICE, (2, 1)))
    exponent = np.log(humidity) + a * celsius / (b + celsius)  # ln(p/610.5 Pa)
    a, b = np.where(exponent >= 0.0, np.reshape(_WATER, (2, 1)), np.reshape(_ICE, (2, 1)))
    return np.asarray(_FREEZING + b * exponent / (a - exponent))
