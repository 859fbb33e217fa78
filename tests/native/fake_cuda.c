// A libcuda.so.1 for tests: device memory is host memory, and what it is handed is written to the file FAKE_CUDA_LOG.
//
// A launch of a kernel from an image with a control block does what hooks would: it counts the launch, and copies the file FAKE_CUDA_RING, if
// there is one, into the ring of findings. FAKE_CUDA_RUNTIME holds the places of two pointers in the runtime's record: launches, ring.
// A launch of a recorded kernel leaves the record that the virtual machine has made of the image: a file of the folder FAKE_CUDA_RECORDS.
// Images are told apart by their beginning; those that begin with "BAD" are refused.

#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int Result;
typedef void *Handle;

// Contexts: those of the devices (one, or FAKE_CUDA_DEVICES), and those that the program makes. A handle of one that is used in another is
// an error (INVALID), also where a driver might take it.
#define INVALID 400
#define MOST_CONTEXTS 4
struct Context {
    int number, device;
};
static struct Context contexts[MOST_CONTEXTS] = {{0, 0}, {1, 1}};
static int context_count = 2;
static int devices(void) { return getenv("FAKE_CUDA_DEVICES") ? atoi(getenv("FAKE_CUDA_DEVICES")) : 1; }
static _Thread_local struct Context *current = contexts;
static _Thread_local int is_in;  // whether this thread has entered a context
static int threads_in;

struct Variables {
    uint64_t control[4];
    uint64_t record[2], places[9];  // where a launch leaves its results, and its logs (PLACES_BYTES of instrument/record/text/text.py)
    uint32_t seed;  // of delays: it is noted where there is one
    char table[8];  // a variable, noted in the same way by launches with hooks
};
struct Module {
    char kind[8];
    int hooked;
    uint64_t recorded;  // the sum of an image that records
    struct Context *context;  // NULL: a library, which has variables in each one
    struct Variables variables[MOST_CONTEXTS];
};
struct Kernel {
    struct Module *module;
    char name[64];
};

static void note(const char *what, const char *detail) {
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s %s\n", what, detail);  // one write: the file is opened for appending
    fclose(file);
}

static uint64_t sum_of(const unsigned char *data, uint64_t bytes) {
    uint64_t sum = 1;
    for (uint64_t i = 0; i < bytes; i++) sum = sum * 31 + data[i];
    return sum;
}

static const char *kind_of(const void *image) {
    uint32_t magic;
    memcpy(&magic, image, 4);
    return magic == 0x464c457f ? "elf" : magic == 0xba55ed50 ? "fatbin" : magic == 0x466243b1 ? "wrapper" : "text";
}

struct Made {  // a stream or an event
    struct Context *context;
};
#define CAPTURED ((Handle)0x40)  // a stream that nobody has made
static struct Context *context_of(Handle stream) {
    return (uintptr_t)stream <= (uintptr_t)CAPTURED ? current : ((struct Made *)stream)->context;
}
static Result make(Handle *made) {
    struct Made *new = *made = malloc(sizeof *new);
    return new->context = current, current == NULL;
}

static struct Allocation {
    uint64_t address, bytes;
    struct Context *context;
} allocations[1 << 12];
static int allocation_count;
static int is_memory_of(uint64_t address, const struct Context *context) {
    for (int i = 0; i < allocation_count; i++)
        if (address - allocations[i].address < allocations[i].bytes && allocations[i].context == context) return 1;
    return 0;
}

static Result load(const char *call, Handle *made, const void *image) {
    const char *kind = kind_of(image);
    struct Module *module = calloc(1, sizeof *module);
    strcpy(module->kind, kind);
    module->context = strstr(call, "Library") ? NULL : current;
    if (!strcmp(kind, "elf") && ((const unsigned char *)image)[4] == 2) {  // where the sections begin is how long a cubin at least is
        uint64_t bytes;
        memcpy(&bytes, (const char *)image + 40, 8);
        module->hooked = memmem(image, bytes, "__consan_ctl", 12) != NULL;
        module->recorded = memmem(image, bytes, "__consan_record", 15) ? sum_of(image, bytes) : 0;
        if (getenv("FAKE_CUDA_REFUSES") && (module->hooked || module->recorded)) return 209;
        if (memmem(image, bytes, "consan_receipt", 14) || memmem(image, bytes, "consan_sums", 11)) return *made = module, 0;
    }
    char detail[64];
    snprintf(detail, sizeof detail, "%s%s", kind, module->hooked ? " with hooks" : module->recorded ? " that records" : "");
    note(call, detail);
    *made = module;
    return 0;
}

