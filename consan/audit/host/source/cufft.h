// cuFFT's transforms of one to three dimensions, in batches, in single and double precision, computed on the host. Not here: callbacks, and
// transforms over several devices (cufftXt).
#pragma once
#include <complex>
#include <type_traits>
#include <vector>
#include <cuComplex.h>
#include <cuda_runtime.h>

typedef int cufftHandle;
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;
typedef enum {
  CUFFT_SUCCESS = 0,
  CUFFT_INVALID_PLAN,
  CUFFT_ALLOC_FAILED,
  CUFFT_INVALID_TYPE,
  CUFFT_INVALID_VALUE,
  CUFFT_INTERNAL_ERROR,
  CUFFT_EXEC_FAILED,
  CUFFT_SETUP_FAILED,
  CUFFT_INVALID_SIZE,
  CUFFT_UNALIGNED_DATA,
  CUFFT_INVALID_DEVICE = 11,
  CUFFT_NO_WORKSPACE = 13,
  CUFFT_NOT_IMPLEMENTED,
  CUFFT_NOT_SUPPORTED = 16
} cufftResult;
typedef cufftResult cufftResult_t;
typedef enum { CUFFT_R2C = 0x2a, CUFFT_C2R = 0x2c, CUFFT_C2C = 0x29, CUFFT_D2Z = 0x6a, CUFFT_Z2D = 0x6c, CUFFT_Z2Z = 0x69 } cufftType;
typedef enum { CUFFT_COMPATIBILITY_FFTW_PADDING = 1 } cufftCompatibility;
#define CUFFT_FORWARD -1
#define CUFFT_INVERSE 1

namespace consan {
typedef std::complex<double> ConsanComplex;

// One side of a transform: the extents in memory, the step of an element, and of a batch.
struct FftLayout {
  std::vector<int> embedded;
  size_t step, distance;
  bool given;

  static FftLayout of(const int *embedded, int rank, int step, int distance) {
    if (embedded == nullptr)
      return {{}, 1, 0, false};
    return {std::vector<int>(embedded, embedded + rank), size_t(step), size_t(distance), true};
  }
  // Where a side was not given: elements without gaps.
  FftLayout filled(const std::vector<int> &extents, int last) const {
    if (given)
      return *this;
    FftLayout made{extents, 1, 1, true};
    made.embedded.back() = last;
    for (int each : made.embedded)
      made.distance *= each;
    return made;
  }
  size_t place(const std::vector<int> &index) const {
    size_t at = 0;
    for (size_t i = 0; i < index.size(); ++i)
      at = at * embedded[i] + index[i];
    return at * step;
  }
};

struct FftPlan {
  std::vector<int> extents;
  FftLayout in, out;
  cufftType type;
  int batch;
};

inline std::vector<FftPlan> &fft_plans() {
  static std::vector<FftPlan> plans;
  return plans;
}

// In place; `sign` is that of the exponent. By the smallest prime factor of the length.
inline void fft(std::vector<ConsanComplex> &values, int sign) {
  const size_t n = values.size();
  size_t parts = 2;
  while (parts < n && n % parts)
    ++parts;
  if (n < 2)
    return;
  std::vector<std::vector<ConsanComplex>> part(parts, std::vector<ConsanComplex>(n / parts));
  for (size_t i = 0; i < n; ++i)
    part[i % parts][i / parts] = values[i];
  for (auto &each : part)
    fft(each, sign);
  for (size_t k = 0; k < n; ++k) {
    values[k] = 0;
    for (size_t q = 0; q < parts; ++q)
      values[k] += std::polar(1.0, sign * 2 * M_PI * double(q * k % n) / double(n)) * part[q][k % (n / parts)];
  }
}

// Over each dimension of an array whose elements are without gaps.
inline void fft(std::vector<ConsanComplex> &values, const std::vector<int> &extents, int sign) {
  size_t inner = values.size();
  for (int extent : extents) {
    inner /= extent;
    for (size_t line = 0; line < values.size() / extent; ++line) {
      const size_t begin = line / inner * inner * extent + line % inner;
      std::vector<ConsanComplex> row(extent);
      for (int i = 0; i < extent; ++i)
        row[i] = values[begin + i * inner];
      fft(row, sign);
      for (int i = 0; i < extent; ++i)
        values[begin + i * inner] = row[i];
    }
  }
}

template <class F> void each_index(const std::vector<int> &extents, F function) {
  size_t count = 1;
  for (int each : extents)
    count *= each;
  std::vector<int> index(extents.size());
  for (size_t number = 0; number < count; ++number) {
    size_t rest = number;
    for (size_t i = extents.size(); i-- > 0; rest /= extents[i])
      index[i] = int(rest % extents[i]);
    function(number, index);
  }
}

inline ConsanComplex read(const cuComplex &value) { return {value.x, value.y}; }
inline ConsanComplex read(const cuDoubleComplex &value) { return {value.x, value.y}; }
template <class T> ConsanComplex read(const T &value) { return {double(value), 0}; }
template <class T> void write(T &into, const ConsanComplex &value) {
  if constexpr (std::is_floating_point_v<T>)
    into = T(value.real());
  else
    into = {decltype(into.x)(value.real()), decltype(into.y)(value.imag())};
}

template <class From, class To> cufftResult transformed(cufftHandle handle, const From *in, To *out, int sign) {
  if (handle < 0 || size_t(handle) >= fft_plans().size() || fft_plans()[handle].extents.empty())
    return CUFFT_INVALID_PLAN;
  const FftPlan &plan = fft_plans()[handle];
  constexpr bool from_real = std::is_floating_point_v<From>, to_real = std::is_floating_point_v<To>;
  const int last = plan.extents.back(), half = last / 2 + 1;
  const bool in_place = static_cast<const void *>(in) == static_cast<const void *>(out);
  const int real = in_place ? 2 * half : last;
  const FftLayout from = plan.in.filled(plan.extents, from_real ? real : to_real ? half : last);
  const FftLayout to = plan.out.filled(plan.extents, to_real ? real : from_real ? half : last);
  std::vector<ConsanComplex> values(1);
  for (int each : plan.extents)
    values.resize(values.size() * each);
  for (int batch = 0; batch < plan.batch; ++batch) {
    each_index(plan.extents, [&](size_t number, std::vector<int> index) {
      const bool mirrored = to_real && index.back() >= half; // the other half of a spectrum is its conjugate
      if (mirrored)
        for (size_t i = 0; i < index.size(); ++i)
          index[i] = (plan.extents[i] - index[i]) % plan.extents[i];
      const ConsanComplex value = read(in[from.place(index) + batch * from.distance]);
      values[number] = mirrored ? std::conj(value) : value;
    });
    fft(values, plan.extents, sign);
    each_index(plan.extents, [&](size_t number, const std::vector<int> &index) {
      if (!from_real || index.back() < half)
        write(out[to.place(index) + batch * to.distance], values[number]);
    });
  }
  return CUFFT_SUCCESS;
}
} // namespace consan

