// CUTLASS 2.x GEMMs as for Ampere: C = A * B with f32 sums, A (M, K) and B (N, K) with K innermost, C (M, N). f16 on tensor cores, or f32
// without them where SIMT is 1. STAGES: with 2 tiles pass through registers, with more they come by cp.async. Macros TILE_* are the CTA's tile,
// WARP_* a warp's: where WARP_K is less than TILE_K, warps share the sum over K and add up through shared memory.
#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm.h>

#if SIMT
using Element = float;
using Class = cutlass::arch::OpClassSimt;
using Instruction = cutlass::gemm::GemmShape<1, 1, 1>;
constexpr int alignment = 1;
#else
using Element = cutlass::half_t;
using Class = cutlass::arch::OpClassTensorOp;
using Instruction = cutlass::gemm::GemmShape<16, 8, 16>;
constexpr int alignment = 8;
#endif

using Rows = cutlass::layout::RowMajor;
using Columns = cutlass::layout::ColumnMajor;
using Epilogue = cutlass::epilogue::thread::LinearCombination<Element, alignment, float, float>;
using Gemm = cutlass::gemm::device::Gemm<
    Element, Rows, Element, Columns, Element, Rows, float, Class, cutlass::arch::Sm80, cutlass::gemm::GemmShape<TILE_M, TILE_N, TILE_K>,
    cutlass::gemm::GemmShape<WARP_M, WARP_N, WARP_K>, Instruction, Epilogue, cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>,
    STAGES, alignment, alignment>;

extern "C" int launch(int m, int n, int k, const void* a, const void* b, void* c, int) {
    auto in = [](const void* matrix) { return static_cast<const Element*>(matrix); };
    auto out = static_cast<Element*>(c);
    Gemm gemm;
    return static_cast<int>(gemm({{m, n, k}, {in(a), k}, {in(b), k}, {out, n}, {out, n}, {1.0f, 0.0f}}));
}
