// A request and its answer, each a flag of one thread: raised, seen, lowered, seen. Both threads store their own flag and then look at the other's,
// with no fence.sc. The second thread goes on where it finds the first one's flag lowered while its own is raised, as a lock would. It has seen
// what it answers, so it cannot miss it: no crossed stores (R-MO2).
// launch: grid=1 block=64
// arg: x i32[5]=random
// arg: out i32[5]=zeros
// result: out = x
#include "../mbarrier.cuh"
#define STORE(p, v) asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(shared(p)), "r"(v) : "memory")
#define AWAIT(p, value) do { u32 v_; do asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(v_) : "r"(shared(p)) : "memory"); while (v_ != value); } while (0)
extern "C" __global__ void kernel(const int* x, int* out) {
    __shared__ u32 request, answer;
    __shared__ int slot;
    if (threadIdx.x == 0) request = answer = 0;
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 5; k++) {
        if (threadIdx.x == 0) {
            slot = x[k];
            STORE(&request, 1);
            AWAIT(&answer, 1);
            STORE(&request, 0);
            AWAIT(&answer, 0);
        } else if (threadIdx.x == 32) {
            AWAIT(&request, 1);
            out[k] = slot;
            STORE(&answer, 1);
            AWAIT(&request, 0);
            STORE(&answer, 0);
        }
    }
}
