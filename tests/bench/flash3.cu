// FlashAttention-3 forward, head dimension 64, bf16: its own kernels and launch code, and a check against the host.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>
#include "flash_fwd_launch_template.h"
template void run_mha_fwd_<90, cutlass::bfloat16_t, 64, 64, false, false, false, false>(Flash_fwd_params &params, cudaStream_t stream);

int main() {
    constexpr int heads = 2, length = 512, depth = 64, all = heads * length * depth;
    using T = cutlass::bfloat16_t;
    std::vector<T> q(all), k(all), v(all), out(all);
    unsigned seed = 1;
    auto next = [&] { seed = seed * 1664525u + 1013904223u; return T(float(seed >> 16 & 255) / 128.f - 1.f); };
    for (int i = 0; i < all; i++) q[i] = next(), k[i] = next(), v[i] = next();
    T *dq, *dk, *dv, *dout;
    float *lse;
    int *tiles;
    auto make = [&](T **to, std::vector<T> &from) { CHECK_CUDA(cudaMalloc(to, all * 2)); CHECK_CUDA(cudaMemcpy(*to, from.data(), all * 2, cudaMemcpyHostToDevice)); };
    make(&dq, q), make(&dk, k), make(&dv, v), make(&dout, out);
    CHECK_CUDA(cudaMalloc(&lse, heads * length * 4));
    CHECK_CUDA(cudaMalloc(&tiles, 4));
    int status = 0;
    for (int causal = 0; causal < 2; causal++) {
        CHECK_CUDA(cudaMemset(tiles, 0, 4));
        Flash_fwd_params p;
        std::memset(&p, 0, sizeof p);
        p.q_ptr = dq, p.k_ptr = dk, p.v_ptr = dv, p.o_ptr = dout, p.softmax_lse_ptr = lse;
        p.q_row_stride = p.k_row_stride = p.v_row_stride = p.o_row_stride = heads * depth;
        p.q_head_stride = p.k_head_stride = p.v_head_stride = p.o_head_stride = depth;
        p.q_batch_stride = p.k_batch_stride = p.v_batch_stride = p.o_batch_stride = all;
        p.v_dim_stride = 1;
        p.h = p.h_k = heads, p.b = p.b_k = 1, p.seqlen_q = p.seqlen_k = p.seqlen_q_rounded = p.seqlen_k_rounded = length;
        p.d = p.d_rounded = p.dv = p.dv_rounded = depth, p.total_q = p.total_k = length;
        p.scale_softmax = 1 / std::sqrt(float(depth)), p.window_size_left = -1, p.window_size_right = causal ? 0 : -1;
        p.is_bf16 = true, p.is_causal = causal, p.num_splits = 1, p.tile_count_semaphore = tiles, p.arch = 90, p.p_dropout = p.rp_dropout = 1;
        CHECK_CUDA(cudaDeviceGetAttribute(&p.num_sm, cudaDevAttrMultiProcessorCount, 0));
        run_mha_fwd_<90, T, 64, 64, false, false, false, false>(p, nullptr);
        CHECK_CUDA(cudaDeviceSynchronize());
        CHECK_CUDA(cudaMemcpy(out.data(), dout, all * 2, cudaMemcpyDeviceToHost));
        double worst = 0;
        for (int h = 0; h < heads; h++)
            for (int row = 0; row < length; row += 37) {
                std::vector<double> weight(length);
                double sum = 0;
                int end = causal ? row + 1 : length;
                for (int col = 0; col < end; col++) {
                    double dot = 0;
                    for (int d = 0; d < depth; d++) dot += float(q[(row * heads + h) * depth + d]) * float(k[(col * heads + h) * depth + d]);
                    sum += weight[col] = std::exp(dot * p.scale_softmax);
                }
                for (int d = 0; d < depth; d++) {
                    double value = 0;
                    for (int col = 0; col < end; col++) value += weight[col] * float(v[(col * heads + h) * depth + d]);
                    worst = std::fmax(worst, std::fabs(value / sum - float(out[(row * heads + h) * depth + d])));
                }
            }
        std::printf("causal %d: largest difference %g\n", causal, worst);
        status |= !(worst < 0.02);
    }
    return status;
}
