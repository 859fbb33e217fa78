// Agents of CUB's device-wide algorithms: single-pass scan and selection, whose CTAs look back at the tiles before theirs.
// The host has set the descriptors of the tiles, as CUB does in a launch of its own.
static __device__ void cudaTriggerProgrammaticLaunchCompletion() {}  // not among what NVRTC declares
static __device__ void cudaGridDependencySynchronize() {}
#include <cub/agent/agent_scan.cuh>
#include <cub/agent/agent_select_if.cuh>

using State = cub::ScanTileState<int>;
constexpr int THREADS = 64, ITEMS = 4;

using ScanPolicy = cub::detail::agent_scan_policy<THREADS, ITEMS, int, cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::LOAD_DEFAULT,
                                                  cub::BLOCK_STORE_WARP_TRANSPOSE, cub::BLOCK_SCAN_WARP_SCANS>;
using Scan = cub::detail::scan::AgentScan<ScanPolicy, const int*, int*, cuda::std::plus<int>, cub::NullType, int, int, true>;

extern "C" __global__ void scan(const int* in, int* out, int* count, unsigned long long* tiles, int n) {
    __shared__ typename Scan::TempStorage storage;
    State state;
    state.Init(gridDim.x, tiles, 0);
    Scan(storage, in, out, cuda::std::plus<int>(), cub::NullType()).ConsumeRange(n, state, 0);
}

struct Odd {
    __device__ bool operator()(int value) const { return value & 1; }
};
// One partition of the input, and no other.
struct Whole {
    using total_num_items_t = int;
    __device__ int input_offset() const { return 0; }
    __device__ bool is_first_partition() const { return true; }
    __device__ int num_previously_selected() const { return 0; }
    __device__ int num_previously_rejected() const { return 0; }
    __device__ int num_total_items(int n) const { return n; }
    template <class Out> __device__ void update_num_selected(Out out, int n) const { *out = n; }
};
// Loads that go through shared memory have no release in place: CUB relies on their values having come, which is no order by the ISA.
using SelectPolicy = cub::detail::agent_select_if_policy<THREADS, ITEMS, cub::BLOCK_LOAD_DIRECT, cub::LOAD_DEFAULT, cub::BLOCK_SCAN_WARP_SCANS>;

template <cub::SelectImpl HOW> __device__ void selected(const int* in, int* out, int* count, unsigned long long* tiles, int n) {
    using Select = cub::detail::select::AgentSelectIf<SelectPolicy, const int*, cub::NullType*, int*, Odd, cub::NullType, int, Whole, HOW>;
    __shared__ typename Select::TempStorage storage;
    State state;
    state.Init(gridDim.x, tiles, 0);
    Select(storage, in, nullptr, out, Odd(), cub::NullType(), n, Whole()).ConsumeRange(gridDim.x, state, count);
}
extern "C" __global__ void select(const int* in, int* out, int* count, unsigned long long* tiles, int n) {
    selected<cub::SelectImpl::Select>(in, out, count, tiles, n);
}
extern "C" __global__ void select_in_place(const int* in, int* out, int* count, unsigned long long* tiles, int n) {
    selected<cub::SelectImpl::SelectPotentiallyInPlace>(in, out, count, tiles, n);
}
