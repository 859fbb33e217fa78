// Each lane stores a row and gives its address to ldmatrix. The elements go to four lanes, and at most one has stored them (R-ROW).
// launch: grid=1 block=32
// arg: x f16[32,8]=random
// arg: out f16[2,32,8]=zeros
// expect: data-race RAW @row_write @row_ldmatrix severity=error
// expect: data-race RAW @turned_write @turned_ldmatrix severity=error
// result: out = np.stack([x.reshape(4, 8, 8).transpose(1, 0, 2).reshape(32, 8)] * 2)
extern "C" __global__ void kernel(const uint4* x, unsigned* out) {
    __shared__ __align__(16) uint4 rows[32], turned[32];
    int t = threadIdx.x;
    rows[t] = make_uint4(0, 0, 0, 0), turned[t] = make_uint4(0, 0, 0, 0);
    __syncwarp();
    rows[t] = x[t];    /*@row_write*/
    turned[t] = x[t];  /*@turned_write*/
#ifndef RACY
    __syncwarp();
#endif
    unsigned r[4], s[4];
    unsigned at = (unsigned)__cvta_generic_to_shared(rows + t), to = (unsigned)__cvta_generic_to_shared(turned + t);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");  /*@row_ldmatrix*/
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(s[0]), "=r"(s[1]), "=r"(s[2]), "=r"(s[3]) : "r"(to) : "memory");  /*@turned_ldmatrix*/
    for (int m = 0; m < 4; m++) {
        out[t / 4 * 16 + m * 4 + t % 4] = r[m];
        asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(s[m]) : "r"(s[m]));
        out[128 + t / 4 * 16 + m * 4 + t % 4] = s[m];
    }
}
