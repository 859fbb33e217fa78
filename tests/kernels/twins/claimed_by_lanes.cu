// Lanes look at a slot, and those that find it free take it. Several can find it free, and a barrier of the warp between the look and the store
// would hide that.
// launch: grid=1 block=32
// arg: x u32[32]=arange
// arg: out u32[1]=zeros
// expect: data-race @look @take severity=error
// allow: data-race @take @take severity=error
// result: out = np.ones(1, np.uint32)
extern "C" __global__ void kernel(const unsigned* x, unsigned* out) {
    __shared__ unsigned slot;
    unsigned t = threadIdx.x;
    if (t == 0) slot = 0;
    __syncwarp();
#ifdef RACY
    if (slot == 0) {        /*@look*/
        slot = x[t] + 1;    /*@take*/
        atomicAdd(out, 1);
    }
#else
    if (atomicCAS(&slot, 0, x[t] + 1) == 0) atomicAdd(out, 1);
#endif
}