// Write the record of a launch: the sizes of its results, hashes and ends, the lines of each warp's log, and then all that, as
// native_case.py has stored it.
static Result record(struct Module *module, const struct Context *context) {
    const struct Variables *variables = &module->variables[context->number];
    enum { ARENA, HASHES = 2, ENDS = 4, LINES = 6 };  // words of the places, of instrument/record/text/text.py
    char path[256];
    snprintf(path, sizeof path, "%s/%016lx", getenv("FAKE_CUDA_RECORDS"), module->recorded);
    if (getenv("FAKE_CUDA_DIES")) raise(SIGKILL);
    FILE *file = fopen(path, "rb");
    const uint64_t *places = variables->places;
    uint64_t sizes[4], lines = (uint32_t)places[LINES];
    if (!file || fread(sizes, 8, 4, file) != 4) return 700;
    if (!sizes[0]) return fclose(file);  // the kernel records nothing
    if (!places[ARENA] || sizes[3] > lines || !is_memory_of(places[ARENA], context)) return 700;
    void *const parts[] = {(void *)variables->record[0], (void *)places[HASHES], (void *)places[ENDS]};
    for (int i = 0; i < 2; i++)
        if (sizes[i] && (*(char *)parts[i] || memcmp(parts[i], (char *)parts[i] + 1, sizes[i] - 1))) return 701;  // it was not cleared
    for (int i = 0; i < 3; i++)
        if (fread(parts[i], 1, sizes[i], file) != sizes[i]) return 1;
    for (char *log = (char *)places[ARENA]; sizes[3] && fread(log, 128, sizes[3], file) == sizes[3];) log += 128 * lines;
    return fclose(file);
}

static Result launch(const char *call, Handle function, Handle stream) {
    struct Kernel *kernel = function;
    static int launches_before;
    if (getenv("FAKE_CUDA_FAILS") && launches_before++ == atoi(getenv("FAKE_CUDA_FAILS"))) return 700;
    const struct Context *context = context_of(stream);
    if (!context || (kernel->module->context && kernel->module->context != context)) return INVALID;
    const struct Variables *variables = &kernel->module->variables[context->number];
    const uint64_t *control = variables->control;
    note(call, kernel->name);
    char seed[16];
    snprintf(seed, sizeof seed, "%u", variables->seed);
    if (variables->seed) note("seed", seed);
    if (kernel->module->recorded) return record(kernel->module, context);
    if (*variables->table) note("table", variables->table);
    const char *places = getenv("FAKE_CUDA_RUNTIME"), *ring = getenv("FAKE_CUDA_RING");
    unsigned launches_at, ring_at;
    if (!control[0] || !places || sscanf(places, "%u,%u", &launches_at, &ring_at) != 2) return 0;
    uint64_t launches = *(uint64_t *)(control[0] + launches_at), findings = *(uint64_t *)(control[0] + ring_at);
    __atomic_fetch_add((uint64_t *)launches + (control[1] >> 32), 1, __ATOMIC_RELAXED);
    FILE *file = ring ? fopen(ring, "rb") : NULL;
    if (file) {
        fseek(file, 0, SEEK_END);
        size_t bytes = ftell(file);
        rewind(file);
        if (fread((void *)findings, 1, bytes, file) != bytes) return 1;
        fclose(file);
    }
    return 0;
}

