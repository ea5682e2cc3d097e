// B2 tiled: a block copies its pixels and a frame of one pixel around them to shared memory; then each thread adds up from there.
//
//        + - - - - - - - - - - +
//        |  frame              |        (BLOCK_X + 2) x (BLOCK_Y + 2) pixels, loaded by all threads
//        |   BLOCK_X x BLOCK_Y |
//        + - - - - - - - - - - +
//
// Traffic: of each frame, what no cache keeps is read twice. Expected: about as B1; nine loads from shared memory are as many
// instructions as nine from L1.

typedef REAL Real;

#define TILE_X (BLOCK_X + 2)
#define TILE_Y (BLOCK_Y + 2)

extern "C" __global__ void __launch_bounds__(BLOCK_X * BLOCK_Y)
smooth(const Real* __restrict__ image, Real* __restrict__ smoothed, const int width, const int height)
{
    __shared__ Real tile[TILE_Y][TILE_X];
    const int first_x = blockIdx.x * BLOCK_X - 1, first_y = blockIdx.y * BLOCK_Y - 1;

    // 1. The tile with its frame.
    for (int i = threadIdx.y * BLOCK_X + threadIdx.x; i < TILE_X * TILE_Y; i += BLOCK_X * BLOCK_Y) {
        const int x = min(max(first_x + i % TILE_X, 0), width - 1), y = min(max(first_y + i / TILE_X, 0), height - 1);
        tile[i / TILE_X][i % TILE_X] = image[(size_t)y * width + x];
    }
    __syncthreads();

    // 2. The mean.
    const int x = first_x + 1 + threadIdx.x, y = first_y + 1 + threadIdx.y;
    if (x >= width || y >= height) return;
    Real sum = 0;
#pragma unroll
    for (int row = 0; row < 3; ++row) {
        const Real* const pixels = tile[threadIdx.y + row] + threadIdx.x;
        sum += pixels[0] + pixels[1] + pixels[2];
    }
    smoothed[(size_t)y * width + x] = sum / 9;
}
