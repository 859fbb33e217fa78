// Races whose value goes to each kind of end, or nowhere. -DRACY takes the barrier between the read and the next write out of all of them.
#ifdef RACY
#define SEPARATE()
#else
#define SEPARATE() __syncthreads()
#endif
#define BEGIN                                   \
    __shared__ float s[64];                     \
    const int t = threadIdx.x;                  \
    s[t] = x[t];                                \
    __syncthreads();
#define WRITE_AGAIN                             \
    SEPARATE();                                 \
    s[t] = 2 * x[t];                            \
    __syncthreads();

// Thread 0 alone uses the value, and races with nobody.
extern "C" __global__ void dead(const float *x, float *y) {
    BEGIN
    const float a = s[0];
    WRITE_AGAIN
    if (t == 0) y[0] = a + s[1];
}

// As above, but thread 63 uses it, which is the last of those that race.
extern "C" __global__ void used_by_last(const float *x, float *y) {
    BEGIN
    const float a = s[0];
    WRITE_AGAIN
    if (t == 63) y[0] = a + s[1];
}

// Threads 1 to 31 of the first CTA race and do not use it; thread 63 of the second CTA does both.
extern "C" __global__ void used_in_second_cta(const float *x, float *y) {
    BEGIN
    float a = 0;
    if (t / 32 == blockIdx.x) a = s[0];
    WRITE_AGAIN
    if (t == 63) y[blockIdx.x] = a + s[1];
}

// Lane 0 uses the value of lane 1, which races.
extern "C" __global__ void exchanged(const float *x, float *y) {
    BEGIN
    const float a = __shfl_down_sync(~0u, s[0], 1);
    WRITE_AGAIN
    if (t == 0) y[0] = a + s[1];
}

// Thread 0 finds the value of the others in shared memory.
extern "C" __global__ void handed_on(const float *x, float *y) {
    __shared__ float other[64];
    BEGIN
    other[t] = s[0];
    WRITE_AGAIN
    if (t == 0) y[0] = other[5] + s[1];
}

// Nobody reads where the value is put.
extern "C" __global__ void put_away(const float *x, float *y) {
    __shared__ volatile float other[64];
    BEGIN
    other[t] = s[0];
    WRITE_AGAIN
    if (t == 0) y[0] = s[1];
}

extern "C" __global__ void branched(const float *x, float *y) {
    BEGIN
    const bool large = s[0] > 3;
    WRITE_AGAIN
    if (large) __nanosleep(10);
    if (t == 0) y[0] = s[1];
}

extern "C" __global__ void indexed(const float *x, float *y) {
    BEGIN
    const int at = (int)s[0] & 63;
    WRITE_AGAIN
    if (t == 63) y[at] = 1;
}

__device__ void put(float *at, float value) {  // the compiler does not see what it does
    asm volatile("st.shared.f32 [%0], %1;" ::"r"((unsigned)__cvta_generic_to_shared(at)), "f"(value));
}

// What two writes leave: nobody reads it, or somebody does.
extern "C" __global__ void left_unread(const float *x, float *y) {
    __shared__ float last[2];
    const int t = threadIdx.x;
#ifdef RACY
    put(last, x[t]);
#else
    if (t == 0) put(last, x[t]);
#endif
    y[t] = x[t];
}

// Somebody looks at it, and does nothing with it.
extern "C" __global__ void looked_at(const float *x, float *y) {
    __shared__ float last[2];
    const int t = threadIdx.x;
#ifdef RACY
    put(last, x[t]);
#else
    if (t == 0) put(last, x[t]);
#endif
    __syncthreads();
    *(volatile float *)last;
    y[t] = x[t];
}

extern "C" __global__ void left_and_read(const float *x, float *y) {
    __shared__ float last[2];
    const int t = threadIdx.x;
#ifdef RACY
    put(last, x[t]);
#else
    if (t == 0) put(last, x[t]);
#endif
    __syncthreads();
    float left;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(left) : "r"((unsigned)__cvta_generic_to_shared(last)));
    y[t] = left;
}
