// CUTLASS GEMMs for Blackwell as its collective builders make them: C = A * B with f32 sums, A (M, K) and B (N, K) f16 with K innermost,
// C (M, N) f16. The tile scheduler is the default one, which asks for clusters that have not started. Macros: TILE_M, CLUSTER_M, SMS (1
// or 2, of one product).
#include <cutlass/cutlass.h>
#include <cute/tensor.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/util/packed_stride.hpp>

using Half = cutlass::half_t;
using Rows = cutlass::layout::RowMajor;
using Columns = cutlass::layout::ColumnMajor;
using TileShape = cute::Shape<cute::Int<TILE_M>, cute::_128, cute::_64>;
using ClusterShape = cute::Shape<cute::Int<CLUSTER_M>, cute::_1, cute::_1>;
#if SMS == 2
using Schedule = cutlass::gemm::KernelTmaWarpSpecialized2SmSm100;
using Store = cutlass::epilogue::TmaWarpSpecialized2Sm;
#else
using Schedule = cutlass::gemm::KernelTmaWarpSpecialized1SmSm100;
using Store = cutlass::epilogue::TmaWarpSpecialized1Sm;
#endif
using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm100, cutlass::arch::OpClassTensorOp, TileShape, ClusterShape, cutlass::epilogue::collective::EpilogueTileAuto, float,
    float, void, Rows, 8, Half, Rows, 8, Store>::CollectiveOp;
using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm100, cutlass::arch::OpClassTensorOp, Half, Rows, 8, Half, Columns, 8, float, TileShape, ClusterShape,
    cutlass::gemm::collective::StageCountAutoCarveout<sizeof(typename Epilogue::SharedStorage)>, Schedule>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue, void>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

extern "C" int launch(int m, int n, int k, const void* a, const void* b, void* c, int multiprocessors) {
    auto da = cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, cute::make_shape(m, k, 1));
    auto db = cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, cute::make_shape(n, k, 1));
    auto dc = cutlass::make_cute_packed_stride(typename Kernel::StrideC{}, cute::make_shape(m, n, 1));
    auto dd = cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, cute::make_shape(m, n, 1));
    cutlass::KernelHardwareInfo hardware;
    hardware.sm_count = multiprocessors;
    typename Gemm::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGemm,
        {m, n, k, 1},
        {static_cast<const Half*>(a), da, static_cast<const Half*>(b), db},
        {{1.0f, 0.0f}, nullptr, dc, static_cast<Half*>(c), dd},
        hardware};
    Gemm gemm;
    cutlass::Status status = gemm.can_implement(arguments);
    if (status == cutlass::Status::kSuccess) status = gemm.initialize(arguments, nullptr);
    if (status == cutlass::Status::kSuccess) status = gemm.run();
    return static_cast<int>(status);
}