static uint64_t avalanche(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

// consan's kernel that writes the receipt of a launch (consan/checker/logs/receipts.py). `counts`: of a node of a graph.
enum { RESULTS = 4, BEGUN = 253, RUNS = 254, CHANGES = 255 };  // words of a slip
static void receipt(const uint64_t *arguments, int counts) {
    const uint64_t *hashes = (const uint64_t *)arguments[0], threads = arguments[1], words = arguments[4];
    uint64_t *slip = (uint64_t *)arguments[5], sums[3] = {0};
    for (uint64_t n = 1; n <= threads; n++) {
        uint64_t one = hashes[2 * n - 2], other = hashes[2 * n - 1];
        sums[0] += avalanche(avalanche(one + n * 0x9E3779B97F4A7C15ull) ^ other);
        sums[1] += avalanche(avalanche(other + n * 0xC2B2AE3D27D4EB4Full) ^ one);
        sums[2] += !one || !other;
    }
    if (counts) {
        int differs = memcmp(slip + RESULTS, (const void *)arguments[3], 4 * words) || memcmp(slip + 1, sums, 16);
        differs = (differs && slip[RUNS]) || slip[BEGUN] != slip[RUNS] + 1;
        slip[RUNS]++, slip[CHANGES] += differs;
    }
    memcpy(slip + RESULTS, (const void *)arguments[3], 4 * words);
    memcpy(slip + 1, sums, sizeof sums);
    __atomic_store_n(slip, arguments[6], __ATOMIC_RELEASE);
}

// The one before nodes of a graph. An entry of its table: a slip, its copy, addresses and bytes to clear.
static void begins(const uint64_t *table, int counts) {
    for (uint64_t n = 1; n <= *table; n++) {
        const uint64_t *entry = table + 8 * n;
        uint64_t launches = ((uint64_t *)entry[1])[BEGUN] += counts;
        if (entry[0]) ((uint64_t *)entry[0])[BEGUN] = launches; // a node without a slip has only a counter
        for (int at = 2; at < 6; at += 2) memset((void *)entry[at], 0, entry[at + 1]);
    }
}

static int is_own(const struct Kernel *kernel) {
    return !strcmp(kernel->name, "consan_receipt") || !strncmp(kernel->name, "consan_node_", 12);
}
static Result run_own(const struct Kernel *kernel, const uint64_t *arguments) {
    int dropped = getenv("FAKE_CUDA_DROPS") && !strcmp(kernel->name, getenv("FAKE_CUDA_DROPS"));
    if (!strcmp(kernel->name, "consan_node_begins")) begins((const uint64_t *)arguments[0], !dropped);
    else if (!dropped) receipt(arguments, !strcmp(kernel->name, "consan_node_receipt"));
    return 0;
}

// Graphs. A node is a kernel, a memset, a graph, or (conditional) none of these; the graph is an array of nodes, and what is instantiated.
enum { KERNEL_NODE, MEMSET_NODE = 2, CHILD_NODE = 4 };
struct Node {
    int type;
    Handle what;
    uint64_t arguments[7];  // of a memset, and of consan's own kernels
};
struct Graph {
    size_t count;
    struct Node nodes[64];
};
static struct Graph *graph_of_capture;
static Result add_node(struct Graph *graph, struct Node node) {
    if (graph) graph->nodes[graph->count++] = node;
    return 0;
}

void (*fakeTells)(const char *name, const void *parameters, int status, Handle context);  // set by CUPTI
static Result told(Result result, const char *name, const void *parameters) {
    if (fakeTells) fakeTells(name, parameters, result, current);
    return result;
}
#define TOLD(name, result, ...) told(result, name, (const uint64_t[]){__VA_ARGS__})  // parameters of 8 bytes, or a last one of 4

Result cuInit(unsigned flags) { return flags; }
Result cuDriverGetVersion(int *version) { return *version = 13000, 0; }
Result cuDeviceGetCount(int *count) { return *count = devices(), 0; }
Result cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
Result cuDeviceGetName(char *name, int size, int device) { return snprintf(name, size, "Fake GPU %d", device), 0; }
Result cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = 512ull << 20, device >= devices(); }
Result cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 1;
    return device >= devices();
}
Result cuDevicePrimaryCtxRetain(Handle *made, int device) {
    return note("cuDevicePrimaryCtxRetain", ""), *made = &contexts[device], device >= devices();
}
Result cuDevicePrimaryCtxReset_v2(int device) {
    return note("cuDevicePrimaryCtxReset", threads_in > is_in ? "of a context that a thread is in" : ""), device >= devices();
}
Result cuCtxCreate_v2(Handle *made, unsigned flags, int device) {
    if (flags || device >= devices() || context_count == MOST_CONTEXTS) return 1;
    contexts[context_count] = (struct Context){context_count, device};
    return *made = current = &contexts[context_count++], 0;
}
Result cuCtxEnablePeerAccess(Handle peer, unsigned flags) { return TOLD("cuCtxEnablePeerAccess", peer == NULL || peer == current, (uintptr_t)peer, flags); }
Result cuCtxGetCurrent(Handle *found) { return *found = getenv("FAKE_CUDA_NO_CONTEXT") ? NULL : current, 0; }
Result cuCtxSetCurrent(Handle given) {
    __atomic_fetch_add(&threads_in, (given != NULL) - is_in, __ATOMIC_RELAXED);
    return is_in = given != NULL, current = given, 0;
}
Result cuCtxGetDevice(int *device) { return current ? (*device = current->device, 0) : 201; }
Result cuCtxSynchronize(void) { return TOLD("cuCtxSynchronize", 0, 0); }
Result cuThreadExchangeStreamCaptureMode(int *mode) { return *mode = 0, 0; }
Result cuStreamCreate(Handle *made, unsigned flags) { return TOLD("cuStreamCreate", make(made), (uintptr_t)made, flags); }
Result cuStreamGetCtx(Handle stream, Handle *found) { return *found = context_of(stream), 0; }
Result cuStreamSynchronize(Handle stream) { return TOLD("cuStreamSynchronize", stream == NULL, (uintptr_t)stream); }
static Handle captured = CAPTURED;  // a stream whose launches go into a graph
static int spoilt;  // the capture
Result cuStreamGetFlags(Handle stream, unsigned *flags) { return *flags = 1, spoilt |= stream == captured; }
Result cuStreamIsCapturing(Handle stream, int *status) { return *status = stream == captured, stream == NULL; }
struct Memory { char handle[64]; };  // the kernel's first parameter is in the only allocation: it begins at 0x10000000 and has 1 MiB
Result cuPointerGetAttribute(void *value, int attribute, uint64_t address) {
    uint64_t facts[] = {[11] = 0x10000000, [12] = 1 << 20};
    if (attribute == 2) return *(unsigned *)value = 2, !address;
    if (attribute == 9) return *(int *)value = address >> 27 & 1, address < facts[11];  // every 128 MiB are the other device's
    return attribute < 11 || attribute > 12 ? 1 : (memcpy(value, &facts[attribute], sizeof *facts), address - facts[11] >= facts[12]);
}
Result cuIpcOpenMemHandle_v2(uint64_t *made, struct Memory given, unsigned flags) {
    return memcpy(made, &given, sizeof *made), TOLD("cuIpcOpenMemHandle_v2", flags != 1, (uintptr_t)made);
}
Result cuIpcGetMemHandle(struct Memory *made, uint64_t memory) {
    memcpy(made, &memory, sizeof memory);
    return TOLD("cuIpcGetMemHandle", 0, (uintptr_t)made, memory);
}
Result cuEventCreate(Handle *made, unsigned flags) { return flags > 2 ? 1 : make(made); }
Result cuEventRecord(Handle event, Handle stream) {
    return TOLD("cuEventRecord", ((struct Made *)event)->context == context_of(stream) ? 0 : INVALID, (uintptr_t)event, (uintptr_t)stream);
}
Result cuEventQuery(Handle event) { return event == NULL; }
Result cuStreamWaitEvent(Handle stream, Handle event, unsigned flags) {
    return TOLD("cuStreamWaitEvent", event == NULL || flags, (uintptr_t)stream, (uintptr_t)event, flags);
}
Result cuGetErrorName(int code, const char **text) { return *text = "CUDA_ERROR_FAKE", code == 0; }
Result cuGetErrorString(int code, const char **text) { return *text = "made up", code == 0; }
Result cuMemAlloc_v2(uint64_t *made, size_t bytes) {
    *made = (uintptr_t)calloc(1, bytes);
    allocations[allocation_count++] = (struct Allocation){*made, bytes, current};
    return current == NULL;
}
Result cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, Handle stream) {
    return memcpy((void *)to, from, bytes), stream == captured || context_of(stream) != current ? INVALID : 0;
}
Result cuMemFree_v2(uint64_t memory) {
    for (int i = 0; i < allocation_count; i++)
        if (allocations[i].address == memory) allocations[i].bytes = 0;
    return free((void *)memory), 0;
}
Result cuMemGetInfo_v2(size_t *free, size_t *total) { return *free = 256ull << 20, *total = 512ull << 20, 0; }
Result cuFuncGetAttribute(int *value, int attribute, Handle function) { return *value = 0, attribute < 0 || !function; }
Result cuFuncSetAttribute(Handle function, int attribute, int value) { return attribute < 0 || value < 0 || !function; }
Result cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, Handle stream) {
    return memcpy(to, (void *)from, bytes), stream == NULL || context_of(stream) != current ? INVALID : 0;
}
Result cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) { return memcpy(to, (void *)from, bytes), 0; }
Result cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, Handle stream) {
    if (context_of(stream) != current) return INVALID;
    if (stream == captured) return add_node(graph_of_capture, (struct Node){MEMSET_NODE, NULL, {to, value, bytes}});
    if (value || bytes <= 1u << 17) memset((void *)to, value, bytes);  // larger memory is cleared only when it is new, and zero then
    return 0;
}
Result cuMemHostRegister_v2(void *host, size_t bytes, unsigned flags) { return !(host && bytes && flags == 3); }
Result cuMemHostGetDevicePointer_v2(uint64_t *found, void *host, unsigned flags) { return *found = (uintptr_t)host, flags; }

