// R-MO2: two CTAs search. Several threads of a CTA may find something, each says so in the word of its CTA, and looks whether the other CTA has found
// something. A word that several threads set is no thread's own flag.
//
// launch: grid=2 block=32
// arg:    keys u32[64]=arange
// arg:    found u32[64]=zeros
// arg:    first u32[2]=zeros
// result: found = np.where(np.arange(64) % 32, 0, 1)
extern "C" __global__ void kernel(const unsigned* keys, volatile unsigned* found, unsigned* first) {
    unsigned me = blockIdx.x, other = me ^ 1;
    if (keys[me * 32 + threadIdx.x] % 10 == 7) {
        found[me * 32] = 1;
        if (found[other * 32] == 0) atomicAdd(first + me, 1);
    }
}
