// Even lanes exchange, then odd ones, with a barrier of the warp between. The mask of each exchange names all lanes: the even ones wait for the
// odd ones, and these wait at the barrier. Each lane comes to one exchange, which does not make these the same one. The loop is unrolled, so
// that all lanes reach the barrier exactly once. Fixed: the mask names the lanes that exchange.
//
// backends: cpu
// launch: grid=1 block=32
// arg:    out u32[32]=zeros
// expect: barrier-misuse @exchange @exchange severity=error
// result: out = np.arange(32, dtype=np.uint32) ^ 2
extern "C" __global__ void kernel(unsigned* out) {
    unsigned lane = threadIdx.x, found = 0;
#pragma unroll
    for (unsigned turn = 0; turn < 2; ++turn) {
#ifdef RACY
        unsigned mask = 0xffffffff;
#else
        unsigned mask = turn ? 0xaaaaaaaa : 0x55555555;
#endif
        if (lane % 2 == turn) found += __shfl_xor_sync(mask, lane, 2);  /*@exchange*/
        __syncwarp();
    }
    out[lane] = found;
}
