// gather: single values of many fields, by one launch. Each field has its own list of cells.
//
// A block does one request: it copies the listed values of one field to the request's part of the results. There are a few
// hundred values at most, so traffic does not matter: all cost one launch and one copy to the host, instead of one per field.
//
// Macro: REAL.

typedef REAL Real;

struct Request {
    const Real* field;
    const long long* cells;
    unsigned long long count, first;
};

extern "C" __global__ void gather(const Request* __restrict__ requests, Real* __restrict__ results)
{
    const Request request = requests[blockIdx.x];
    for (unsigned long long i = threadIdx.x; i < request.count; i += blockDim.x)
        results[request.first + i] = request.field[request.cells[i]];
}
