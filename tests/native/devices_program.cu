// A program of the CUDA runtime with two devices. Each word is a step, in the order that they are given.
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

#include "runtime_status.cuh"

constexpr int N = 128, BYTES = N * sizeof(int);

__device__ int total;
#ifdef MANAGED
__managed__ int counted;
#endif

__global__ void fill(int *to, int value) { to[threadIdx.x] = value; }
__global__ void take(int *to, const int *from) { to[threadIdx.x] = from[threadIdx.x] + 1; }  // second
__global__ void add(int value) {
    if (threadIdx.x == 0) total += value;
}

int main(int count, char **words) {
    int devices, can = 0, *on[2], *out[2], found[N];
    cudaStream_t streams[2];
    cudaEvent_t events[2];
    OK(cudaGetDeviceCount(&devices));
    if (devices != 2) return 3;
    OK(cudaDeviceCanAccessPeer(&can, 0, 1));
    if (!can) return 4;
    for (int device = 0; device < 2; ++device) {
        OK(cudaSetDevice(device));
        OK(cudaDeviceEnablePeerAccess(1 - device, 0));
        OK(cudaStreamCreateWithFlags(&streams[device], cudaStreamNonBlocking));
        OK(cudaEventCreateWithFlags(&events[device], cudaEventDisableTiming));
        OK(cudaMalloc(&on[device], BYTES));
        OK(cudaMalloc(&out[device], BYTES));
        OK(cudaMemset(on[device], 0, BYTES));
        OK(cudaDeviceSynchronize());
    }
    int device = 0;
    OK(cudaSetDevice(device));
    for (int at = 1; at < count; ++at) {
        auto is = [&](const char *word) { return strcmp(words[at], word) == 0; };
        cudaStream_t mine = streams[device];
        if (is("device0") || is("device1")) {
            device = is("device1");
            OK(cudaSetDevice(device));
            int now = -1;
            OK(cudaGetDevice(&now));
            if (now != device) return 5;
        }
        if (is("fill")) fill<<<1, N, 0, mine>>>(on[device], 1 + device);
        if (is("fill-peer")) fill<<<1, N, 0, mine>>>(on[1 - device], 1 + device);
        if (is("take")) take<<<1, N, 0, mine>>>(out[device], on[device]);
        if (is("take-peer")) take<<<1, N, 0, mine>>>(out[device], on[1 - device]);
        if (is("fill-default")) fill<<<1, N>>>(on[device], 1);
        if (is("take-peer-default")) take<<<1, N>>>(out[device], on[1 - device]);
        if (is("add")) add<<<1, N, 0, mine>>>(1);
        if (is("record")) OK(cudaEventRecord(events[device], mine));
        if (is("wait")) OK(cudaStreamWaitEvent(mine, events[1 - device], 0));
        if (is("sync")) OK(cudaDeviceSynchronize());
        if (is("sync-stream")) OK(cudaStreamSynchronize(mine));
        if (is("sync-event")) OK(cudaEventSynchronize(events[1 - device]));
        if (is("copy-to-peer")) OK(cudaMemcpyPeerAsync(on[1 - device], 1 - device, on[device], device, BYTES, mine));
        if (is("copy-from-peer")) OK(cudaMemcpyAsync(out[device], on[1 - device], BYTES, cudaMemcpyDeviceToDevice, mine));
        if (is("copy-alone")) OK(cudaMemcpyPeer(on[1 - device], 1 - device, on[device], device, BYTES));
        if (is("read")) OK(cudaMemcpy(found, on[device], BYTES, cudaMemcpyDeviceToHost));
    }
    OK(cudaGetLastError());
    for (device = 0; device < 2; ++device) {
        OK(cudaSetDevice(device));
        OK(cudaDeviceSynchronize());
    }
    return 0;
}
