// B1 naive: one thread per pixel. Its new value is the mean of the 3 x 3 pixels around it. Beyond the edges of the image, the
// pixels at the edge are repeated.
//
//        a b c        three sums of a row, then their sum:
//        d e f        ((a + b + c) + (d + e + f) + (g + h + i)) / 9
//        g h i
//
// Every pixel is read nine times, all but once from L1. Traffic: one pixel read and one written. Expected: below the copy, because
// of nine loads per pixel.

typedef REAL Real;

extern "C" __global__ void __launch_bounds__(BLOCK_X * BLOCK_Y)
smooth(const Real* __restrict__ image, Real* __restrict__ smoothed, const int width, const int height)
{
    const int x = blockIdx.x * BLOCK_X + threadIdx.x, y = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (x >= width || y >= height) return;
    const int west = max(x - 1, 0), east = min(x + 1, width - 1);
    Real sum = 0;
#pragma unroll
    for (int offset = -1; offset <= 1; ++offset) {
        const Real* const row = image + (size_t)min(max(y + offset, 0), height - 1) * width;
        sum += row[west] + row[x] + row[east];
    }
    smoothed[(size_t)y * width + x] = sum / 9;
}
