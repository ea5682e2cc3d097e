// gather: single values of many fields, each with a list of cells of its own, by one launch.
//
// A block takes a request: values of one field go one after the other to where the request's results begin. There are a few
// hundred at most; what counts is that they cost one launch and one copy to the host, not one for each field.
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
