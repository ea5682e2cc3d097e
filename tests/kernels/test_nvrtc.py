"""NVRTC compiles every kernel for every generation of GPU, without a warning and without spilling registers.

By default: what "auto" can choose, for the architecture for which the kernels are tuned, each choice in some build.
With HEATSIM_SLOW=1: all builds. Neither a GPU nor a driver is needed: the compiler is a separate library.
"""

import os
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from covering import SLOW, covering
from executor import BLOCK_MEMORY

from heatsim.grid import Grid
from heatsim.kernels import compilation, compiled
from heatsim.kernels.catalog import BRICKED, KERNELS, KernelSpec
from heatsim.kernels.compiled import REAL
from heatsim.kernels.composite import surface_heat
from heatsim.kernels.composite.cell_heat import heating_build
from heatsim.kernels.launch_shapes import in_three_steps
from heatsim.kernels.multigrid import cuda_sweeps
from heatsim.kernels.nodes import node_stage
from heatsim.kernels.primers import primers
from heatsim.kernels.reductions import find, fused, gather, step_error
from heatsim.kernels.reductions.ladder import LADDER as SUMS
from heatsim.kernels.temporal_composite import correction
from heatsim.physics.matter.coefficients import SCHEMES, Scheme

GRID = Grid((64, 64, 64), (1.0, 1.0, 1.0))
ARCHITECTURES = (75, 80, 90, 100, 120)
WITH_MUCH_SHARED_MEMORY = (80, 90, 100)  # enough for a block of 07, which runs on no others
TUNED = 90  # Hopper
LADDER = [spec for spec in KERNELS if spec.backend == "cuda"]
CHOICES = LADDER[5:]  # of "auto"
VARIANTS: list[tuple[str, Scheme]] = list(product(("float32", "float64"), SCHEMES))


Row = TypeVar("Row", bound=tuple[Hashable, ...])


def on(*architectures: int) -> pytest.MarkDecorator:
    """Cases of a test for some architectures."""
    return pytest.mark.parametrize("architecture", [_case(each, slow=each != TUNED) for each in architectures])


def _case(*values: Any, slow: bool, name: str | None = None) -> Any:
    return pytest.param(*values, id=name, marks=pytest.mark.slow if slow else ())


def few(rows: Iterable[Row]) -> list[Row]:
    """Without HEATSIM_SLOW=1 some of the builds of kernels that "auto" can choose; a kernel is the first of a row."""
    chosen = list(rows)
    return chosen if SLOW else covering((row for row in chosen if row[0] in CHOICES), strength=1)


# Sums of seven terms take fewer registers than increments, as float32 does than float64; without HEATSIM_SLOW=1 those
# for stages are compiled.
ROUNDED: list[tuple[str, Scheme]] = [("float32", "increments"), ("float64", "increments")]
MOST_REGISTERS = ROUNDED[1:]
PLAIN = [(spec, *variant) for spec in LADDER for variant in (VARIANTS if SLOW else MOST_REGISTERS)]


def variants(spec: KernelSpec, architecture: int, among: Sequence[tuple[str, Scheme]]) -> Sequence[tuple[str, Scheme]]:
    """All of them where the kernels are tuned; elsewhere one in turn.

    The assembler of each architecture sees every kernel, and every variant of other kernels.
    """
    turn = LADDER.index(spec) + ARCHITECTURES.index(architecture)
    return among if architecture == TUNED else [among[turn % len(among)]]


@dataclass(frozen=True)
class Compiled:
    """The output of NVRTC: the binary, and the messages of compiler and assembler."""

    binary: bytes
    log: str

    @property
    def local_memory(self) -> list[tuple[int, int, int]]:
        """Bytes of (stack frame, spill stores, spill loads) of a thread, for each function."""
        pattern = r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
        return [(int(a), int(b), int(c)) for a, b, c in re.findall(pattern, self.log)]


@cache
def nvrtc() -> Any:
    """CuPy's binding of NVRTC; skips the test where it is missing, fails it if CI=true."""
    try:
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()
    except (ImportError, RuntimeError) as error:
        reason = f"no NVRTC: {error}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return nvrtc


