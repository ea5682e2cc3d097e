"""All CUDA kernels are called with the arguments of one signature."""

import pytest

from heatsim.kernels.composite.cell_heat import HeatedKernel
from heatsim.kernels.launch import CudaKernel
from heatsim.kernels.temporal_composite.correction import CorrectedKernel


@pytest.mark.parametrize("kernel", [HeatedKernel, CorrectedKernel])
def test_a_kernel_with_another_one_beside_it_has_the_same_call(kernel: type[CudaKernel]) -> None:
    assert kernel.__call__ is CudaKernel.__call__
