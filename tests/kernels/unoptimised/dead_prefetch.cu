// Each round loads what the next one uses. The last one loads too, for nobody, beside the write behind the loop. The compiler unrolls the
// loop and removes that load.
// launch:   grid=1 block=64
// arg:      out f32[64]=zeros
// expect:   data-race WAR @read @write
// result:   out = np.full(64, 6, dtype=np.float32)
extern "C" __global__ void kernel(float* out) {
    __shared__ float tile[5][64];
    int t = threadIdx.x;
    for (int i = 0; i < 5; i++) tile[i][t] = i;
    __syncthreads();
    int other = (t + 32) % 64;
    float next = tile[0][other], sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float now = next;
        next = tile[i + 1][other]; /*@read*/
        sum += now;
    }
#ifndef RACY
    __syncthreads();
#endif
    tile[4][t] = sum; /*@write*/
    __syncthreads();
    out[t] = tile[4][other];
}
