"""The cases: published answers, then exact ones. Each scenario file describes the comparison and its source."""

from math import pi

from heatsim.verification import answers, bodies, materials
from heatsim.verification.case import Case, Quantity, Temperature, everywhere, probes

_CELSIUS = 273.15


def _celsius(time: float, *degrees: float) -> Quantity:
    """Published temperatures of all probes at one time."""
    return probes({time: tuple(_CELSIUS + value for value in degrees)})


def _above_300(field: Temperature) -> Quantity:
    """Compare with a field that returns differences from 300 K."""
    return everywhere(lambda x, y, z, t: 300.0 + field(x, y, z, t))


_FDS = "FDS heat conduction"

CASES = (
    Case("slab_bi_100", _FDS, _celsius(1000.0, 24.79, 27.70, 37.43, 55.97, 83.88, 118.22), 100.0, 1e-3),
    Case("slab_bi_10", _FDS, _celsius(1200.0, 25.44, 28.00, 36.32, 51.76, 74.94, 104.32), 100.0, 1e-3),
    Case("slab_bi_1", _FDS, _celsius(10000.0, 66.61, 67.40, 69.74, 73.57, 78.77, 85.18), 100.0, 1e-3),
    Case("nafems_t3", "NAFEMS T3", _celsius(32.0, 36.60), 100.0, 1e-3),
    Case("nafems_t4", "NAFEMS T4", _celsius(1.0, 18.25), 100.0, 1e-3),
    Case(
        "half_space_heated",
        "TMAP8 ver-1fd",
        probes({100.0: (114.981,), 500.0: (140.765,), 1000.0: (158.598,), 1800.0: (177.723,)}),
        400.0,
        5e-4,
    ),
    Case("half_space_held", "Carslaw & Jaeger §2.4", _above_300(answers.half_space_held), 100.0, 1e-3),
    Case(
        "spreading_gaussian",
        "Carslaw & Jaeger §10.3",
        _above_300(answers.spreading_gaussian),
        100.0,
        1e-3,
        order=True,
        in_space=2.5e-3,
    ),
    Case(
        "discrete_cosine",
        "eigenvector",
        _above_300(answers.discrete_cosine),
        100.0,
        tolerance=1e-13,
        float32=1e-5,
        euler_only="its answer is that of Euler's steps, to rounding",
    ),
    Case("held_cube", "Carslaw & Jaeger §1.15", _above_300(answers.held_cube), 100.0, 5e-4, order=True, in_space=1e-3),
    Case("convection_corner", "Carslaw & Jaeger §1.15", _above_300(answers.convection_corner), 100.0, 5e-4, order=True),
    Case("anisotropic_block", "Carslaw & Jaeger §1.15", _above_300(answers.anisotropic_block), 100.0, 1e-3),
    Case("order_held", "exact wave", _above_300(answers.wave(2.3, 0.4)), 100.0, 5e-4, order=True),
    Case("order_flux", "exact wave", _above_300(answers.wave(2.3, 0.4)), 100.0, 5e-4, order=True),
    Case("order_convection", "exact wave", _above_300(answers.wave(2.3, 0.4)), 100.0, 5e-4, order=True),
    Case("order_insulated", "exact wave", _above_300(answers.wave(pi, 0.0)), 100.0, 5e-4, order=True),
    Case("order_periodic", "exact wave", _above_300(answers.wave(2.0 * pi, 0.4)), 100.0, 5e-4, order=True),
    Case("order_mixed", "exact wave", _above_300(answers.mixed_wave), 200.0, 5e-4, order=True),
    Case("composite_wall", "series resistances", bodies.interface, 600.0, 1e-4),
    Case("touching_bodies", "Incropera §5.7", everywhere(bodies.touching_bodies), 100.0, 1e-3),
    Case("contact_resistance", "series resistances", everywhere(bodies.touching_slabs), 350.0, 1e-4),
    Case("rod_in_sleeve", "series resistances", probes({600.0: bodies.rod_in_sleeve()}), 210.0, 4e-3),
    Case("order_contact", "exact wave", _above_300(bodies.contact_wave), 100.0, 5e-4, order=True),
    Case(
        "radiating_body",
        "Incropera eq. 5.18",
        probes({time: (bodies.radiating_body(time),) for time in (15.0, 30.0, 45.0, 60.0)}),
        700.0,
        1e-3,
    ),
    Case("radiating_slab", "surface balance", everywhere(bodies.radiating_slab), 700.0, 1e-4),
    Case("order_radiation", "exact wave", _above_300(answers.wave(2.3, 0.4)), 100.0, 5e-4, order=True),
    Case("heater_patch", "Fourier series", _above_300(bodies.heater_patch), 75.0, 4e-3),
    Case("heated_layer", "integrated twice", _above_300(bodies.heated_layer), 90.0, 2.5e-3, order=True),
    Case("pulsed_source", "energy balance", _above_300(bodies.uniform_rise), 25.0, 1e-4),
    Case("moving_beam", "Cline & Anthony 1977", _above_300(bodies.moving_beam), 140.0, 5e-3, order=True),
    Case(
        "cooled_sphere",
        "Incropera eq. 5.51",
        probes({time: bodies.cooled_sphere(time) for time in (12.5, 25.0, 37.5, 50.0)}),
        100.0,
        3e-3,
    ),
    Case("kirchhoff_slab", "Carslaw & Jaeger §1.6", _above_300(materials.kirchhoff_slab), 500.0, 1e-3),
    Case(
        "warming_block",
        "integrated once",
        probes({time: (materials.warming_block(time),) for time in (10.0, 20.0, 30.0, 40.0)}),
        320.0,
        1e-4,
    ),
    Case("order_varying", "exact parabola", everywhere(materials.growing_parabola), 600.0, 1e-3, order=True),
    Case("melting_front", "Carslaw & Jaeger §11.2", everywhere(materials.melting_front), 40.0, 5e-3),
    Case("steady_plate", "NAFEMS T4", _celsius(0.0, 18.25), 100.0, 1e-3),
    Case("steady_wall", "series resistances", everywhere(bodies.insulated_wall), 29.65, 1e-4),
    Case("steady_cylinder", "Incropera §3.5", probes({0.0: bodies.heated_rod()}), 75.0, 5e-3),
    Case("steady_radiation", "integrated twice", everywhere(bodies.heated_slab), 300.0, 1e-4),
    Case("steady_kirchhoff", "Carslaw & Jaeger §1.6", _above_300(materials.kirchhoff_slab), 500.0, 1e-3),
)
