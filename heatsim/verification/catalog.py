"""The cases: published answers, then exact ones. Each scenario file describes the comparison and its source."""

from math import pi

from heatsim.verification import answers, bodies, materials, nodes, rings
from heatsim.verification.case import Case, EndState, Quantity, Temperature, everywhere, one_temperature, probes

_CELSIUS = 273.15


def _celsius(time: float, *degrees: float) -> Quantity:
    """Published temperatures of all probes at one time."""
    return probes({time: tuple(_CELSIUS + value for value in degrees)})


def _above_300(field: Temperature) -> Quantity:
    """Compare with a field that returns differences from 300 K."""
    return everywhere(lambda x, y, z, t: 300.0 + field(x, y, z, t))


_FDS = "FDS heat conduction"
# Why a case has no end state.
_FLOATS = "no surface fixes the temperature"
_CHANGES = "conditions change in time"
_MOVES = "the beam moves"
_WAVE = _above_300(answers.wave(2.3, 0.4))
_AT_300 = one_temperature(300.0)
_AMBIENT = one_temperature(_CELSIUS + 120.0)

CASES = (
    Case("slab_bi_100", _FDS, _celsius(1000.0, 24.79, 27.70, 37.43, 55.97, 83.88, 118.22), 100.0, 1e-3, end=_AMBIENT),
    Case("slab_bi_10", _FDS, _celsius(1200.0, 25.44, 28.00, 36.32, 51.76, 74.94, 104.32), 100.0, 1e-3, end=_AMBIENT),
    Case("slab_bi_1", _FDS, _celsius(10000.0, 66.61, 67.40, 69.74, 73.57, 78.77, 85.18), 100.0, 1e-3, end=_AMBIENT),
    Case("nafems_t3", "NAFEMS T3", _celsius(32.0, 36.60), 100.0, 1e-3, end=_CHANGES),
    Case("nafems_t4", "NAFEMS T4", _celsius(1.0, 18.25), 100.0, 1e-3, end=EndState(0.1, _celsius(0.0, 18.25))),
    Case(
        "half_space_heated",
        "TMAP8 ver-1fd",
        probes({100.0: (114.981,), 500.0: (140.765,), 1000.0: (158.598,), 1800.0: (177.723,)}),
        400.0,
        5e-4,
        end=one_temperature(500.0),
    ),
    Case(
        "half_space_held",
        "Carslaw & Jaeger §2.4",
        _above_300(answers.half_space_held),
        100.0,
        1e-3,
        end=one_temperature(400.0),
    ),
    Case(
        "half_space_periodic",
        "Carslaw & Jaeger §2.6",
        _above_300(answers.half_space_periodic),
        40.0,
        1e-3,
        end=_CHANGES,
    ),
    Case(
        "spreading_gaussian",
        "Carslaw & Jaeger §10.3",
        _above_300(answers.spreading_gaussian),
        100.0,
        1e-3,
        order=True,
        adaptive=2.5e-3,
        end=_FLOATS,
    ),
    Case(
        "discrete_cosine",
        "eigenvector",
        _above_300(answers.discrete_cosine),
        100.0,
        tolerance=1e-13,
        float32=1e-5,
        euler_only="the answer is that of Euler's steps, to rounding",
        end=_FLOATS,
    ),
    Case(
        "held_cube",
        "Carslaw & Jaeger §1.15",
        _above_300(answers.held_cube),
        100.0,
        5e-4,
        order=True,
        adaptive=1e-3,
        end=_AT_300,
    ),
    Case(
        "convection_corner",
        "Carslaw & Jaeger §1.15",
        _above_300(answers.convection_corner),
        100.0,
        5e-4,
        order=True,
        end=_AT_300,
    ),
    Case(
        "anisotropic_block", "Carslaw & Jaeger §1.15", _above_300(answers.anisotropic_block), 100.0, 1e-3, end=_AT_300
    ),
    Case("order_held", "exact wave", _WAVE, 100.0, 5e-4, order=True, end=_CHANGES),
    Case("order_flux", "exact wave", _WAVE, 100.0, 5e-4, order=True, end=_CHANGES),
    Case("order_convection", "exact wave", _WAVE, 100.0, 5e-4, order=True, end=_CHANGES),
    Case("order_insulated", "exact wave", _above_300(answers.wave(pi, 0.0)), 100.0, 5e-4, order=True, end=_FLOATS),
    Case("order_periodic", "exact wave", _above_300(answers.wave(2.0 * pi, 0.4)), 100.0, 5e-4, order=True, end=_FLOATS),
    Case("order_mixed", "exact wave", _above_300(answers.mixed_wave), 200.0, 5e-4, order=True, end=_AT_300),
    Case("order_space", "exact wave", _above_300(answers.plane_wave), 100.0, 1e-3, order=True, end=_CHANGES),
    Case(
        "ambient_from_file",
        "Duhamel's theorem",
        everywhere(lambda x, y, z, t: _CELSIUS + 20.0 + answers.ambient_from_file(x, y, z, t)),
        80.0,
        5e-4,
        order=True,
        end=_CHANGES,
    ),
    Case("composite_wall", "series resistances", bodies.interface, 600.0, 1e-4, end=EndState(0.06)),
    Case("touching_bodies", "Incropera §5.7", everywhere(bodies.touching_bodies), 100.0, 1e-3, end=_FLOATS),
    Case(
        "touching_with_contact",
        "Laplace transforms",
        everywhere(bodies.touching_with_contact),
        100.0,
        1e-3,
        end=_FLOATS,
    ),
    Case(
        "contact_resistance", "series resistances", everywhere(bodies.touching_slabs), 350.0, 1e-4, end=EndState(0.035)
    ),
    Case("radiating_gap", "balance of the gap", everywhere(bodies.radiating_gap), 600.0, 1e-4, end=EndState(0.06)),
    Case(
        "rod_in_sleeve",
        "series resistances",
        probes({600.0: bodies.rod_in_sleeve()}),
        210.0,
        4e-3,
        end=EndState(0.84, probes({0.0: bodies.rod_in_sleeve()})),
    ),
    Case("order_contact", "exact wave", _above_300(bodies.contact_wave), 100.0, 5e-4, order=True, end=_AT_300),
    Case("order_layer", "exact wave", bodies.layered_slab, 100.0, 1e-3, order=True, end=_AT_300),
    Case(
        "region_surfaces",
        "exact wave",
        bodies.region_surfaces,
        100.0,
        5e-4,
        order=True,
        end=one_temperature(300.0, cells=False),
    ),
    Case("order_void", "exact wave", bodies.wave_in_void, 100.0, 1e-3, order=True, end=_CHANGES),
    Case(
        "radiating_body",
        "Incropera eq. 5.18",
        probes({time: (bodies.radiating_body(time),) for time in (15.0, 30.0, 45.0, 60.0)}),
        700.0,
        1e-3,
        end=_AT_300,
    ),
    Case("radiating_slab", "surface balance", everywhere(bodies.radiating_slab), 700.0, 1e-4, end=EndState(0.07)),
    Case("order_radiation", "exact wave", _WAVE, 100.0, 5e-4, order=True, end=_CHANGES),
    Case(
        "natural_convection",
        "surface balance",
        everywhere(bodies.naturally_cooled_slab),
        700.0,
        2e-4,
        end=EndState(0.14),
    ),
    Case("order_beside", "exact wave", _WAVE, 100.0, 5e-4, order=True, end=_CHANGES),
    Case("order_falling", "exact wave", _above_300(answers.wave(1.2, -pi / 2.0)), 50.0, 5e-4, order=True, end=_AT_300),
    Case("order_surface", "exact wave", _WAVE, 100.0, 5e-4, order=True, end=_CHANGES),
    Case("heater_patch", "Fourier series", _above_300(bodies.heater_patch), 75.0, 4e-3, end=EndState(0.3)),
    Case(
        "heated_layer",
        "integrated twice",
        _above_300(bodies.heated_layer),
        90.0,
        2.5e-3,
        order=True,
        end=EndState(0.225),
    ),
    Case("flux_within_cells", "energy balance", bodies.flux_within_cells, 2.4, 1e-5, 1e-4, end=_FLOATS),
    Case("pulsed_source", "energy balance", _above_300(bodies.uniform_rise), 25.0, 1e-4, end=_FLOATS),
    Case("moving_beam", "Cline & Anthony 1977", _above_300(bodies.moving_beam), 140.0, 5e-3, order=True, end=_MOVES),
    Case("absorbed_beam", "Cline & Anthony 1977", _above_300(bodies.absorbed_beam), 60.0, 5e-3, order=True, end=_MOVES),
    Case("source_in_space", "exact modes", _above_300(bodies.sources_in_space), 250.0, 3e-3, order=True, end=_CHANGES),
    Case(
        "resistive_slab",
        "integrated twice",
        _above_300(bodies.resistive_slab),
        190.0,
        1e-3,
        order=True,
        end=EndState(0.22, _above_300(bodies.resistive_slab_at_the_end)),
    ),
    Case(
        "cooled_sphere",
        "Incropera eq. 5.51",
        probes({time: bodies.cooled_sphere(time) for time in (12.5, 25.0, 37.5, 50.0)}),
        100.0,
        3e-3,
        end=one_temperature(300.0, cells=False),
    ),
    Case(
        "kirchhoff_slab", "Carslaw & Jaeger §1.6", _above_300(materials.kirchhoff_slab), 500.0, 1e-3, end=EndState(0.5)
    ),
    Case(
        "warming_block",
        "integrated once",
        probes({time: (materials.warming_block(time),) for time in (10.0, 20.0, 30.0, 40.0)}),
        320.0,
        1e-4,
        end=_FLOATS,
    ),
    Case(
        "order_varying", "exact parabola", everywhere(materials.growing_parabola), 600.0, 1e-3, order=True, end=_CHANGES
    ),
    Case(
        "melting_front",
        "Carslaw & Jaeger §11.2",
        everywhere(materials.melting_front),
        40.0,
        5e-3,
        end=one_temperature(340.0),
    ),
    Case(
        "freezing_front",
        "Carslaw & Jaeger §11.2",
        everywhere(materials.freezing_front),
        25.0,
        5e-3,
        end=one_temperature(253.15),
    ),
    Case("steady_plate", "NAFEMS T4", _celsius(0.0, 18.25), 100.0, 1e-3),
    Case("nafems_t2", "NAFEMS T2", probes({0.0: (927.0,)}), 700.0, 1e-4),
    Case(
        "iso_10211_1",
        "ISO 10211 case 1",
        _celsius(
            0.0,
            *(9.7, 13.4, 14.7, 15.1),
            *(5.3, 8.6, 10.3, 10.8),
            *(3.2, 5.6, 7.0, 7.5),
            *(2.0, 3.6, 4.7, 5.0),
            *(1.3, 2.3, 3.0, 3.2),
            *(0.7, 1.4, 1.8, 1.9),
            *(0.3, 0.6, 0.8, 0.9),
        ),
        20.0,
        5e-3,
    ),
    Case("iso_10211_2", "ISO 10211 case 2", _celsius(0.0, 7.1, 0.8, 7.9, 6.3, 0.8, 16.4, 16.3, 16.8, 18.3), 20.0, 5e-3),
    Case("steady_wall", "series resistances", everywhere(bodies.insulated_wall), 29.65, 1e-4),
    Case("wall_in_void", "series resistances", bodies.wall_in_void, 20.75, 1e-4),
    Case("steady_cylinder", "Incropera §3.5", probes({0.0: bodies.heated_rod()}), 75.0, 5e-3),
    Case("steady_radiation", "integrated twice", everywhere(bodies.heated_slab), 300.0, 1e-4),
    Case("steady_reaction", "exact profile", _above_300(bodies.reacting_slab), 52.0, 2e-3),
    Case("beam_through_void", "balance at surface", bodies.lit_slab, 130.0, 1e-4),
    Case("steady_orthotropic", "Carslaw & Jaeger §1.6", _above_300(materials.orthotropic_plate), 170.0, 3e-4),
    Case("steady_kirchhoff", "Carslaw & Jaeger §1.6", _above_300(materials.kirchhoff_slab), 500.0, 1e-3),
    Case(
        "finite_cylinder",
        "Carslaw & Jaeger §1.15",
        _above_300(rings.finite_cylinder),
        100.0,
        1e-3,
        order=True,
        end=_AT_300,
    ),
    Case("fuel_pin", "integrated twice", everywhere(rings.fuel_pin), 700.0, 2e-3, order=True),
    Case("hollow_cylinder", "series resistances", everywhere(rings.hollow_cylinder), 160.0, 1e-11, 1e-5),
    Case("graded_wall", "series resistances", everywhere(rings.graded_wall), 44.6, 1e-11, 1e-5),
    Case("lumped_bodies", "matrix exp.", nodes.lumped_bodies, 100.0, 5e-4, end=_FLOATS),
    Case("held_wall_node", "exponential", nodes.heated_air, 70.0, 1e-3, end=EndState(7e-4)),
    Case("room_through_a_day", "matrix exp.", nodes.room_through_a_day, 20.0, 1.5e-2, adaptive=1e-4, end=_CHANGES),
    Case("channels_in_series", "Incropera eq. 8.41b", nodes.outlets_in_series, 50.0, 1e-6, end=EndState(5e-5)),
    Case("channel_uniform_flux", "Incropera eq. 8.40", nodes.uniform_flux, 50.0, 1e-4),
    Case("counterflow", "Incropera eq. 11.29a", nodes.counterflow, 70.0, 1e-4),
    Case("corner_of_walls", "conformal mapping", nodes.corner_of_walls, 20.0, 5e-3),
    Case("iso_10211_3", "ISO 10211 case 3", nodes.house_corner, 20.0, 5e-3),
    Case("iso_10211_4", "ISO 10211 case 4", rings.bar_through_insulation, 1.0, 5e-3),
    Case("bestest_gc10a", "IEA BESTEST GC10a", rings.slab_on_ground, 20.0, 5e-3),
)
