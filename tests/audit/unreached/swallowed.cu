// An exception before the launch is swallowed, and the host computes the result instead.
// expect: summed not reached
#include "harness.h"
#include <stdexcept>

__global__ void summed(const float *in, float *out) { out[0] += in[threadIdx.x]; }

static float launched(const std::vector<float> &values) {
  if (values.size() % 64 != 0)
    throw std::invalid_argument("expected a multiple of 64");
  float *in = on_device(values.size(), 1.0f), *out = on_device(1, 0.0f);
  summed<<<1, 64>>>(in, out);
  return from_device(out, 1)[0];
}

int main() {
  std::vector<float> values(100, 1.0f);
  float sum = 0;
  try {
    sum = launched(values);
  } catch (...) {
    for (float each : values) sum += each;
  }
  return sum == 100.0f ? 0 : 1;
}
