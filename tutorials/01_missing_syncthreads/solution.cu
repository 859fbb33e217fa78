// Smooths rows of 128 numbers: in every step each one becomes the mean of itself and its right neighbour. The last has a
// zero to its right. One CTA works on one row, one thread on one number, and the row stays in shared memory.

extern "C" __global__ void smooth(const float* x, float* out, int steps) {
    __shared__ float row[129];
    int t = threadIdx.x;
    int i = blockIdx.x * 128 + t;
    row[t] = x[i];
    if (t == 0) row[128] = 0.0f;
    __syncthreads();

    for (int step = 0; step < steps; step++) {
        float right = row[t + 1];
        __syncthreads();  // everybody has read its neighbour before anybody overwrites
        row[t] = 0.5f * (row[t] + right);
        __syncthreads();
    }
    out[i] = row[t];
}