def compile_source(source: str, name: str, architecture: int, options: Sequence[str]) -> Compiled:
    program = nvrtc().createProgram(source, name, [], [])
    try:
        nvrtc().compileProgram(program, (*options, f"--gpu-architecture=sm_{architecture}", "-Xptxas", "-v"))
        return Compiled(nvrtc().getCUBIN(program), nvrtc().getProgramLog(program).rstrip("\0"))
    except nvrtc().NVRTCError as error:
        raise AssertionError(f"{name}, sm_{architecture}: {error}\n{nvrtc().getProgramLog(program)}") from None
    finally:
        nvrtc().destroyProgram(program)


def skip_if_unknown(architecture: int) -> None:
    if architecture not in nvrtc().getSupportedArchs():
        pytest.skip(f"NVRTC {nvrtc().getVersion()} does not know sm_{architecture}")


@pytest.mark.parametrize(
    ("spec", "architecture"),
    [
        _case(
            spec,
            architecture,
            slow=spec not in CHOICES or architecture != TUNED,
            name=f"{spec.name}-{architecture}",
        )
        for spec in LADDER
        for architecture in ARCHITECTURES
        if spec.name != "temporal" or architecture in WITH_MUCH_SHARED_MEMORY
    ],
)
def test_every_kernel_compiles_without_warnings_or_spills(spec: KernelSpec, architecture: int) -> None:
    skip_if_unknown(architecture)
    chosen = variants(spec, architecture, [row[1:] for row in PLAIN if row[0] is spec])

    def build(variant: tuple[Any, Any]) -> Compiled:
        options = compilation.build(spec, *variant, GRID).options
        return compile_source(compilation.source(spec.source), spec.source, architecture, options)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for variant, compiled in zip(chosen, pool.map(build, chosen), strict=True):
            assert compiled.binary[:4] == b"\x7fELF", variant
            assert "warning" not in compiled.log, f"{variant}\n{compiled.log}"
            # Elsewhere than on Hopper 07 misses up to six registers, and 10 two.
            allowed = {"temporal": 24, "bricked": 8}.get(spec.name, 0) if architecture != 90 else 0
            assert all(stack <= allowed for stack, _, _ in compiled.local_memory), f"{variant}\n{compiled.log}"


@pytest.mark.slow
@on(90)
@pytest.mark.parametrize("spec", LADDER[5:8], ids=lambda spec: spec.name)  # those that ensembles take
def test_every_kernel_for_members_compiles_without_warnings_or_spills(spec: KernelSpec, architecture: int) -> None:
    """The sum does not depend on the member, and seven terms take fewer registers than increments."""
    skip_if_unknown(architecture)
    chosen: list[tuple[KernelSpec, str, Scheme]] = [
        (spec, *variant) for variant in (ROUNDED if SLOW else MOST_REGISTERS)
    ]
    if spec.name == "temporal":
        chosen = [*(chosen if SLOW else ()), (in_three_steps(spec), "float64", "increments")]

    def build(variant: tuple[KernelSpec, Any, Any]) -> Compiled:
        options = compilation.build(*variant, GRID, members=True).options
        return compile_source(compilation.source(spec.source), spec.source, architecture, options)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for variant, compiled in zip(chosen, pool.map(build, chosen), strict=True):
            assert "warning" not in compiled.log, f"{variant}\n{compiled.log}"
            # On Blackwell NVRTC 13.0 misses up to 22 registers of 07 in float64 and four of others, 13.5 four of 07.
            allowed = (88 if spec.name == "temporal" else 16) if architecture >= 100 else 0
            assert all(stack <= allowed for stack, _, _ in compiled.local_memory), f"{variant}\n{compiled.log}"


