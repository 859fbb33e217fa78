// Each lane gives the address of a row to stmatrix and reads that row: four other lanes, or three and itself, have stored it (R-ROW).
// Then each lane stores into its row, which the four have read by ldmatrix.
// launch: grid=1 block=32 arch=sm_90
// arg: out u32[32,4]=zeros
// arg: later u32[32,4]=zeros
// expect: data-race RAW @stmatrix @read severity=error
// expect: data-race WAR @ldmatrix @write severity=error
// result: out = np.arange(32)[:, None] % 8 * 4 + np.arange(4) + np.arange(32)[:, None] // 8 * 32
// result: later = np.repeat(np.arange(32)[:, None], 4, 1)
extern "C" __global__ void kernel(uint4* out, uint4* later) {
    __shared__ uint4 rows[32];
    unsigned t = threadIdx.x, r[4];
    unsigned at = (unsigned)__cvta_generic_to_shared(rows + t);
    rows[t] = make_uint4(0, 0, 0, 0);
    __syncwarp();
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" :: "r"(at), "r"(t), "r"(t + 32), "r"(t + 64), "r"(t + 96) : "memory");  /*@stmatrix*/
#ifndef RACY
    __syncwarp();
#endif
    out[t] = rows[t];  /*@read*/
    __syncwarp();
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");  /*@ldmatrix*/
#ifndef RACY
    __syncwarp();
#endif
    rows[t] = make_uint4(t, t, t, t + (r[0] > 1000));  /*@write*/
    __syncwarp();
    later[t] = rows[t];
}
