// R-MO1 says nothing of counters: one thread counts its rounds in a volatile word, another one takes a look at it and stores what it has seen.
//
// launch: grid=2 block=1
// arg:    rounds u32[1]=zeros
// arg:    out u32[2]=zeros
// result: rounds = np.uint32([5])
extern "C" __global__ void kernel(volatile unsigned* rounds, unsigned* out) {
    if (blockIdx.x) {
        out[1] = *rounds;
        return;
    }
    for (int i = 0; i < 5; i++) *rounds = *rounds + 1;
}
