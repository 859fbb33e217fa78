// Half of a warp sums by shuffles of its own mask, then the whole warp exchanges. In the racy twin lanes whose sum follows from lanes outside of
// the mask store theirs, too.
// launch: grid=1 block=32
// arg: x i32[32]=arange
// arg: out i32[64]=zeros
// expect: barrier-misuse @shuffle @use severity=error
// allow: barrier-misuse severity=error
// result: out = np.concatenate((x[16:], x[:16], [x[:16].sum()], np.zeros(31, x.dtype)))
extern "C" __global__ void kernel(const int* x, int* out) {
    const unsigned t = threadIdx.x;
    int v = x[t], sum = 0;
    if (v < 16) {
        sum = v + __shfl_down_sync(0xffff, v, 8);  /*@shuffle*/
        sum += __shfl_down_sync(0xffff, sum, 4);
        sum += __shfl_down_sync(0xffff, sum, 2);
        sum += __shfl_down_sync(0xffff, sum, 1);
    }
    if (t == 0) out[32] = sum;
#ifdef RACY
    if (t < 16) out[48 + t] = sum;  /*@use*/
#endif
    out[t] = __shfl_xor_sync(~0u, v, 16);
}
