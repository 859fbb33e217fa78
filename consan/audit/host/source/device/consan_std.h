// The few names of std that most kernels take, for the device. NVRTC needs a second to compile the headers of libcu++ that have them all.
#pragma once
namespace std {
template <class T> __host__ __device__ constexpr const T &max(const T &a, const T &b) { return a < b ? b : a; }
template <class T> __host__ __device__ constexpr const T &min(const T &a, const T &b) { return b < a ? b : a; }
template <class T> __host__ __device__ constexpr void swap(T &a, T &b) {
  T held = a;
  a = b;
  b = held;
}
using ::abs;
using ::ceil;
using ::cos;
using ::exp;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::isinf;
using ::isnan;
using ::log;
using ::pow;
using ::round;
using ::sin;
using ::sqrt;
using ::tanh;
using size_t = ::size_t;

template <class T> struct numeric_limits;
template <> struct numeric_limits<float> {
  __host__ __device__ static constexpr float max() { return FLT_MAX; }
  __host__ __device__ static constexpr float lowest() { return -FLT_MAX; }
  __host__ __device__ static constexpr float min() { return FLT_MIN; }
  __host__ __device__ static constexpr float epsilon() { return FLT_EPSILON; }
  __host__ __device__ static float infinity() { return __int_as_float(0x7f800000); }
};
template <> struct numeric_limits<double> {
  __host__ __device__ static constexpr double max() { return DBL_MAX; }
  __host__ __device__ static constexpr double lowest() { return -DBL_MAX; }
  __host__ __device__ static constexpr double min() { return DBL_MIN; }
  __host__ __device__ static constexpr double epsilon() { return DBL_EPSILON; }
  __host__ __device__ static double infinity() { return __longlong_as_double(0x7ff0000000000000); }
};
template <> struct numeric_limits<int> {
  __host__ __device__ static constexpr int max() { return INT_MAX; }
  __host__ __device__ static constexpr int lowest() { return INT_MIN; }
  __host__ __device__ static constexpr int min() { return INT_MIN; }
};
template <> struct numeric_limits<unsigned> {
  __host__ __device__ static constexpr unsigned max() { return UINT_MAX; }
  __host__ __device__ static constexpr unsigned lowest() { return 0; }
  __host__ __device__ static constexpr unsigned min() { return 0; }
};
} // namespace std
