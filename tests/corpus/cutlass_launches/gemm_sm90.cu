// CUTLASS 3.x GEMMs for Hopper as its collective builders make them: C = A * B in f16 with f32 sums, A (M, K) and B (N, K) with K
// innermost, C (M, N). Macros: TILE_M, CLUSTER_M, and the schedules MAINLOOP and EPILOGUE.
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
using TileShape = cute::Shape<cute::Int<TILE_M>, cute::_64, cute::_64>;
using ClusterShape = cute::Shape<cute::Int<CLUSTER_M>, cute::_1, cute::_1>;
using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, TileShape, ClusterShape, cutlass::epilogue::collective::EpilogueTileAuto, float, float,
    void, Rows, 8, Half, Rows, 8, cutlass::epilogue::EPILOGUE>::CollectiveOp;
using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, Rows, 8, Half, Columns, 8, float, TileShape, ClusterShape,
    cutlass::gemm::collective::StageCountAutoCarveout<sizeof(typename Epilogue::SharedStorage)>, cutlass::gemm::MAINLOOP>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;
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
