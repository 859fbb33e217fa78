// A word that warp 0 writes and reads, with __syncwarp between: a compiler loads it in all threads and throws the value away in warp 1.
// launch: grid=1 block=64 arch=sm_80
// arg: x u32[64]=random
// arg: out u32[64]=zeros
// bug 1: clean a condition of two parts
// bug 2: clean a sum
// bug 3: clean a choice between two values
// bug 4: clean one of two conditions
// bug 5: clean a condition within the condition
// bug 6: clean two words at once
// bug 7: data-race the second warp uses the word, too: part of a condition
// bug 8: data-race the same in a sum
// bug 9: data-race the same in a choice
// bug 10: data-race warp 1 uses it where the condition does not hold
typedef unsigned u32;
extern "C" __global__ void __launch_bounds__(64) kernel(const u32* x, u32* out) {
    __shared__ u32 word;
    __shared__ uint2 pair;
    const u32 t = threadIdx.x, lane = t % 32, limit = BUG >= 7 ? 33 : 32;
    u32 v = x[t], r = 0;
    if (t == 5) word = v, pair = make_uint2(v, v + 1);
    __syncwarp();
#if BUG == 1 || BUG == 7
    if (t < limit && word == 3) r = 7;
#elif BUG == 2 || BUG == 8
    if (t < limit) r = word + 1;
#elif BUG == 3 || BUG == 9
    r = t < limit ? word * 3 + v : v;
#elif BUG == 4
    if (t >= limit || word == 3) r = 7;
#elif BUG == 5
    if (t < limit) r = lane > 3 ? word : word + 5;
#elif BUG == 6
    uint2 both = make_uint2(0, 0);
    if (t < limit) both = pair;
    r = both.x + both.y;
#elif BUG == 10
    r = t < 32 ? v : word;
#else
    if (t < limit) r = word;
#endif
    out[t] = r;
}
