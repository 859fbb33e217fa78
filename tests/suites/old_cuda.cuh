// For files older than CUDA 13: texture references, and functions that its own samples' headers had. A fetch gives one of a table's values, by its
// coordinates; lanes of a warp exchange values without a mask. All are templates, so a file's own functions come first.
#define cuPrintf printf
#define CUDART_PI_F 3.141592654f
#define saturate __saturatef
#define __shfl(...) __shfl_sync(~0u, __VA_ARGS__)
#define __shfl_up(...) __shfl_up_sync(~0u, __VA_ARGS__)
#define __shfl_down(...) __shfl_down_sync(~0u, __VA_ARGS__)
#define __shfl_xor(...) __shfl_xor_sync(~0u, __VA_ARGS__)
#define __any(...) __any_sync(~0u, __VA_ARGS__)
#define __all(...) __all_sync(~0u, __VA_ARGS__)
#define __ballot(...) __ballot_sync(~0u, __VA_ARGS__)
#define texture OldTexture

template <class T, int dimensions = 1, int mode = 0> struct OldTexture {
    bool normalized;
    int filterMode;
    int addressMode[3];
};
template <class T, int mode> struct OldTexel { using type = T; };
template <> struct OldTexel<unsigned char, 1> { using type = float; };
template <> struct OldTexel<unsigned short, 1> { using type = float; };
template <> struct OldTexel<uchar4, 1> { using type = float4; };
__constant__ float4 old_texels[1024];

template <class T, class... Places> __device__ T old_fetch(Places... places) {
    return *reinterpret_cast<const T *>(old_texels + (static_cast<unsigned>((static_cast<float>(places) + ...)) & 1023u));
}
#define OLD_FETCH(name)                                                                                                                          \
    template <class T, int dimensions, int mode, class... Places>                                                                                \
    __device__ typename OldTexel<T, mode>::type name(OldTexture<T, dimensions, mode>, Places... places) {                                        \
        return old_fetch<typename OldTexel<T, mode>::type>(places...);                                                                           \
    }
OLD_FETCH(tex1D)
OLD_FETCH(tex1Dfetch)
OLD_FETCH(tex2D)
OLD_FETCH(tex2DLayered)
OLD_FETCH(tex3D)
OLD_FETCH(texCubemap)

#define OLD_OPERATOR(op)                                                                                                                         \
    template <int = 0> __device__ float2 operator op(float2 a, float2 b) { return {a.x op b.x, a.y op b.y}; }                                    \
    template <int = 0> __device__ float3 operator op(float3 a, float3 b) { return {a.x op b.x, a.y op b.y, a.z op b.z}; }                        \
    template <int = 0> __device__ float4 operator op(float4 a, float4 b) { return {a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w}; }            \
    template <int = 0> __device__ float2 operator op(float2 a, float b) { return {a.x op b, a.y op b}; }                                         \
    template <int = 0> __device__ float3 operator op(float3 a, float b) { return {a.x op b, a.y op b, a.z op b}; }                               \
    template <int = 0> __device__ float4 operator op(float4 a, float b) { return {a.x op b, a.y op b, a.z op b, a.w op b}; }                     \
    template <int = 0> __device__ float2 operator op(float a, float2 b) { return {a op b.x, a op b.y}; }                                         \
    template <int = 0> __device__ float3 operator op(float a, float3 b) { return {a op b.x, a op b.y, a op b.z}; }                               \
    template <int = 0> __device__ float4 operator op(float a, float4 b) { return {a op b.x, a op b.y, a op b.z, a op b.w}; }                     \
    template <class B> __device__ float2 &operator op##=(float2 &a, B b) { return a = a op b; }                                                  \
    template <class B> __device__ float3 &operator op##=(float3 &a, B b) { return a = a op b; }                                                  \
    template <class B> __device__ float4 &operator op##=(float4 &a, B b) { return a = a op b; }
OLD_OPERATOR(+)
OLD_OPERATOR(-)
OLD_OPERATOR(*)
OLD_OPERATOR(/)
template <int = 0> __device__ float3 operator-(float3 a) { return {-a.x, -a.y, -a.z}; }
template <int = 0> __device__ float4 operator-(float4 a) { return {-a.x, -a.y, -a.z, -a.w}; }
template <int = 0> __device__ float2 make_float2(float a) { return {a, a}; }
template <int = 0> __device__ float3 make_float3(float a) { return {a, a, a}; }
template <int = 0> __device__ float3 make_float3(float4 a) { return {a.x, a.y, a.z}; }
template <int = 0> __device__ float4 make_float4(float a) { return {a, a, a, a}; }
template <int = 0> __device__ float4 make_float4(float3 a, float w) { return {a.x, a.y, a.z, w}; }
template <int = 0> __device__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
template <int = 0> __device__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
template <int = 0> __device__ float3 cross(float3 a, float3 b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <int = 0> __device__ int3 operator+(int3 a, int3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
template <int = 0> __device__ float3 fminf(float3 a, float3 b) { return {fminf(a.x, b.x), fminf(a.y, b.y), fminf(a.z, b.z)}; }
template <int = 0> __device__ float3 fmaxf(float3 a, float3 b) { return {fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z)}; }
template <class V> __device__ float length(V a) { return sqrtf(dot(a, a)); }
template <class V> __device__ V normalize(V a) { return a * rsqrtf(dot(a, a)); }
template <class V> __device__ V lerp(V a, V b, float t) { return a + t * (b - a); }
template <class V> __device__ V clamp(V a, V low, V high) { return a < low ? low : a > high ? high : a; }
