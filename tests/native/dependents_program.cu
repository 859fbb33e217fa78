// Two streams, and kernels that let the next one start early or wait for the one before. Each argument is a step.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#define CHECK(call) do { cudaError_t e = call; if (e) { std::printf("%s: %s\n", #call, cudaGetErrorString(e)); std::exit(3); } } while (0)
#define TRIGGER asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define WAIT asm volatile("griddepcontrol.wait;" ::: "memory")
#define AT (blockIdx.x * blockDim.x + threadIdx.x)

__global__ void first(const int *in, int *out) {
    TRIGGER;
    out[AT] = 2 * in[AT];
}
__global__ void second(const int *in, int *out) {
    WAIT;
    out[AT] = in[AT] + 1;
}
__global__ void early(const int *in, int *out) {
    int x = in[AT];
    WAIT;
    out[AT] = x + 1;
}
__global__ void plain(const int *in, int *out) { out[AT] = in[AT] + 1; }
__global__ void between(const int *, int *other) {
    TRIGGER;
    WAIT;
    other[AT] = 1;
}
__global__ void hasty(const int *, int *other) {
    TRIGGER;
    other[AT] = 1;
}

int main(int count, char **words) {
    int *in, *middle, *out, *other, found[256];
    cudaStream_t streams[2], stream;
    cudaEvent_t event;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaMalloc(&in, 1024));
    CHECK(cudaMalloc(&middle, 1024));
    CHECK(cudaMalloc(&out, 1024));
    CHECK(cudaMalloc(&other, 1024));
    CHECK(cudaMemset(in, 0, 1024));
    for (auto &each : streams) CHECK(cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaDeviceSynchronize());
    stream = streams[0];
    for (int step = 1; step < count; ++step) {
        // A launch: [chained-]kernel[+event|+begun]
        char *word = words[step], *mark = std::strchr(word, '+');
        std::string_view name(word, mark ? mark - word : std::strlen(word));
        bool chained = name.substr(0, 8) == "chained-";
        if (chained) name.remove_prefix(8);
        struct { const char *name; void (*kernel)(const int *, int *); const int *from; int *to; } const kernels[] = {
            {"first", first, in, middle}, {"second", second, middle, out}, {"early", early, middle, out},
            {"plain", plain, middle, out}, {"between", between, in, other}, {"hasty", hasty, in, other}};
        for (auto &each : kernels) {
            if (name != each.name) continue;
            cudaLaunchAttribute attributes[2] = {};
            cudaLaunchConfig_t config = {};
            config.gridDim = dim3(4), config.blockDim = dim3(64), config.stream = stream, config.attrs = attributes;
            if (chained) {
                auto &given = attributes[config.numAttrs++];
                given.id = cudaLaunchAttributeProgrammaticStreamSerialization, given.val.programmaticStreamSerializationAllowed = 1;
            }
            if (mark) {
                auto &given = attributes[config.numAttrs++];
                bool begun = mark[1] == 'b';
                given.id = begun ? cudaLaunchAttributeLaunchCompletionEvent : cudaLaunchAttributeProgrammaticEvent;
                if (begun) given.val.launchCompletionEvent.event = event;
                else given.val.programmaticEvent.event = event;
            }
            CHECK(cudaLaunchKernelEx(&config, each.kernel, each.from, each.to));
        }
        if (name == "wait") {
            stream = streams[1];
            CHECK(cudaStreamWaitEvent(stream, event, 0));
        }
        if (name == "other") stream = streams[1];
        if (name == "record") CHECK(cudaEventRecord(event, stream));
        if (name == "sync") CHECK(cudaEventSynchronize(event));
        if (name == "copy") CHECK(cudaMemcpyAsync(out, middle, 1024, cudaMemcpyDeviceToDevice, stream));
        if (name == "capture") CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        if (name == "launch") {
            CHECK(cudaStreamEndCapture(stream, &graph));
            CHECK(cudaGraphInstantiate(&exec, graph, 0));
            for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(exec, stream));
        }
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(found, out, 1024, cudaMemcpyDeviceToHost));
    return 0;
}
