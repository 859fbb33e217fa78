// Transposes a matrix with CuTe: each CTA copies a tile to shared memory with cp.async, and writes it back with rows and columns swapped.
#include <cute/tensor.hpp>

using namespace cute;

constexpr int SIZE = 64, TILE = 32, THREADS = 128;

extern "C" __global__ void transpose(const float* x, float* out) {
    __shared__ alignas(16) float storage[TILE * TILE];
    auto square = make_shape(Int<TILE>{}, Int<TILE>{});
    Tensor whole = make_tensor(make_gmem_ptr(x), make_layout(make_shape(Int<SIZE>{}, Int<SIZE>{}), LayoutRight{}));
    Tensor from = local_tile(whole, square, make_coord(blockIdx.y, blockIdx.x));
    Tensor tile = make_tensor(make_smem_ptr(storage), make_layout(square, LayoutRight{}));

    auto copies = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint128_t>, float>{},
                                  Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _4>>{});
    auto mine = copies.get_slice(threadIdx.x);
    copy(copies, mine.partition_S(from), mine.partition_D(tile));
    cp_async_fence();
    __syncthreads();

    for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
        int row = i / TILE, column = i % TILE;
        out[(blockIdx.x * TILE + row) * SIZE + blockIdx.y * TILE + column] = tile(column, row);
    }
}

#ifndef __CUDACC_RTC__
#include <cstdio>
#include <vector>

int main() {
    std::vector<float> x(SIZE * SIZE), found(SIZE * SIZE);
    for (int i = 0; i < SIZE * SIZE; i++) x[i] = i;
    float *device_x, *device_out;
    cudaMalloc(&device_x, x.size() * sizeof(float));
    cudaMalloc(&device_out, x.size() * sizeof(float));
    cudaMemcpy(device_x, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice);
    transpose<<<dim3(SIZE / TILE, SIZE / TILE), THREADS>>>(device_x, device_out);
    cudaMemcpy(found.data(), device_out, x.size() * sizeof(float), cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int i = 0; i < SIZE * SIZE; i++) wrong += found[i] != x[i % SIZE * SIZE + i / SIZE];
    printf("%d of %d elements are wrong\n", wrong, SIZE * SIZE);
    return wrong != 0;
}
#endif
