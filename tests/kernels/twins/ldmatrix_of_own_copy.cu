// Each lane copies a row by cp.async, waits for its copy and gives the row's address to ldmatrix: the lanes that get it have not waited (R-ROW, R-CP2).
// launch: grid=1 block=32
// arg: x u32[32,4]=arange
// arg: out u32[4,32]=zeros
// expect: missing-wait RAW @copy @ldmatrix severity=error
// result: out = x.reshape(4, 32)
extern "C" __global__ void kernel(const uint4* x, unsigned* out) {
    __shared__ uint4 rows[32];
    int t = threadIdx.x;
    unsigned r[4], at = (unsigned)__cvta_generic_to_shared(rows + t);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(x + t) : "memory");  /*@copy*/
    asm volatile("cp.async.wait_all;" ::: "memory");
#ifndef RACY
    __syncwarp();
#endif
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");  /*@ldmatrix*/
    for (int m = 0; m < 4; m++) out[m * 32 + t] = r[m];
}
