// Tensor-core operands staged through shared memory: ldmatrix reads rows that other warps have stored. B comes transposed.
// launch: grid=1 block=64
// arg: a f16[16,16]=random
// arg: b f16[16,16]=random
// arg: c f32[16,16]=zeros
// expect: data-race RAW @a_write @a_ldmatrix severity=error
// expect: data-race RAW @b_write @b_ldmatrix severity=error
// result: c = a.astype(np.float32) @ b.astype(np.float32).T
#define LDMATRIX_X4(r, p) \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"((unsigned)__cvta_generic_to_shared(p)) : "memory")
#define LDMATRIX_X2(r, p) \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" \
                 : "=r"(r[0]), "=r"(r[1]) : "r"((unsigned)__cvta_generic_to_shared(p)) : "memory")
extern "C" __global__ void kernel(const uint2* a, const uint2* b, float* c) {
    __shared__ __align__(16) unsigned short as[16 * 16];
    __shared__ __align__(16) unsigned short bs[16 * 16];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    ((uint2*)as)[t] = make_uint2(0, 0);
    ((uint2*)bs)[t] = make_uint2(0, 0);
    __syncthreads();
    ((uint2*)as)[t] = a[t];            /*@a_write*/
    ((uint2*)bs)[63 - t] = b[63 - t];  /*@b_write*/
#ifndef RACY
    __syncthreads();
#endif
    unsigned ra[4], rb[2];
    LDMATRIX_X4(ra, &as[lane % 16 * 16 + lane / 16 * 8]);                   /*@a_ldmatrix*/
    LDMATRIX_X2(rb, &bs[(warp * 8 + lane % 8) * 16 + lane / 8 % 2 * 8]);  /*@b_ldmatrix*/
    float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    int row = lane / 4, col = warp * 8 + lane % 4 * 2;
    c[row * 16 + col] = d[0];
    c[row * 16 + col + 1] = d[1];
    c[(row + 8) * 16 + col] = d[2];
    c[(row + 8) * 16 + col + 1] = d[3];
}
