"""`heatsim kernels --listing`: one file of a rung, which compiles alone and computes the same bits."""

import re
from pathlib import Path

import pytest
from test_nvrtc import LADDER, TUNED, compile_source, skip_if_unknown
from test_races import grid_of, is_right, some_steps

from heatsim.cli import main
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.emulation.machine import compile_kernel
from heatsim.kernels.listing import listing

RUNGS = pytest.mark.parametrize("spec", LADDER, ids=lambda spec: spec.name)


@pytest.mark.quick("coarsened", "streamed", "temporal", "bricked")
@RUNGS
def test_a_listing_compiles_alone(spec: KernelSpec) -> None:
    skip_if_unknown(TUNED)
    text = listing(spec)
    code = "\n".join(line.split("//")[0] for line in text.splitlines())
    assert not {"#include", "cuda_host", "#if FACES", "#if MEMBERS"} & set(re.findall(r"#if \w+|#?\w+", code))
    result = compile_source(text, spec.source, TUNED, ("--std=c++17", "--fmad=false"))
    assert "warning" not in result.log, result.log
    assert set(result.local_memory) == {(0, 0, 0)}, result.log


# Blocks of 09 and 10 wait for each other with instructions of the GPU; the shape of blocks of 10 follows from the grid.
@pytest.mark.quick("coarsened", "temporal")
@pytest.mark.parametrize("spec", LADDER[:8], ids=lambda spec: spec.name)
def test_a_listing_computes_what_the_kernel_computes(spec: KernelSpec, tmp_path: Path) -> None:
    path = tmp_path / spec.source
    path.write_text(listing(spec), encoding="utf-8")
    assert is_right(some_steps(compile_kernel(path, once=True), spec, "forward", grid_of(spec)), grid_of(spec))


def test_a_rung_has_a_number_and_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for wanted in ("04", "4", "coarsened"):
        assert main(["kernels", "--listing", wanted]) == 0
        printed.append(capsys.readouterr().out)
    assert printed == 3 * [listing(LADDER[3])]
    assert "\n// A block has 32 × 16 × 1 threads; each writes 30 × 14 × 32 cells.\n" in printed[0]
    assert main(["kernels", "--listing", "11"]) == 2
    assert '"11" is no rung of the ladder; there are 01 (naive), 02 (tiled)' in capsys.readouterr().err