@on(90)
def test_bricks_of_composite_members_compile_without_warnings_and_nearly_without_spills(architecture: int) -> None:
    skip_if_unknown(architecture)
    body = compilation.Variant(faces=True, materials=True, heated=True, contacts=True)
    chosen: list[tuple[str, Scheme, compilation.Variant]] = [
        ("float32", "increments", body),
        ("float64", "increments", body),
        ("float32", "increments", replace(body, mixed=True, laws=True)),
        ("float64", "increments", compilation.Variant(faces=True, heated=True)),
    ]

    def build(case: tuple[str, Scheme, compilation.Variant]) -> Compiled:
        precision, scheme, variant = case
        options = compilation.build(BRICKED, precision, scheme, GRID, variant, members=True).options
        return compile_source(compilation.source(BRICKED.source), BRICKED.source, architecture, options)

    chosen = chosen if SLOW else chosen[2:3]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, compiled in zip(chosen, pool.map(build, chosen), strict=True):
            assert "warning" not in compiled.log, f"{case}\n{compiled.log}"
            # Coefficients in shared memory take registers: with mixed cells up to twelve are missing.
            allowed = 48 if case[2].mixed else 0
            assert all(stack <= allowed for stack, _, _ in compiled.local_memory), f"{case}\n{compiled.log}"


@on(90)
def test_kernels_of_stages_compile_without_warnings_and_nearly_without_spills(architecture: int) -> None:
    """The kernels that runs take, alone and for members."""
    skip_if_unknown(architecture)
    forms = product(CHOICES, ("float32", "float64"), ("seven_term", "increments"), (False, True))
    chosen = few(form for form in forms if not (form[0].resident and form[-1]))

    def build(variant: tuple[KernelSpec, Any, Any, bool]) -> Compiled:
        spec, precision, scheme, members = variant
        options = compilation.build(
            spec, precision, scheme, GRID, compilation.Variant(stages=True), members=members
        ).options
        return compile_source(compilation.source(spec.source), spec.source, architecture, options)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for variant, compiled in zip(chosen, pool.map(build, chosen), strict=True):
            assert "warning" not in compiled.log, f"{variant}\n{compiled.log}"
            # Four coefficients more take registers: 07 misses up to 14, others four.
            allowed = 56 if variant[0].name == "temporal" and architecture != 90 else 16
            assert all(stack <= allowed for stack, _, _ in compiled.local_memory), f"{variant}\n{compiled.log}"


@on(90)
def test_kernels_of_rates_compile_without_warnings_or_spills(architecture: int) -> None:
    skip_if_unknown(architecture)
    streamed = next(spec for spec in LADDER if spec.name == "streamed")
    needs = [
        compilation.Variant(faces=True, stages=True, rate=True),
        compilation.Variant(faces=True, materials=True, heated=True, mixed=True, contacts=True, stages=True, rate=True),
        compilation.Variant(faces=True, materials=True, varying=True, contacts=True, stages=True, rate=True),
        compilation.Variant(faces=True, materials=True, heated=True, contacts=True, stages=True, rate=True, laws=True),
        compilation.Variant(faces=True, materials=True, varying=True, stages=True, rate=True, laws=True),
    ]
    # In float64 a value takes two registers; the others take fewer registers, so they are slow.
    for precision, variant in product(REAL if SLOW else ("float64",), needs if SLOW else needs[1:]):
        kernel = compilation.build(streamed, precision, "increments", GRID, variant)
        compiled = compile_source(compilation.source(kernel.source), kernel.source, architecture, kernel.options)
        assert "warning" not in compiled.log, f"{variant}\n{compiled.log}"
        # The search in a law's table takes a register more than enthalpy tables leave.
        allowed = 8 if variant.laws and variant.varying else 0
        assert all(max(memory) <= allowed for memory in compiled.local_memory), f"{variant}\n{compiled.log}"


@on(75, 90, 120)
def test_kernels_of_heated_cells_and_lit_surfaces_compile_without_warnings_or_spills(architecture: int) -> None:
    skip_if_unknown(architecture)
    streamed = next(spec for spec in LADDER if spec.name == "streamed")
    needs = [
        compilation.Variant(faces=True, cell_heat=True),
        compilation.Variant(faces=True, materials=True, heated=True, contacts=True, cell_heat=True, lit=True),
        compilation.Variant(faces=True, materials=True, varying=True, stages=True, rate=True, cell_heat=True, lit=True),
    ]
    both = ("float32", "float64") if SLOW else ("float64",)
    precisions = {75: ("float64",), 90: both, 120: ("float32",)}[architecture]
    for precision, variant in product(precisions, needs):
        kernel = compilation.build(streamed, precision, "increments", GRID, variant)
        for each in (kernel, heating_build(kernel)):
            compiled = compile_source(compilation.source(each.source), each.source, architecture, each.options)
            assert "warning" not in compiled.log, f"{variant}\n{compiled.log}"
            assert all(stack <= 16 for stack, _, _ in compiled.local_memory), f"{variant}\n{compiled.log}"


