// A CuTe Hopper tutorial, its file untouched (TUTORIAL), launched by its own function (gemm_tn where LAUNCH_TN, else gemm_nt). C is (M, N), M innermost.
#define main tutorial_main
#include TUTORIAL
#undef main

extern "C" int launch(int m, int n, int k, const void* a, const void* b, void* c, int) {
    using Half = cute::half_t;
    const bool transposed = LAUNCH_TN;  // K is innermost, else M and N are
    auto call = transposed ? gemm_tn<Half, Half, Half, Half, Half> : gemm_nt<Half, Half, Half, Half, Half>;
    call(m, n, k, Half(1.0f), static_cast<const Half*>(a), transposed ? k : m, static_cast<const Half*>(b), transposed ? k : n, Half(0.0f),
         static_cast<Half*>(c), m, nullptr);
    return 0;
}