Result cuModuleLoadData(Handle *made, const void *image) { return load("cuModuleLoadData", made, image); }
Result cuModuleLoadDataEx(Handle *made, const void *image, unsigned count, int *options, void **values) {
    return count || options || values ? 1 : load("cuModuleLoadDataEx", made, image);
}
Result cuModuleLoadFatBinary(Handle *made, const void *image) { return load("cuModuleLoadFatBinary", made, image); }
Result cuModuleLoad(Handle *made, const char *path) { return load("cuModuleLoad", made, path); }
Result cuModuleUnload(Handle module) { return note("cuModuleUnload", ((struct Module *)module)->kind), 0; }
Result cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, Handle of, const char *name) {
    struct Module *module = of;
    if (!current || (module->context && module->context != current)) return INVALID;
    struct Variables *variables = &module->variables[current->number];
    if (!strcmp(name, "__consan_delay_seed")) return *address = (uintptr_t)&variables->seed, *bytes = 4, 0;
    if (strncmp(name, "__consan", 8)) return *address = (uintptr_t)variables->table, *bytes = 8, 0;
    if (module->recorded && !strcmp(name, "__consan_record")) return *address = (uintptr_t)variables->record, 0;
    if (module->recorded && !strcmp(name, "__consan_launch")) return *address = (uintptr_t)variables->places, 0;
    if (strcmp(name, "__consan_ctl") || !module->hooked) return 500;
    return *address = (uintptr_t)variables->control, *bytes = 32, 0;
}
Result cuLibraryGetGlobal(uint64_t *address, size_t *bytes, Handle library, const char *name) {
    return cuModuleGetGlobal_v2(address, bytes, library, name);
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *found, Handle function, int threads, size_t shared) {
    return *found = 16, function == NULL || threads < 1 || shared > 1 << 20;
}
Result cuModuleGetFunction(Handle *made, Handle module, const char *name) {
    struct Kernel *kernel = calloc(1, sizeof *kernel);
    kernel->module = module;
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    return *made = kernel, 0;
}
Result cuLibraryLoadData(Handle *made, const void *code, int *jit, void **values, unsigned jits, int *options, void **more, unsigned count) {
    return jit || values || jits || options || more || count ? 1 : load("cuLibraryLoadData", made, code);
}
Result cuLibraryLoadFromFile(Handle *made, const char *path, int *jit, void **values, unsigned jits, int *options, void **more, unsigned count) {
    return jit || values || jits || options || more || count ? 1 : load("cuLibraryLoadFromFile", made, path);
}
Result cuLibraryUnload(Handle library) { return note("cuLibraryUnload", ((struct Module *)library)->kind), 0; }
Result cuLibraryGetKernel(Handle *made, Handle library, const char *name) { return cuModuleGetFunction(made, library, name); }
Result cuLibraryGetModule(Handle *made, Handle library) { return *made = library, 0; }
Result cuKernelGetFunction(Handle *made, Handle kernel) { return *made = memcpy(malloc(sizeof(struct Kernel)), kernel, sizeof(struct Kernel)), 0; }