@on(*ARCHITECTURES)
def test_kernels_of_graded_grids_compile_without_warnings_and_nearly_without_spills(architecture: int) -> None:
    skip_if_unknown(architecture)
    grid = Grid(GRID.cells, GRID.size, borders=(tuple((np.arange(65) / 64.0).tolist()), (), ()))
    body = compilation.Variant(faces=True, materials=True, heated=True, contacts=True)
    needs = [compilation.LINEAR, compilation.Variant(stages=True), body, replace(body, mixed=True, stages=True)]
    needs += [
        replace(body, heated=False, varying=True),
        replace(body, cell_heat=True, lit=True, stages=True, rate=True),
    ]
    rows = [
        (spec, precision, variant)
        for spec, precision, variant in product(LADDER, REAL, needs)
        if spec.graded and not (spec.name == "bricked" and variant.varying) and not (spec.resident and variant.rate)
    ]
    some = [("streamed", "float32", needs[0]), ("streamed", "float64", needs[2]), ("bricked", "float32", needs[0])]
    for spec, precision, variant in (row for row in rows if SLOW or (row[0].name, *row[1:]) in some):
        kernel = compilation.build(spec, precision, "increments", grid, variant)
        result = compile_source(compilation.source(kernel.source), kernel.source, architecture, kernel.options)
        assert "warning" not in result.log, f"{variant}\n{result.log}"
        # Patches that share cells miss up to six registers in 09, as on uniform grids. Elsewhere four registers in
        # memory cost less than fewer warps: 06 with several materials in float64.
        allowed = 24 if variant.mixed else 16
        assert all(stack <= allowed for stack, _, _ in result.local_memory), f"{variant}\n{result.log}"


