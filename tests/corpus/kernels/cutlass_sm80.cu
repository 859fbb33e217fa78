// CUTLASS 2.x GEMM for sm_80: half operands, float accumulation, a three-stage cp.async pipeline, epilogue through shared memory.
#define NDEBUG  // as in CUTLASS's release builds: a device assert is an external call, for which ptxas serialises wgmma
#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/default_gemm_configuration.h>
#include <cutlass/gemm/kernel/default_gemm.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>
#include <cutlass/device_kernel.h>

using Half = cutlass::half_t;
using Row = cutlass::layout::RowMajor;
using Epilogue = cutlass::epilogue::thread::LinearCombination<Half, 8, float, float>;
using Gemm = cutlass::gemm::kernel::DefaultGemm<
    Half, Row, 8, Half, Row, 8, Half, Row, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
    cutlass::gemm::GemmShape<128, 128, 32>, cutlass::gemm::GemmShape<64, 64, 32>, cutlass::gemm::GemmShape<16, 8, 16>, Epilogue,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, 3, true, cutlass::arch::OpMultiplyAdd>::GemmKernel;

template __global__ void cutlass::Kernel<Gemm>(Gemm::Params);
