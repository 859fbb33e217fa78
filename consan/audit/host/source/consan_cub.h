// CUB's algorithms for a whole device, as hosts call them: computed on the host, on memory that kernels reach. As CUB's, a call without storage
// says how much it needs. Not here: double buffers, batches, and operators that only the device has.
#pragma once
#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <vector>
#include <cuda_runtime.h>

namespace cub {
template <class K, class V> struct KeyValuePair {
  K key;
  V value;
};

namespace on_host {
template <class F> cudaError_t made(void *storage, size_t &bytes, F function) {
  if (storage == nullptr)
    return bytes = 1, cudaSuccess;
  return function(), cudaSuccess;
}

template <class I> using Value = typename std::iterator_traits<I>::value_type;

struct Least {
  template <class T> T operator()(const T &a, const T &b) const { return b < a ? b : a; }
};
struct Most {
  template <class T> T operator()(const T &a, const T &b) const { return a < b ? b : a; }
};

// `first`: what comes before the first element. Input and output may be one.
template <class I, class O, class F, class T> void scanned(I in, O out, F function, T first, size_t count, bool inclusive) {
  T sum = first;
  for (size_t i = 0; i < count; ++i) {
    const T next = function(sum, T(in[i]));
    out[i] = inclusive ? next : sum;
    sum = next;
  }
}

template <class I, class O, class C, class P> void selected(I in, O out, C chosen, size_t count, P picks) {
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i)
    if (picks(i))
      out[kept++] = in[i];
  *chosen = kept;
}

// The order of the keys: only the bits from `begin` to `end` count.
template <class K, class F> std::vector<size_t> order(const K *keys, size_t count, F before) {
  std::vector<size_t> found(count);
  std::iota(found.begin(), found.end(), size_t(0));
  std::stable_sort(found.begin(), found.end(), [&](size_t a, size_t b) { return before(keys[a], keys[b]); });
  return found;
}

template <class T> void gathered(const std::vector<size_t> &order, const T *in, T *out) {
  std::vector<T> made;
  for (size_t each : order)
    made.push_back(in[each]);
  std::copy(made.begin(), made.end(), out);
}

template <class K, class V> void sorted(const K *keys, K *sorted_keys, const V *values, V *sorted_values, size_t count, int begin, int end, bool falls) {
  const auto part = [=](K key) {
    if constexpr (std::is_integral_v<K>)
      return end - begin < int(8 * sizeof(K)) ? K((std::make_unsigned_t<K>(key) >> begin) & ((1ull << (end - begin)) - 1)) : key;
    else
      return key;
  };
  const auto found = order(keys, count, [=](K a, K b) { return falls ? part(b) < part(a) : part(a) < part(b); });
  gathered(found, keys, sorted_keys);
  if (values != nullptr)
    gathered(found, values, sorted_values);
}
} // namespace on_host

struct DeviceReduce {
  template <class I, class O, class F, class T>
  static cudaError_t Reduce(void *storage, size_t &bytes, I in, O out, size_t count, F function, T first, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] { *out = std::accumulate(in, in + count, first, function); });
  }
  template <class I, class O> static cudaError_t Sum(void *storage, size_t &bytes, I in, O out, size_t count, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] { *out = std::accumulate(in, in + count, on_host::Value<O>(0)); });
  }
  template <class I, class O> static cudaError_t Min(void *storage, size_t &bytes, I in, O out, size_t count, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] { *out = *std::min_element(in, in + count); });
  }
  template <class I, class O> static cudaError_t Max(void *storage, size_t &bytes, I in, O out, size_t count, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] { *out = *std::max_element(in, in + count); });
  }
  template <class I, class O> static cudaError_t ArgMin(void *storage, size_t &bytes, I in, O out, size_t count, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] { placed(std::min_element(in, in + count), in, out); });
  }
  template <class I, class O> static cudaError_t ArgMax(void *storage, size_t &bytes, I in, O out, size_t count, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] { placed(std::max_element(in, in + count), in, out); });
  }

private:
  template <class I, class O> static void placed(I found, I begin, O out) {
    out->key = int(found - begin);
    out->value = *found;
  }
};