static Result capture(const char *call, Handle function) {
    note("captured", call);
    return add_node(graph_of_capture, (struct Node){KERNEL_NODE, function, {0}});
}
static Result own(const struct Kernel *kernel, Handle stream, uint64_t **arguments) {
    struct Node node = {KERNEL_NODE, (Handle)kernel, {0}};
    for (int i = 0; i < (strcmp(kernel->name, "consan_node_begins") ? 7 : 1); i++) node.arguments[i] = *arguments[i];
    return stream == captured ? add_node(graph_of_capture, node) : run_own(kernel, node.arguments);
}

#define PLAIN(name) \
    Result name(Handle function, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned shared, Handle stream, \
                void **arguments, void **extra) { \
        if (is_own(function)) return own(function, stream, (uint64_t **)arguments); \
        if (a * b * c != 4 || d * e * f != 256 || shared || !arguments == !extra) return 1; \
        const struct { Handle function; unsigned sizes[7]; Handle stream; void **given[2]; } all = { \
            function, {a, b, c, d, e, f, shared}, stream, {arguments, extra}}; \
        return told(stream == captured ? capture(#name, function) : launch(#name, function, stream), #name, &all); \
    }
PLAIN(cuLaunchKernel)
PLAIN(cuLaunchKernel_ptsz)
Result cuLaunchCooperativeKernel(Handle function, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned shared,
                                 Handle stream, void **arguments) {
    if (a * b * c != 4 || d * e * f != 256 || shared || stream || !arguments) return 1;
    return launch("cuLaunchCooperativeKernel", function, stream);
}
Result cuLaunchCooperativeKernelMultiDevice(const Handle *list, unsigned count, unsigned flags) {  // 7 words of 8 bytes for each launch
    for (unsigned i = 0; i < count; i++)
        if (flags || launch("cuLaunchCooperativeKernelMultiDevice", list[7 * i], NULL)) return 1;
    return count == 0;
}
Result cuLaunchKernelEx(const void *config, Handle function, void **arguments, void **extra) {
    if (!config || !arguments || extra) return 1;
    if (((const Handle *)config)[4] == captured) return capture("cuLaunchKernelEx", function);
    const uint32_t *attribute = ((const void *const *)config)[5];
    char text[32];
    snprintf(text, sizeof text, "%u: %u %u %u", attribute[0], attribute[2], attribute[3], attribute[4]);
    if (((const uint32_t *)config)[12]) note("attribute", text);
    return launch("cuLaunchKernelEx", function, ((const Handle *)config)[4]);
}

Result cuGraphCreate(Handle *made, unsigned flags) { return *made = calloc(1, sizeof(struct Graph)), flags; }
Result cuStreamBeginCapture_v2(Handle stream, int mode) {
    captured = stream;
    return TOLD("cuStreamBeginCapture_v2", cuGraphCreate((Handle *)&graph_of_capture, 0), (uintptr_t)stream, mode);
}
Result cuStreamEndCapture(Handle stream, Handle *made) {
    *made = graph_of_capture;
    captured = NULL, graph_of_capture = NULL;
    return TOLD("cuStreamEndCapture", spoilt, (uintptr_t)stream, (uintptr_t)made);
}
Result fakeGraphAddNode(Handle graph, int type, Handle what) {  // a shorter form
    return add_node(graph, (struct Node){type, what, {0}});
}
Result cuGraphAddKernelNode_v2(Handle *made, Handle graph, const Handle *before, size_t count, const Handle *about) {
    *made = NULL;
    return TOLD("cuGraphAddKernelNode_v2", before || count ? 1 : fakeGraphAddNode(graph, 0, *about), (uintptr_t)made, (uintptr_t)graph);
}
Result cuGraphAddNode(Handle *made, Handle graph, const Handle *before, size_t count, const Handle *about) {  // behind 16 bytes
    return *(const int *)about ? 1 : cuGraphAddKernelNode_v2(made, graph, before, count, about + 2);
}
Result cuGraphKernelNodeSetParams_v2(Handle node, const Handle *about) {
    ((struct Node *)node)->what = *about;
    return TOLD("cuGraphKernelNodeSetParams_v2", 0, (uintptr_t)node, (uintptr_t)about);
}
Result cuGraphGetNodes(Handle graph, Handle *nodes, size_t *count) {
    struct Graph *whole = graph;
    *count = whole->count;
    for (size_t i = 0; nodes && i < whole->count; i++) nodes[i] = &whole->nodes[i];
    return 0;
}
Result cuGraphNodeGetType(Handle node, int *type) { return *type = ((struct Node *)node)->type, 0; }
Result cuGraphChildGraphNodeGetGraph(Handle node, Handle *graph) { return *graph = ((struct Node *)node)->what, 0; }
Result cuGraphKernelNodeGetParams_v2(Handle node, Handle *about) {  // the function, 28 bytes of sizes, two pointers, the kernel, a context
    memset(about, 0, 72);
    return about[getenv("FAKE_CUDA_GRAPH_HAS_KERNELS") ? 7 : 0] = ((struct Node *)node)->what, 0;
}
Result cuFuncGetName(const char **name, Handle function) { return *name = ((struct Kernel *)function)->name, 0; }
Result cuKernelGetName(const char **name, Handle kernel) { return cuFuncGetName(name, kernel); }
Result cuGraphInstantiateWithFlags(Handle *made, Handle graph, uint64_t flags) {
    *made = memcpy(malloc(sizeof(struct Graph)), graph, sizeof(struct Graph));
    return TOLD("cuGraphInstantiateWithFlags", flags, (uintptr_t)made, (uintptr_t)graph);
}
static Result run_graph(const struct Graph *graph, Handle stream) {
    for (const struct Node *node = graph->nodes; node < graph->nodes + graph->count; node++) {
        if (node->type == MEMSET_NODE) memset((void *)node->arguments[0], (int)node->arguments[1], node->arguments[2]);
        if (node->type == CHILD_NODE && run_graph(node->what, stream)) return 1;
        if (node->type != KERNEL_NODE) continue;
        if (is_own(node->what) ? run_own(node->what, node->arguments) : launch("cuGraphLaunch", node->what, stream)) return 1;
    }
    return 0;
}
Result cuGraphLaunch(Handle graph, Handle stream) { return TOLD("cuGraphLaunch", run_graph(graph, stream), (uintptr_t)graph, (uintptr_t)stream); }
Result cuGraphExecDestroy(Handle graph) { return free(graph), 0; }

// Linkers: that of the driver, and nvJitLink, which is a library of its own. Their machine code is a head of ELF with a sum of what went in.

struct Code {
    unsigned char head[64];  // its sections would begin where it ends
    uint64_t sum;
};
static void begin_code(struct Code *code, uint64_t bytes) {
    memset(code, 0, sizeof code->head);
    memcpy(code->head, "\x7f" "ELF\2", 5);
    memcpy(code->head + 40, &bytes, sizeof bytes);
}
static Result create(Handle *made) {
    struct Code *code = *made = calloc(1, sizeof *code);
    return begin_code(code, sizeof *code), 0;
}
static Result add(Handle linker, const void *data, size_t bytes) {
    struct Code *code = linker;
    for (size_t i = 0; i < bytes; i++) code->sum = code->sum * 31 + ((const unsigned char *)data)[i];
    return bytes == 0;
}
static Result add_file(Handle linker, const char *path) {
    static char data[1 << 20];
    FILE *file = fopen(path, "rb");
    if (!file) return 301;
    size_t bytes = fread(data, 1, sizeof data, file);
    return fclose(file), add(linker, data, bytes);
}
Result cuLinkCreate_v2(unsigned count, int *options, void **values, Handle *made) { return count || options || values ? 1 : create(made); }
Result cuLinkAddData_v2(Handle linker, int type, void *data, size_t bytes, const char *name, unsigned count, int *options, void **values) {
    return type < 1 || strcmp(name, "part") || count || options || values ? 1 : add(linker, data, bytes);
}
Result cuLinkAddFile_v2(Handle linker, int type, const char *path, unsigned count, int *options, void **values) {
    return type < 1 || count || options || values ? 1 : add_file(linker, path);
}
Result cuLinkComplete(Handle linker, void **code, size_t *bytes) { return *code = linker, *bytes = sizeof(struct Code), 0; }
Result cuLinkDestroy(Handle linker) { return note("cuLinkDestroy", ""), memset(linker, 0, sizeof(struct Code)), 0; }

Result __nvJitLinkCreate_13_0(Handle *made, unsigned count, const char **options) { return count || options ? 1 : create(made); }
Result __nvJitLinkAddData_13_0(Handle linker, int type, const void *data, size_t bytes, const char *name) {
    return type < 1 || strcmp(name, "part") ? 1 : add(linker, data, bytes);
}
Result __nvJitLinkAddFile_13_0(Handle linker, int type, const char *path) { return type < 1 ? 1 : add_file(linker, path); }
Result __nvJitLinkGetLinkedCubin_13_0(Handle linker, void *code) { return memcpy(code, linker, sizeof(struct Code)), 0; }
Result __nvJitLinkDestroy_13_0(Handle *linker) { return memset(*linker, 0, sizeof(struct Code)), *linker = NULL, 0; }

// NVRTC, which is a library of its own: a program is the file of its PTX, and its machine code is a head of ELF.

Result nvrtcCreateProgram(Handle *made, const char *source) { return *made = (Handle)source, 0; }
Result nvrtcCompileProgram(Handle program, int count, const char *const *options) {
    const char *refused = getenv("FAKE_NVRTC_REFUSES");
    int fails = program == NULL;
    for (int i = 0; i < count; i++) {
        note("option", options[i]);
        fails = fails || (refused && strcmp(options[i], refused) == 0);
    }
    return fails;
}
Result nvrtcGetCUBINSize(Handle program, size_t *bytes) { return *bytes = 64, program == NULL; }
Result nvrtcGetCUBIN(Handle program, char *code) { return begin_code((struct Code *)code, 64), program == NULL; }
Result nvrtcGetPTX(Handle program, char *code) {
    FILE *file = fopen(program, "rb");
    if (!file) return 1;
    size_t bytes = fread(code, 1, 1 << 16, file);
    code[bytes] = 0;
    return fclose(file);
}
Result nvrtcGetPTXSize(Handle program, size_t *bytes) {
    char text[(1 << 16) + 1];
    Result result = nvrtcGetPTX(program, text);
    return *bytes = strlen(text) + 1, result;
}

#define FORMS(X) \
    X(cuModuleLoadData) X(cuModuleLoadDataEx) X(cuModuleLoadFatBinary) X(cuModuleLoad) X(cuModuleGetFunction) X(cuModuleUnload) \
    X(cuLibraryLoadData) X(cuLibraryLoadFromFile) X(cuLibraryGetKernel) X(cuLibraryGetModule) X(cuKernelGetFunction) X(cuLibraryUnload) \
    X(cuLaunchKernel) X(cuLaunchKernelEx) X(cuLaunchCooperativeKernel) X(cuLaunchCooperativeKernelMultiDevice) \
    X(cuCtxSetCurrent) X(cuCtxEnablePeerAccess) X(cuDevicePrimaryCtxRetain) X(cuInit) X(cuLinkComplete) X(cuLinkDestroy) \
    X(cuGraphCreate) X(fakeGraphAddNode) X(cuGraphAddNode) X(cuGraphLaunch) X(cuGraphExecDestroy) X(cuGraphGetNodes) X(cuFuncGetName) X(cuIpcGetMemHandle) \
    X(cuStreamCreate) X(cuEventCreate) X(cuEventRecord) X(cuStreamWaitEvent) X(cuCtxSynchronize) X(cuStreamSynchronize) X(cuStreamEndCapture)
#define FORM(name) {#name, (void *)name},
#define RENAMED(X) \
    X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2) X(cuGraphInstantiate, cuGraphInstantiateWithFlags) X(cuModuleGetGlobal, cuModuleGetGlobal_v2) \
    X(cuGraphAddKernelNode, cuGraphAddKernelNode_v2) X(cuGraphKernelNodeSetParams, cuGraphKernelNodeSetParams_v2) \
    X(cuGraphKernelNodeGetParams, cuGraphKernelNodeGetParams_v2) \
    X(cuGraphNodeGetType, cuGraphNodeGetType) X(cuLinkCreate, cuLinkCreate_v2) X(cuStreamBeginCapture, cuStreamBeginCapture_v2) \
    X(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2) X(cuCtxCreate, cuCtxCreate_v2) X(fakeGetFunction, cuModuleGetFunction) \
    X(cuLinkAddData, cuLinkAddData_v2) X(cuLinkAddFile, cuLinkAddFile_v2)
#define AS(name, function) {#name, (void *)function},
static const struct { const char *name; void *function; } forms[] = {FORMS(FORM) RENAMED(AS)};

Result cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status) {
    if (version < 12000) return 1;
    if (status) *status = 0;
    *found = NULL;
    if (flags == 2 && !strcmp(name, "cuLaunchKernel")) return *found = (void *)cuLaunchKernel_ptsz, 0;
    if (!strcmp(name, "cuGetProcAddress")) return *found = (void *)cuGetProcAddress_v2, 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(forms[i].name, name)) *found = forms[i].function;
    return *found ? 0 : 500;
}

// As CUDA 11.3 has it, without a status.
Result cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {
    return version < 11030 || version >= 12000 ? 1 : cuGetProcAddress_v2(name, found, 12000, flags, NULL);
}