@on(75, 90)
def test_every_reduction_compiles_without_warnings_or_spills(architecture: int) -> None:
    skip_if_unknown(architecture)
    jobs: list[tuple[str, Mapping[str, str | int]]] = []
    if SLOW:  # of `heatsim bench` only
        jobs = [("read.cu", {"THREADS": 256}), *((rung.source, rung.macros("float64")) for rung in SUMS)]
    thermometers = fused.Labelling(9, thermometers=fused.Thermometers(None, None, None))
    forms: list[tuple[bool, bool, fused.Labelling, str | None]] = [
        *((*flags, fused.WHOLE, None) for flags in product((False, True), repeat=2)),
        *((False, False, *labelled) for labelled in product((fused.Labelling(9), thermometers), ("uint8", "uint16"))),
    ]
    weighted = [(False, False, fused.WHOLE, None), (False, False, thermometers, "uint16")]
    # One precision in turn of every second form; all are slow, and done where the kernels are tuned.
    jobs += [
        (fused.SOURCE, fused.macros(precision, *form))
        for number, form in enumerate(forms)
        for place, precision in enumerate(REAL)
        if (SLOW and architecture == TUNED) or ((number + number // 2) % 2 == place and (SLOW or number % 3 == 0))
    ]
    jobs += [
        (fused.SOURCE, fused.macros(precision, *form, weighted=True))
        for form, precision in zip(weighted, REAL, strict=True)
    ]
    # In float64 a value takes two registers.
    precisions = REAL if SLOW else ("float64",)
    jobs += [(find.SOURCE, find.macros(precision)) for precision in precisions]
    jobs += [(gather.SOURCE, {"REAL": REAL[precision]}) for precision in precisions]
    jobs += [(step_error.SOURCE, step_error.macros(each, pairs)) for each in precisions for pairs in (False, True)]

    def build(job: tuple[str, Mapping[str, str | int]]) -> Compiled:
        source = (compiled.FOLDER / job[0]).read_text(encoding="utf-8")
        return compile_source(source, job[0], architecture, compiled.options(job[1]))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for job, result in zip(jobs, pool.map(build, jobs), strict=True):
            assert "warning" not in result.log, f"{job}\n{result.log}"
            assert set(result.local_memory) == {(0, 0, 0)}, f"{job}\n{result.log}"


@pytest.mark.slow
@on(75, 90)
def test_every_primer_compiles_without_warnings_or_spills(architecture: int) -> None:
    skip_if_unknown(architecture)
    for primer, precision, nx in product(primers.PRIMERS, REAL, (64, 65)):
        for kernel in primer.kernels:
            source = (primers.FOLDER / kernel.source).read_text(encoding="utf-8")
            options = compiled.options(primer.macros(precision, nx))
            result = compile_source(source, kernel.source, architecture, options)
            assert "warning" not in result.log, result.log
            assert all(memory == (0, 0, 0) for memory in result.local_memory), result.log


@on(75, 90)
def test_multigrid_compiles_without_warnings_or_spills(architecture: int) -> None:
    skip_if_unknown(architecture)
    source = cuda_sweeps.source()
    for precision in REAL:
        macros = [f"-D{name}={value}" for name, value in cuda_sweeps.macros(precision).items()]
        result = compile_source(source, cuda_sweeps.SOURCE.name, architecture, ("--std=c++17", *macros))
        assert "warning" not in result.log, result.log
        assert set(result.local_memory) == {(0, 0, 0)}, result.log


@on(75, 90)
def test_the_heat_of_surfaces_and_nodes_compiles_without_warnings_or_spills(architecture: int) -> None:
    skip_if_unknown(architecture)
    of_nodes = {"REAL": "float", "THREADS": node_stage.THREADS}
    for module, macros in ((surface_heat, {}), (node_stage, of_nodes)):
        source = compiled.spliced(module.FOLDER / module.SOURCE)
        result = compile_source(source, module.SOURCE, architecture, compiled.options(macros))
        assert "warning" not in result.log, result.log
        assert set(result.local_memory) == {(0, 0, 0)}, result.log


# Name, precision, several materials: each rung once, those that a run takes in all forms.
COMPOSITE = [
    ("naive", "float32", True),
    ("naive", "float64", True),
    ("bricked", "float32", True),
    ("bricked", "float64", True),
    ("corrected", "float32", True),
    ("corrected", "float64", True),
    ("corrected", "float64", False),
    ("streamed", "float32", False),
    ("streamed", "float32", True),
    ("streamed", "float64", False),
    ("streamed", "float64", True),
]


@on(*ARCHITECTURES)
def test_materials_that_change_compile_without_warnings_or_spills(architecture: int) -> None:
    skip_if_unknown(architecture)
    names = ("naive", "streamed", "resident") if architecture == TUNED else ("streamed",)
    rungs = [spec for spec in LADDER if spec.name in names]
    rounded = [variant for variant in VARIANTS if variant[1] != "seven_term"]
    chosen = few((spec, *variant) for spec in rungs for variant in variants(spec, architecture, rounded))

    def build(variant: tuple[KernelSpec, str, Scheme]) -> Compiled:
        weighted = variant[1] == "float64"
        needs = compilation.Variant(faces=True, materials=True, varying=True, contacts=weighted)
        kernel = compilation.build(*variant, GRID, needs)
        return compile_source(compilation.source(kernel.source), kernel.source, architecture, kernel.options)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for variant, compiled in zip(chosen, pool.map(build, chosen), strict=True):
            assert "warning" not in compiled.log, f"{variant}\n{compiled.log}"
            assert all(stack == 0 for stack, _, _ in compiled.local_memory), f"{variant}\n{compiled.log}"


@on(*ARCHITECTURES)
def test_composite_bodies_compile_without_warnings_or_spills(architecture: int) -> None:
    skip_if_unknown(architecture)

    def build(variant: tuple[KernelSpec, str, str, bool, bool, bool]) -> Compiled:
        spec, name, precision, materials, contacts, stages = variant
        needs = compilation.Variant(True, materials, False, precision == "float32", contacts=contacts, stages=stages)
        kernel = compilation.build(spec, precision, "increments", GRID, needs)
        if name == "corrected":
            kernel = correction.correction_build(kernel, BLOCK_MEMORY)
        return compile_source(compilation.source(kernel.source), kernel.source, architecture, kernel.options)

    # All of them where the kernels are tuned, with the pipeline, which takes the compiler long; elsewhere a quarter in
    # turn. Contacts add code to several materials.
    some = COMPOSITE[ARCHITECTURES.index(architecture) % 4 :: 4]
    chosen = [(*variant, variant[2] and bool(number % 2), bool(number % 3)) for number, variant in enumerate(some)]
    if architecture == 90:
        chosen = [
            *((*variant, variant[2] and variant[1] == "float32", False) for variant in COMPOSITE),
            *((*variant, variant[2], True) for variant in COMPOSITE if variant[0] in ("corrected", "streamed")),
            ("temporal", "float32", True, False, False),
            ("temporal", "float64", True, False, True),
        ]
    rungs = {spec.name: spec for spec in LADDER}
    builds = few((rungs[variant[0].replace("corrected", "temporal")], *variant) for variant in chosen)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for variant, compiled in zip(builds, pool.map(build, builds), strict=True):
            assert "warning" not in compiled.log, f"{variant}\n{compiled.log}"
            assert all(memory == (0, 0, 0) for memory in compiled.local_memory), f"{variant}\n{compiled.log}"


@on(80, 90)
def test_patches_that_share_cells_compile_without_warnings_or_spills(architecture: int) -> None:
    """Alone and with weighted contacts, of materials that are constant and that change with temperature."""
    skip_if_unknown(architecture)
    names = ("naive", "streamed", "resident", "bricked") if architecture == 90 else ("streamed",)
    one_step = [spec for spec in LADDER if spec.name in names]
    chosen: list[tuple[KernelSpec, str, Scheme, bool, bool]] = [
        (spec, precision, scheme, varying, contacts)
        for spec in one_step
        for precision, scheme in (VARIANTS if spec.name == "streamed" else [("float64", "increments")])
        if scheme != "seven_term"
        for varying in ((False,) if spec.name == "bricked" else (False, True))
        for contacts in (
            (False, True) if architecture == 90 and (spec.name, precision) == ("streamed", "float64") else (True,)
        )
        if architecture == 90 or varying == (precision == "float32")
    ]

    if architecture == 90:
        temporal = next(spec for spec in LADDER if spec.name == "temporal")
        chosen += [(temporal, precision, "increments", False, True) for precision in ("float32", "float64")]
    chosen = few(chosen)

    def build(variant: tuple[KernelSpec, str, Scheme, bool, bool]) -> Compiled:
        spec, precision, scheme, varying, contacts = variant
        needs = compilation.Variant(faces=True, materials=True, varying=varying, mixed=True, contacts=contacts)
        kernel = compilation.build(spec, precision, scheme, GRID, needs)
        if spec.steps > 1:  # 07 itself leaves cells at such faces to the correction
            kernel = correction.correction_build(kernel, BLOCK_MEMORY)
        return compile_source(compilation.source(kernel.source), kernel.source, architecture, kernel.options)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for variant, compiled in zip(chosen, pool.map(build, chosen), strict=True):
            assert "warning" not in compiled.log, f"{variant}\n{compiled.log}"
            assert all(memory == (0, 0, 0) for memory in compiled.local_memory), f"{variant}\n{compiled.log}"


def test_spills_are_seen_in_the_log() -> None:
    text = (Path(__file__).parents[1] / "cuda_host" / "spills.cu").read_text()
    compiled = compile_source(text, "spills.cu", 90, ("--maxrregcount=32",))
    ((_, stores, loads),) = compiled.local_memory
    assert stores > 0
    assert loads > 0


def test_an_error_of_the_compiler_names_file_and_line_as_the_author_wrote_them() -> None:
    spec = next(spec for spec in LADDER if spec.boxed)
    line = "    commit_copies();\n"
    broken = compilation.source(spec.source).replace(line, "    missing();\n")
    number = (compilation.FOLDER / spec.source).read_text().splitlines(keepends=True).index(line) + 1
    with pytest.raises(AssertionError, match=rf"{re.escape(spec.source)}\({number}\): error: .*missing"):
        compile_source(broken, spec.source, 90, compilation.build(spec, "float32", "seven_term", GRID).options)
