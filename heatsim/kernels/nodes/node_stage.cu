// Explicit stages of nodes (physics/nodes/network.py) on the device: the host queues stages and waits for none of them.
// `sum_sections` adds up what the cells at surfaces give to nodes, and `move_nodes` moves the state of the nodes. Sums have a
// fixed order. Temperatures of nodes that all have heat capacities are known before a stage: `move_nodes` enters them into the
// conditions of the next one, and both run beside the sweep over the cells. Otherwise both run before the sweep, and
// `move_nodes` enters what it has found into the conditions of the same stage.
//
// Macros: REAL, THREADS, a power of two.

typedef REAL Real;

// Section b: cells bounds[b] to bounds[b + 1] - 1 of the list. sums[b] = sum of weight*T.
extern "C" __global__ void sum_sections(const Real* __restrict__ T, const long long* __restrict__ cells,
                                        const double* __restrict__ weights, const long long* __restrict__ bounds,
                                        double* __restrict__ sums)
{
    __shared__ double room[THREADS];
    double own = 0.0;
    for (long long n = bounds[blockIdx.x] + threadIdx.x; n < bounds[blockIdx.x + 1]; n += THREADS)
        own += weights[n] * (double)T[cells[n]];
    room[threadIdx.x] = own;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) room[threadIdx.x] += room[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = room[0];
}

// The columns of the state and of its rate, each of one number a node.
enum Column { TEMPERATURE, SURFACES, LINKS, FLOWS, POWER, COLUMNS };

struct Network {
    const double* links;       // L in W/K: entry (i, j) at j*nodes + i, as in the next two
    const double* flows;       // F in W/K
    const double* response;    // K/W, of nodes without a heat capacity; 0 for others
    const double* capacities;  // J/K
    const double* heats;       // W into each node where cells and nodes are at the reference temperature
    const double* slopes;      // W/K by which the heat from surfaces falls with the temperature of the node
    const long long* first;    // of each node in `order`, and the end of the last one
    const long long* order;    // the sections of each node
    const long long* places;   // in the conditions of a stage, of `entered` temperatures
    const long long* of_place; // the node whose temperature is entered there
    double* lanes;             // W, room for LANES numbers a node
    double* heat;              // W, room for one number a node
    double* missing;           // W, the same
    double* state;             // K and J: COLUMNS numbers a node, column by column
    double* change;            // of the state in the last stage
    long long* done;           // stages since the host has set the state
    const double* stages;      // of each stage its length in s, the address of its conditions, and in W what given temperatures
                               // bring each node through links, through flows, and power
    double reference;          // K
    int nodes, entered;
    int ahead;                 // 1 if temperatures are entered into the conditions of the next stage, else 0
};

// Threads that add up the sections of a node.
const int LANES = 32;

__device__ double times(const double* matrix, const double* values, int i, int nodes)
{
    double sum = 0.0;
    for (int j = 0; j < nodes; ++j) sum += matrix[(long long)j * nodes + i] * values[j];
    return sum;
}

// Enter temperatures into the conditions of a stage; behind the last stage their address is 0.
__device__ void enter(const Network& network, const double* stage)
{
    Real* const conditions = *reinterpret_cast<Real* const*>(stage + 1);
    for (int i = threadIdx.x; conditions && i < network.entered; i += THREADS)
        conditions[network.places[i]] = (Real)(network.state[network.of_place[i]] - network.reference);
}

// One block; enters temperatures into the conditions of the first stage.
extern "C" __global__ void enter_first(const Network network) { enter(network, network.stages); }

// One block; `sums` are those of the sections of all ranks.
extern "C" __global__ void move_nodes(const Network network, const double* __restrict__ sums)
{
    const int nodes = network.nodes;
    const int length = 2 + 3 * nodes;
    const double* const stage = network.stages + *network.done * length;
    const double* const given = stage + 2;
    double* const u = network.state + TEMPERATURE * nodes;
    for (int lane = threadIdx.x; lane < LANES * nodes; lane += THREADS) {
        const int i = lane / LANES;
        double own = 0.0;
        for (long long n = network.first[i] + lane % LANES; n < network.first[i + 1]; n += LANES) own += sums[network.order[n]];
        network.lanes[lane] = own;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < nodes; i += THREADS) {
        double heat = network.heats[i] - network.slopes[i] * (u[i] - network.reference);
        for (int lane = 0; lane < LANES; ++lane) heat += network.lanes[i * LANES + lane];
        double missing = 0.0;
        if (network.capacities[i] == 0.0)
            missing = heat + given[i] + given[nodes + i] + given[2 * nodes + i] - times(network.links, u, i, nodes) -
                      times(network.flows, u, i, nodes);
        network.heat[i] = heat;
        network.missing[i] = missing;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < nodes; i += THREADS)
        if (network.capacities[i] == 0.0) {
            const double rise = times(network.response, network.missing, i, nodes);
            u[i] += rise;
            network.heat[i] -= network.slopes[i] * rise;
        }
    __syncthreads();
    if (!network.ahead) enter(network, stage);
    for (int i = threadIdx.x; i < nodes; i += THREADS) {
        const double heat = network.heat[i], power = given[2 * nodes + i];
        const double links = given[i] - times(network.links, u, i, nodes);
        const double flows = given[nodes + i] - times(network.flows, u, i, nodes);
        const double stored = network.capacities[i] == 0.0 ? 0.0 : (heat + links + flows + power) / network.capacities[i];
        const double rates[COLUMNS] = {stored, heat, links, flows, power};
        for (int column = 0; column < COLUMNS; ++column) network.change[column * nodes + i] = stage[0] * rates[column];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < COLUMNS * nodes; i += THREADS) network.state[i] += network.change[i];
    if (threadIdx.x == 0) ++*network.done;
    if (!network.ahead) return;
    __syncthreads();
    enter(network, stage + length);
}
