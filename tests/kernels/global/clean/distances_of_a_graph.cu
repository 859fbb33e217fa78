// A round of a search in a graph: each CTA stores the distance of the vertex that a table names for its edge, and looks at that of another edge's. The
// next round sees what a look has missed. The table decides that one thread alone stores to a vertex: it is no flag of its own (R-MO2).
// launch: grid=2 block=32
// arg: table u32[64]=arange
// arg: distance u32[64]=zeros
// arg: again f32[2]=zeros
// result: again = np.zeros(2)
extern "C" __global__ void kernel(const unsigned* table, volatile unsigned* distance, float* again) {
    if (threadIdx.x) return;
    unsigned edge = blockIdx.x * 32;
    distance[table[edge]] = 1;
    if (distance[table[edge ^ 32]] == 0) again[blockIdx.x] = 0;
}
