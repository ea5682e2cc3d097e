// The index of a cell and of its place in a face's ledger, on grids larger than any array of a test.

#include "stencil.cuh"

extern "C" __global__ void index_of(const Grid grid, const int* __restrict__ x, const int* __restrict__ y,
                                    const int* __restrict__ z, unsigned long long* __restrict__ index)
{
    const int i = threadIdx.x;
    index[i] = cell_index(grid, x[i], y[i], z[i]);
}
