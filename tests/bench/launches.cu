// launches.py in a native program: a sum in blocks and an addition, each launched again and again.
//
//     nvcc -O2 -std=c++17 -gencode arch=compute_90a,code=compute_90a -o launches tests/bench/launches.cu
//     ./launches; consan run ./launches
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cuda_runtime.h>
#include <numeric>
#include <thread>
#include <vector>

constexpr int kFirst = 150, kBatches = 20, kBatch = 50, kElements = 98432, kSums = 256 * 256;

__global__ void sums(const float *given, float *out) {
    __shared__ float values[256];
    values[threadIdx.x] = given[blockIdx.x * 256 + threadIdx.x];
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = values[0];
}

__global__ void added(const float *x, const float *y, float *out, int n) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at < n) out[at] = x[at] + y[at];
}

using Clock = std::chrono::steady_clock;

static double since(Clock::time_point began) { return std::chrono::duration<double, std::micro>(Clock::now() - began).count(); }

static double median(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// The host's time of a launch, without the wait behind the last one.
template <typename Launch> static double batch(const Launch &launch) {
    const auto began = Clock::now();
    for (int each = 0; each < kBatch; ++each) launch();
    const double took = since(began) / kBatch;
    cudaDeviceSynchronize();
    return took;
}

template <typename Launch> static void measure(const char *name, const Launch &launch) {
    auto began = Clock::now();
    launch();
    cudaDeviceSynchronize();
    const double first = since(began);
    std::vector<double> early, later;
    for (int each = 1; each < kFirst; ++each) {
        began = Clock::now();
        launch();
        early.push_back(since(began));
    }
    cudaDeviceSynchronize();
    std::this_thread::sleep_for(std::chrono::seconds(1));  // for consan's check
    batch(launch);
    for (int each = 0; each < kBatches; ++each) later.push_back(batch(launch));
    const double mean = std::accumulate(early.begin(), early.end(), 0.0) / early.size();
    fprintf(stderr, "native %s: first launch %.3f s, launches 2 to %d median %.1f, mean %.1f us (longest %.0f), then %.1f us (least %.1f)\n", name,
            first / 1e6, kFirst, median(early), mean, *std::max_element(early.begin(), early.end()), median(later),
            *std::min_element(later.begin(), later.end()));
}

int main() {
    float *x, *y, *out;
    cudaMalloc(&x, kElements * 4);
    cudaMalloc(&y, kElements * 4);
    cudaMalloc(&out, kElements * 4);
    cudaMemset(x, 0, kElements * 4);
    cudaMemset(y, 0, kElements * 4);
    measure("sums", [=] { sums<<<256, 256>>>(x, out); });
    measure("added", [=] { added<<<(kElements + 255) / 256, 256>>>(x, y, out, kElements); });
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
