// C = A * B for f16 with f32 sums, specialised by warp as libraries do it on Hopper. A is (M, K), B is (N, K), C is (M, N), all with K or N
// innermost. One warp of the first warpgroup keeps a ring of four stages full by TMA; two warpgroups multiply with wgmma, each its half of
// a 128 x 128 tile, and send it out by TMA. CTAs walk over tiles until none is left, so that the ring runs on while a tile is stored.
//
// Launch: any number of CTAs of 384 threads, SHARED_BYTES of dynamic shared memory. Tensor maps, all with 128-byte swizzle, f16:
// a: box 64 x 128 (innermost first), b: box 64 x 128, c: box 64 x 64. Rows of all three are multiples of 16 bytes.
typedef unsigned int u32;
typedef unsigned long long u64;

enum { TILE = 128, DEPTH = 64, STAGES = 4, CONSUMER_WARPS = 8 };
enum { OPERAND_BYTES = TILE * DEPTH * 2, STAGE_BYTES = 2 * OPERAND_BYTES, PANEL_BYTES = 64 * 64 * 2 };
enum { OUT_BYTES = TILE * TILE * 2, SHARED_BYTES = STAGES * STAGE_BYTES + OUT_BYTES + 2 * STAGES * 8 + 1024 };

struct alignas(64) TensorMap {
    u64 words[16];
};

__device__ __forceinline__ void init(u32 barrier, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void wait(u32 barrier, u32 parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}" ::"r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ void load(u32 target, const TensorMap* map, int x, int y, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(target), "l"(map), "r"(x), "r"(y), "r"(barrier) : "memory");
}

__device__ __forceinline__ void store(const TensorMap* map, int x, int y, u32 source) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(map), "r"(x), "r"(y), "r"(source) : "memory");
}

// What wgmma wants to know about an operand: its address, 1024 bytes from one group of eight rows to the next, 128-byte swizzle.
__device__ __forceinline__ u64 descriptor(u32 address) {
    return (u64)((address & 0x3FFFF) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

#define EIGHT(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
__device__ __forceinline__ void multiply(float (&d)[64], u64 a, u64 b, int add) {
    asm volatile(
        "{\n"
        ".reg .pred add;\n"
        "setp.ne.b32 add, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, add, 1, 1, 0, 0;\n"
        "}"
        : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48), EIGHT(56)
        : "l"(a), "l"(b), "r"(add));
}

__device__ __forceinline__ u32 pack(float low, float high) {
    u32 both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ __forceinline__ void store_matrices(u32 address, u32 a, u32 b, u32 c, u32 d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

struct Ring {
    u32 stages, full, empty;
    int stage = 0;
    u32 phase = 0;

    __device__ __forceinline__ void advance() {
        if (++stage == STAGES) stage = 0, phase ^= 1;
    }
};

__device__ __forceinline__ void produce(Ring ring, const TensorMap* a, const TensorMap* b, int tiles, int across, int steps) {
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int row = tile / across * TILE, column = tile % across * TILE;
#pragma unroll 1
        for (int k = 0; k < steps; k++, ring.advance()) {
            u32 target = ring.stages + ring.stage * STAGE_BYTES, full = ring.full + ring.stage * 8;
            wait(ring.empty + ring.stage * 8, ring.phase ^ 1);  // the first round passes at once
            expect(full, STAGE_BYTES);
            load(target, a, k * DEPTH, row, full);
            load(target + OPERAND_BYTES, b, k * DEPTH, column, full);
        }
    }
}

// One tile's products; a stage is handed back when the products that read it are done, which is one step later.
__device__ __forceinline__ void accumulate(float (&d)[64], Ring& ring, u32 half, int steps, bool speaks) {
    u32 before = 0;
#pragma unroll 1
    for (int k = 0; k < steps; k++, ring.advance()) {
        u32 a = ring.stages + ring.stage * STAGE_BYTES + half * (OPERAND_BYTES / 2), b = ring.stages + ring.stage * STAGE_BYTES + OPERAND_BYTES;
        wait(ring.full + ring.stage * 8, ring.phase);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int part = 0; part < DEPTH / 16; part++) multiply(d, descriptor(a + part * 32), descriptor(b + part * 32), (k | part) != 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (k > 0 && speaks) arrive(before);
        before = ring.empty + ring.stage * 8;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (speaks) arrive(before);
}

// A warpgroup's 64 x 128 results, as two panels of 64 columns, each row of a panel 128 bytes with its 16-byte parts swizzled.
__device__ __forceinline__ void write_out(const float (&d)[64], u32 out, u32 thread, u32 group, const TensorMap* c, int row, int column) {
    u32 barrier = 1 + group, lane = thread % 32;
    if (thread == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // the last tile has left the buffer
    asm volatile("bar.sync %0, 128;" ::"r"(barrier) : "memory");
    u32 line = thread / 32 * 16 + lane % 16, start = out + line * 128;
#pragma unroll
    for (int part = 0; part < 8; part++) {  // sixteen columns each
        u32 piece = part % 4 * 2 + lane / 16;
        const float* v = d + part * 8;
        store_matrices(start + part / 4 * PANEL_BYTES + ((piece ^ line % 8) << 4), pack(v[0], v[1]), pack(v[2], v[3]), pack(v[4], v[5]), pack(v[6], v[7]));
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(barrier) : "memory");
    if (thread == 0) {
        store(c, column, row, out);
        store(c, column + 64, row, out + PANEL_BYTES);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
}

__device__ __forceinline__ void consume(Ring ring, u32 out, const TensorMap* c, int tiles, int across, int steps) {
    u32 thread = threadIdx.x % 128, group = threadIdx.x / 128 - 1;
    u32 mine = out + group * 2 * PANEL_BYTES;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float d[64];
        accumulate(d, ring, group, steps, thread % 32 == 0);
        write_out(d, mine, thread, group, c, tile / across * TILE + group * 64, tile % across * TILE);
    }
    if (thread == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(384, 1)
tma_gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap c, int M, int N, int K) {
    extern __shared__ unsigned char dynamic[];
    u32 base = ((u32)__cvta_generic_to_shared(dynamic) + 1023) & ~1023u;
    u32 out = base + STAGES * STAGE_BYTES;
    Ring ring = {base, out + OUT_BYTES, out + OUT_BYTES + STAGES * 8};
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            init(ring.full + stage * 8, 1);
            init(ring.empty + stage * 8, CONSUMER_WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    int across = (N + TILE - 1) / TILE, tiles = across * ((M + TILE - 1) / TILE), steps = (K + DEPTH - 1) / DEPTH;
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) produce(ring, &a, &b, tiles, across, steps);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        consume(ring, out, &c, tiles, across, steps);
    }
}
