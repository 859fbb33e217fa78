// Lanes shuffle, vote and match with masks that lack them: the behaviour is undefined (9.7.9.6, 9.7.13.9, 9.7.13.10: "if the executing
// thread is not in the membermask"; R-BAR1). Masks of a part of a warp stand in code that all lanes execute. A barrier of the warp comes
// before, so all lanes are together. What a device does then is not known: it may hang.
// launch: grid=1 block=32
// backends: cpu
// arg: x i32[32]=arange
// arg: out i32[32]=zeros
// expect: barrier-misuse @shuffle severity=error
// expect: barrier-misuse @vote severity=error
// expect: barrier-misuse @match severity=error
// result: out = np.where(np.arange(32) < 16, 32, 0)
#ifdef RACY
constexpr unsigned SHUFFLES = 0x0000ffffu, VOTES = 0x00ffffffu, MATCHES = 0x0fffffffu;
#else
constexpr unsigned SHUFFLES = ~0u, VOTES = ~0u, MATCHES = ~0u;
#endif
extern "C" __global__ void kernel(const int* x, int* out) {
    int lane = threadIdx.x, value = x[lane];
    __syncwarp();
    int last = __shfl_sync(SHUFFLES, value, 15);           /*@shuffle*/
    int votes = __popc(__ballot_sync(VOTES, lane < 16));   /*@vote*/
    int alone = __popc(__match_any_sync(MATCHES, value));  /*@match*/
    if (lane < 16) out[lane] = last + votes + alone;
}
