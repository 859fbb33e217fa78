// CUTLASS 3.x GEMM for sm_90a: warp-specialised producer and consumers, TMA loads, wgmma, a 2 x 1 cluster with multicast.
#define NDEBUG  // as in CUTLASS's release builds: a device assert is an external call, for which ptxas serialises wgmma
#include <type_traits>

#include <cutlass/cutlass.h>
#include <cute/tensor.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/device_kernel.h>

using Half = cutlass::half_t;
using TileShape = cute::Shape<cute::_128, cute::_128, cute::_64>;
using ClusterShape = cute::Shape<cute::_2, cute::_1, cute::_1>;
using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, TileShape, ClusterShape, cutlass::epilogue::collective::EpilogueTileAuto, float, float,
    Half, cutlass::layout::RowMajor, 8, Half, cutlass::layout::RowMajor, 8, cutlass::epilogue::TmaWarpSpecialized>::CollectiveOp;
using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, cutlass::layout::RowMajor, 8, Half, cutlass::layout::ColumnMajor, 8, float,
    TileShape, ClusterShape, cutlass::gemm::collective::StageCountAutoCarveout<sizeof(typename Epilogue::SharedStorage)>,
    cutlass::gemm::KernelTmaWarpSpecialized>::CollectiveOp;
using Gemm = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;

template __global__ void cutlass::device_kernel<Gemm>(__grid_constant__ Gemm::Params const);
