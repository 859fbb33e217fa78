// Agents of CUB's device-wide algorithms, each kernel as CUB launches it: reduction, radix sort (onesweep), histogram, top-k, unique by key,
// run-length encoding. The host sets what CUB sets in launches of its own: counters, sums of digits, descriptors of tiles.
static __device__ void cudaTriggerProgrammaticLaunchCompletion() {}  // not among what NVRTC declares
static __device__ void cudaGridDependencySynchronize() {}
#include <cub/agent/agent_histogram.cuh>
#include <cub/agent/agent_radix_sort_histogram.cuh>
#include <cub/agent/agent_radix_sort_onesweep.cuh>
#include <cub/agent/agent_reduce.cuh>
#include <cub/agent/agent_reduce_by_key.cuh>
#include <cub/agent/agent_topk.cuh>
#include <cub/agent/agent_unique_by_key.cuh>

namespace detail = cub::detail;
constexpr int THREADS = 64, ITEMS = 4;
constexpr int SORTED_BITS = 5;  // a warp of threads has a digit of the sort each: they vote together
constexpr int TOP_BITS = 6;     // a thread for each digit

// -- reduction: sums of the CTAs, and the sum of these
using ReducePolicy = detail::agent_reduce_policy<THREADS, ITEMS, int, 1, cub::BLOCK_REDUCE_WARP_REDUCTIONS, cub::LOAD_DEFAULT>;
using Reduce = detail::reduce::AgentReduce<ReducePolicy, const int*, int, cuda::std::plus<int>, int>;

extern "C" __global__ void reduce(const int* in, int* sums, int n) {
    __shared__ typename Reduce::TempStorage storage;
    int begin = blockIdx.x * THREADS * ITEMS, end = min(n, begin + THREADS * ITEMS);
    int sum = Reduce(storage, in, cuda::std::plus<int>()).ConsumeRange(begin, end);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// -- radix sort: digits are counted; then one sweep a digit
using CountPolicy = detail::agent_radix_sort_histogram_policy<THREADS, ITEMS, 1, int, SORTED_BITS>;
using Count = detail::radix_sort::AgentRadixSortHistogram<CountPolicy, false, unsigned, int>;
using SweepPolicy = detail::agent_radix_sort_onesweep_policy<THREADS, ITEMS, int, 1, cub::RADIX_RANK_MATCH_EARLY_COUNTS_ANY,
                                                             cub::BLOCK_SCAN_WARP_SCANS, cub::RADIX_SORT_STORE_DIRECT, SORTED_BITS>;
using Sweep = detail::radix_sort::AgentRadixSortOnesweep<SweepPolicy, false, unsigned, cub::NullType, int, int>;

extern "C" __global__ void count_digits(int* bins, const unsigned* keys, int n) {
    __shared__ typename Count::TempStorage storage;
    Count(storage, bins, keys, n, 0, SORTED_BITS).Process();
}

extern "C" __global__ void sweep(int* lookback, int* counter, int* bins_out, const int* bins, const unsigned* in, unsigned* out, int n) {
    __shared__ typename Sweep::TempStorage storage;
    Sweep(storage, lookback, counter, bins_out, bins, out, in, nullptr, nullptr, n, 0, SORTED_BITS).Process();
}

// -- histogram of bytes, in shared memory, then in global memory
struct Bin {
    template <cub::CacheLoadModifier, class Sample> __device__ void BinSelect(Sample sample, int& bin, bool valid) const { if (valid) bin = sample; }
};
using HistogramPolicy = detail::agent_histogram_policy<THREADS, ITEMS, cub::BLOCK_LOAD_DIRECT, cub::LOAD_DEFAULT, false, cub::SMEM, false, 1>;
using Histogram = detail::histogram::AgentHistogram<HistogramPolicy, 16, 1, 1, const unsigned char*, int, Bin, Bin, int>;

extern "C" __global__ void histogram(const unsigned char* in, int* out, int n) {
    __shared__ typename Histogram::TempStorage storage;
    const int bins[1] = {16};
    int *outs[1] = {out}, *privatised[1] = {nullptr};
    Bin select[1];
    Histogram agent(storage, in, bins, bins, outs, privatised, select, select);
    agent.InitBinCounters();
    agent.ConsumeTiles(n, 1, n, 4, cub::GridQueue<int>());
    agent.StoreOutput();
}

// -- top-k: the first pass; its last CTA chooses the bucket of the k-th key
struct Digit {
    __device__ int operator()(unsigned key) const { return key >> (32 - TOP_BITS); }
};
using TopKPolicy = detail::topk::agent_topk_policy<THREADS, ITEMS, TOP_BITS, cub::BLOCK_LOAD_DIRECT, cub::BLOCK_SCAN_WARP_SCANS>;
using TopK = detail::topk::AgentTopK<TopKPolicy, const unsigned*, unsigned*, cub::NullType*, cub::NullType*, Digit, cub::NullType, unsigned, unsigned>;

extern "C" __global__ void topk(const unsigned* in, detail::topk::Counter<unsigned, unsigned, unsigned>* counter, unsigned* bins, int n, int k) {
    __shared__ typename TopK::TempStorage storage;
    TopK(storage, in, nullptr, nullptr, nullptr, n, k, 0, Digit(), cub::NullType()).invoke_histogram_only(counter, bins, 0, false);
}

// -- unique by key
using UniquePolicy = detail::agent_unique_by_key_policy<THREADS, ITEMS, cub::BLOCK_LOAD_DIRECT, cub::LOAD_DEFAULT>;
using Unique = detail::unique_by_key::AgentUniqueByKey<UniquePolicy, const int*, const int*, int*, int*, cuda::std::equal_to<int>, int>;

extern "C" __global__ void unique(const int* keys, const int* values, int* keys_out, int* values_out, int* count, unsigned long long* tiles, int n) {
    __shared__ typename Unique::TempStorage storage;
    typename Unique::ScanTileStateT state;
    state.Init(gridDim.x, tiles, 0);
    Unique(storage, keys, values, keys_out, values_out, cuda::std::equal_to<int>(), n).ConsumeRange(gridDim.x, state, count);
}

// -- run-length encoding: a reduction of ones by key
using RunsPolicy = detail::agent_reduce_by_key_policy<THREADS, ITEMS, cub::BLOCK_LOAD_DIRECT, cub::LOAD_DEFAULT, cub::BLOCK_SCAN_WARP_SCANS>;
using Runs = detail::reduce_by_key::AgentReduceByKey<RunsPolicy, const int*, int*, const int*, int*, int*, cuda::std::equal_to<int>,
                                                     cuda::std::plus<int>, int, int, cub::NullType>;

extern "C" __global__ void runs(const int* in, const int* ones, int* unique, int* lengths, int* count, void* tiles, int n) {
    __shared__ typename Runs::TempStorage storage;
    typename Runs::ScanTileStateT state;
    state.Init(gridDim.x, tiles, 0);
    Runs(storage, in, unique, ones, lengths, count, cuda::std::equal_to<int>(), cuda::std::plus<int>(), cub::NullType()).ConsumeRange(n, state, 0);
}