inline cufftResult cufftCreate(cufftHandle *plan) {
  consan::fft_plans().emplace_back();
  return *plan = int(consan::fft_plans().size()) - 1, CUFFT_SUCCESS;
}
inline cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int *extents, int *in, int in_step, int in_distance, int *out, int out_step,
                                     int out_distance, cufftType type, int batch, size_t *work) {
  using consan::FftLayout;
  if (plan < 0 || size_t(plan) >= consan::fft_plans().size())
    return CUFFT_INVALID_PLAN;
  for (int i = 0; i < rank; ++i)
    if (extents[i] < 1)
      return CUFFT_INVALID_SIZE;
  consan::fft_plans()[plan] = {{extents, extents + rank}, FftLayout::of(in, rank, in_step, in_distance),
                               FftLayout::of(out, rank, out_step, out_distance), type, batch};
  if (work != nullptr)
    *work = 1;
  return CUFFT_SUCCESS;
}
inline cufftResult cufftMakePlan1d(cufftHandle plan, int x, cufftType type, int batch, size_t *work) {
  return cufftMakePlanMany(plan, 1, &x, nullptr, 1, 0, nullptr, 1, 0, type, batch, work);
}
inline cufftResult cufftMakePlan2d(cufftHandle plan, int x, int y, cufftType type, size_t *work) {
  int extents[] = {x, y};
  return cufftMakePlanMany(plan, 2, extents, nullptr, 1, 0, nullptr, 1, 0, type, 1, work);
}
inline cufftResult cufftMakePlan3d(cufftHandle plan, int x, int y, int z, cufftType type, size_t *work) {
  int extents[] = {x, y, z};
  return cufftMakePlanMany(plan, 3, extents, nullptr, 1, 0, nullptr, 1, 0, type, 1, work);
}
inline cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *extents, int *in, int in_step, int in_distance, int *out, int out_step,
                                 int out_distance, cufftType type, int batch) {
  cufftCreate(plan);
  return cufftMakePlanMany(*plan, rank, extents, in, in_step, in_distance, out, out_step, out_distance, type, batch, nullptr);
}
inline cufftResult cufftPlan1d(cufftHandle *plan, int x, cufftType type, int batch) {
  return cufftCreate(plan), cufftMakePlan1d(*plan, x, type, batch, nullptr);
}
inline cufftResult cufftPlan2d(cufftHandle *plan, int x, int y, cufftType type) { return cufftCreate(plan), cufftMakePlan2d(*plan, x, y, type, nullptr); }
inline cufftResult cufftPlan3d(cufftHandle *plan, int x, int y, int z, cufftType type) {
  return cufftCreate(plan), cufftMakePlan3d(*plan, x, y, z, type, nullptr);
}
inline cufftResult cufftDestroy(cufftHandle) { return CUFFT_SUCCESS; }
inline cufftResult cufftSetStream(cufftHandle, cudaStream_t) { return CUFFT_SUCCESS; }
inline cufftResult cufftSetAutoAllocation(cufftHandle, int) { return CUFFT_SUCCESS; }
inline cufftResult cufftSetWorkArea(cufftHandle, void *) { return CUFFT_SUCCESS; }
inline cufftResult cufftGetVersion(int *version) { return *version = 12000, CUFFT_SUCCESS; }

inline cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *in, cufftComplex *out, int sign) { return consan::transformed(plan, in, out, sign); }
inline cufftResult cufftExecR2C(cufftHandle plan, cufftReal *in, cufftComplex *out) { return consan::transformed(plan, in, out, -1); }
inline cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *in, cufftReal *out) { return consan::transformed(plan, in, out, 1); }
inline cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *in, cufftDoubleComplex *out, int sign) {
  return consan::transformed(plan, in, out, sign);
}
inline cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal *in, cufftDoubleComplex *out) { return consan::transformed(plan, in, out, -1); }
inline cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex *in, cufftDoubleReal *out) { return consan::transformed(plan, in, out, 1); }
