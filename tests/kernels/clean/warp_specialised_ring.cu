// A producer and a consumer warp around a ring of two stages, with a full and an empty named barrier for each stage.
// launch: grid=2 block=64
// arg: x f32[512]=arange
// arg: out f32[64]=zeros
// arg: tiles i32=8
// result: out = x.reshape(2, 8, 32)[:, :, ::-1].sum(axis=1).reshape(-1)
#define SYNC(id) asm volatile("bar.sync %0, 64;" :: "r"(id) : "memory")
#define ARRIVE(id) asm volatile("bar.arrive %0, 64;" :: "r"(id) : "memory")
#define FULL(stage) (1 + (stage))
#define EMPTY(stage) (3 + (stage))
extern "C" __global__ void kernel(const float* x, float* out, int tiles) {
    __shared__ float ring[2][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float* mine = x + blockIdx.x * tiles * 32;
    if (warp == 0) {
#pragma unroll 1
        for (int k = 0; k < tiles; k++) {
            SYNC(EMPTY(k % 2));
            ring[k % 2][lane] = mine[k * 32 + lane];
            ARRIVE(FULL(k % 2));
        }
    } else {
        float sum = 0.0f;
        ARRIVE(EMPTY(0));
        ARRIVE(EMPTY(1));
#pragma unroll 1
        for (int k = 0; k < tiles; k++) {
            SYNC(FULL(k % 2));
            sum += ring[k % 2][31 - lane];
            if (k + 2 < tiles) ARRIVE(EMPTY(k % 2));
        }
        out[blockIdx.x * 32 + lane] = sum;
    }
}