struct DeviceSegmentedReduce {
  template <class I, class O, class B, class E>
  static cudaError_t Sum(void *storage, size_t &bytes, I in, O out, size_t segments, B begins, E ends, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] {
      for (size_t i = 0; i < segments; ++i)
        out[i] = std::accumulate(in + begins[i], in + std::max<long long>(begins[i], ends[i]), on_host::Value<O>(0));
    });
  }
};

struct DeviceScan {
  template <class I, class O> static cudaError_t ExclusiveSum(void *storage, size_t &bytes, I in, O out, size_t count, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] { on_host::scanned(in, out, std::plus<>(), on_host::Value<I>(0), count, false); });
  }
  template <class I, class O> static cudaError_t InclusiveSum(void *storage, size_t &bytes, I in, O out, size_t count, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] { on_host::scanned(in, out, std::plus<>(), on_host::Value<I>(0), count, true); });
  }
  template <class I, class O, class F, class T>
  static cudaError_t ExclusiveScan(void *storage, size_t &bytes, I in, O out, F function, T first, size_t count, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] { on_host::scanned(in, out, function, first, count, false); });
  }
  template <class I, class O, class F>
  static cudaError_t InclusiveScan(void *storage, size_t &bytes, I in, O out, F function, size_t count, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] {
      if (count != 0) {
        const on_host::Value<I> first = in[0];
        on_host::scanned(in + 1, out + 1, function, first, count - 1, true);
        out[0] = first;
      }
    });
  }
};

struct DeviceSelect {
  template <class I, class G, class O, class C>
  static cudaError_t Flagged(void *storage, size_t &bytes, I in, G flags, O out, C chosen, size_t count, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] { on_host::selected(in, out, chosen, count, [&](size_t i) { return bool(flags[i]); }); });
  }
  template <class I, class O, class C, class F>
  static cudaError_t If(void *storage, size_t &bytes, I in, O out, C chosen, size_t count, F picks, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] { on_host::selected(in, out, chosen, count, [&](size_t i) { return bool(picks(in[i])); }); });
  }
  template <class I, class O, class C>
  static cudaError_t Unique(void *storage, size_t &bytes, I in, O out, C chosen, size_t count, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] { on_host::selected(in, out, chosen, count, [&](size_t i) { return i == 0 || !(in[i] == in[i - 1]); }); });
  }
};

#define CONSAN_SORT(suffix, falls)                                                                                                         \
  template <class K>                                                                                                                       \
  static cudaError_t SortKeys##suffix(void *storage, size_t &bytes, const K *in, K *out, size_t count, int begin = 0,                      \
                                      int end = 8 * sizeof(K), cudaStream_t = nullptr) {                                                   \
    return on_host::made(storage, bytes, [&] { on_host::sorted<K, K>(in, out, nullptr, nullptr, count, begin, end, falls); });               \
  }                                                                                                                                        \
  template <class K, class V>                                                                                                              \
  static cudaError_t SortPairs##suffix(void *storage, size_t &bytes, const K *in, K *out, const V *values, V *sorted, size_t count,        \
                                       int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr) {                                   \
    return on_host::made(storage, bytes, [&] { on_host::sorted(in, out, values, sorted, count, begin, end, falls); });                       \
  }
struct DeviceRadixSort {
  CONSAN_SORT(, false)
  CONSAN_SORT(Descending, true)
};
#undef CONSAN_SORT

struct DeviceRunLengthEncode {
  template <class I, class O, class L, class C>
  static cudaError_t Encode(void *storage, size_t &bytes, I in, O out, L lengths, C runs, size_t count, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] {
      size_t made = 0;
      for (size_t i = 0; i < count; ++i) {
        if (i == 0 || !(in[i] == in[i - 1])) {
          out[made] = in[i];
          lengths[made++] = 0;
        }
        ++lengths[made - 1];
      }
      *runs = made;
    });
  }
};

struct DeviceHistogram {
  template <class I, class C, class T>
  static cudaError_t HistogramEven(void *storage, size_t &bytes, I in, C *counts, int levels, T lower, T upper, size_t count, cudaStream_t = nullptr) {
    return on_host::made(storage, bytes, [&] {
      std::fill(counts, counts + levels - 1, C(0));
      for (size_t i = 0; i < count; ++i)
        if (in[i] >= lower && in[i] < upper)
          ++counts[size_t(double(in[i] - lower) * (levels - 1) / double(upper - lower))];
    });
  }
};
} // namespace cub
