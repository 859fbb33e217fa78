// A program that loads an image and launches the kernel `sums` from it, in the way that its words say:
//     program HOW LOADER IMAGE [LAUNCHER [STEP...]]       (a step that begins with / is a file to load, too)
// LOADER: a call that loads IMAGE, an option (-arch=sm_90a) with which NVRTC compiles it, a call that gives it to a linker,
// a library that compiles it, or ptxas: a program that does.
// IMAGE: a file. Several, with commas between them, are what a linker is given, or fat binaries that -rdc=true has left to the driver to link.
// HOW it finds the driver: linked, dlsym, asked (cuGetProcAddress, as the CUDA runtime), threads (asked, by a default stream per thread),
// older (asked as in CUDA 11.3).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int Result;
typedef void *Handle;

static const char *how;
static Result (*ask)(const char *, void **, int, uint64_t, int *);

static void *find(const char *name) {
    static void *driver;
    if (!strcmp(how, "linked")) return dlsym(RTLD_DEFAULT, name);
    if (!driver) driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) exit(3);
    if (!strcmp(how, "dlsym")) return dlsym(driver, name);
    if (!strcmp(how, "older")) {
        Result (*older)(const char *, void **, int, uint64_t) = dlsym(driver, "cuGetProcAddress");
        void *older_found;
        return older(name, &older_found, 11030, 0) ? NULL : older_found;
    }
    if (!ask) {
        Result (*first)(const char *, void **, int, uint64_t, int *) = dlsym(driver, "cuGetProcAddress_v2");
        if (first("cuGetProcAddress", (void **)&ask, 12000, 0, NULL)) exit(4);
    }
    void *found;
    return ask(name, &found, 12000, strcmp(how, "threads") ? 0 : 2, NULL) ? NULL : found;
}

#ifdef LINKED
Result cuInit(unsigned);
Result cuModuleLoadData(Handle *, const void *);
Result cuModuleGetFunction(Handle *, Handle, const char *);
Result cuLaunchKernel(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **);
#endif

static void check(Result result, const char *what) {
    if (result == 0) return;
    printf("%s: error %d\n", what, result);
    exit(5);
}

static Handle compile(const char *option, const char *path) {
    Handle made = NULL, program;
    size_t bytes;
    check(((Result(*)())find("nvrtcCreateProgram"))(&program, path), "create");
    check(((Result(*)())find("nvrtcCompileProgram"))(program, 1, &option), "compile");
    check(((Result(*)())find("nvrtcGetCUBINSize"))(program, &bytes), "size");
    char *code = calloc(1, bytes);
    check(((Result(*)())find("nvrtcGetCUBIN"))(program, code), "cubin");
    check(((Result(*)())find("cuModuleLoadData"))(&made, code), "load");
    return made;
}

static char *content(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    if (!file) exit(6);
    fseek(file, 0, SEEK_END);
    *bytes = ftell(file);
    char *image = calloc(1, *bytes + 1);
    rewind(file);
    if (fread(image, 1, *bytes, file) != *bytes) exit(6);
    fclose(file);
    return image;
}

// The files that the words name; the last one is NULL.
static char **split(const char *paths) {
    char **found = calloc(8, sizeof *found), *rest = strdup(paths);
    for (int i = 0; i < 7 && rest; i++) found[i] = strsep(&rest, ",");
    return found;
}

// Give the files to a linker, and load a copy of the machine code that it has made.
static Handle linked(const char *adder, const char *paths) {
    Handle linker, made = NULL;
    char **files = split(paths), *code = calloc(1, 4096);
    int library = *adder == '_', type = library ? 10 : 2;
    size_t bytes = 0;
    if (library) check(((Result(*)())find("__nvJitLinkCreate_13_0"))(&linker, 0, NULL), "create");
    else check(((Result(*)())find(strstr(adder, "_v2") ? "cuLinkCreate_v2" : "cuLinkCreate"))(0, NULL, NULL, &linker), "create");
    for (char **file = files; *file; file++) {
        Result (*add)() = find(adder);
        char *data = content(*file, &bytes);
        if (strstr(adder, "File")) check(add(linker, type, *file, 0, NULL, NULL), adder);
        else check(add(linker, type, data, bytes, "part", 0, NULL, NULL), adder);
        free(data);
    }
    void *own;
    if (library) check(((Result(*)())find("__nvJitLinkGetLinkedCubin_13_0"))(linker, code), "get");
    else check(((Result(*)())find("cuLinkComplete"))(linker, &own, &bytes), "complete"), memcpy(code, own, bytes);
    if (library) check(((Result(*)())find("__nvJitLinkDestroy_13_0"))(&linker), "destroy");
    else check(((Result(*)())find("cuLinkDestroy"))(linker), "destroy");
    check(((Result(*)())find("cuModuleLoadData"))(&made, code), "load");
    return made;
}

// A library that the program opens for itself compiles PTX with a compiler that is part of it.
static Handle plugged(const char *library, const char *path) {
    Handle made = NULL;
    size_t bytes;
    void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!opened) exit(11);
    char *code = ((char *(*)())dlsym(opened, "compiled"))(content(path, &bytes));
    check(code ? ((Result(*)())find("cuModuleLoadData"))(&made, code) : 1, "plugin");
    return made;
}

// A program of that name, in the folder that the variable names, compiles PTX to a file.
static Handle assembled(const char *path) {
    Handle made = NULL;
    char command[4096], code[4096];
    snprintf(command, sizeof command, "cd %s && ./ptxas -arch sm_90a %s %s", getenv("PTXAS_IN"), path, getenv("PTXAS_OUTPUT"));
    if (system(command)) exit(13);
    snprintf(code, sizeof code, "%s/code", getenv("PTXAS_IN"));
    check(((Result(*)())find("cuModuleLoad"))(&made, code), "load");
    return made;
}

static Handle load(const char *loader, const char *path) {
    Handle made = NULL;
    size_t bytes;
    if (!strcmp(loader, "ptxas")) return assembled(path);
    if (*loader == '-') return compile(loader, path);
    if (strstr(loader, "LinkAdd")) return linked(loader, path);
    if (*loader == '/') return plugged(loader, path);
    char **files = split(path), *image = content(files[0], &bytes);
    const void *parts[8] = {NULL};
    for (int i = 1; files[i]; i++) parts[i - 1] = content(files[i], &bytes);
    struct { uint32_t magic, version; const void *data, **rest; } wrapper = {0x466243b1, parts[0] ? 2 : 1, image, parts};
    const void *given = !strncmp(image, "\x50\xed\x55\xba", 4) ? (void *)&wrapper : image;  // as nvcc hands fat binaries over
    Result (*call)() = find(loader);
    if (!call) exit(7);
    if (strstr(loader, "FromFile")) check(call(&made, path, NULL, NULL, 0, NULL, NULL, 0), loader);
    else if (strstr(loader, "cuLibrary")) check(call(&made, given, NULL, NULL, 0, NULL, NULL, 0), loader);
    else if (!strcmp(loader, "cuModuleLoad")) check(call(&made, path), loader);
    else check(call(&made, given, 0, NULL, NULL), loader);
    return made;
}

static Handle kernel_of(const char *loader, Handle module) {
    Handle found = NULL;
    Result (*get)() = find(strstr(loader, "cuLibrary") ? "cuLibraryGetKernel" : "cuModuleGetFunction");
    check(get(&found, module, "sums"), "look-up");
    return found;
}

struct Memory { uint64_t words[8]; };

// Memory of another process at an address that the word has, or this one's that another one may open.
static void share(const char *word) {
    struct Memory memory = {{strtoull(word + 1, NULL, 16)}};
    uint64_t found;
    if (*word == 'o') {
        Result (*opens)(uint64_t *, struct Memory, unsigned) = find("cuIpcOpenMemHandle");
        check(opens(&found, memory, 1) || found != memory.words[0], "open");
    } else
        check(((Result(*)())find("cuIpcGetMemHandle"))(&memory, memory.words[0] + 8), "export");
}

static Handle stream;
static uintptr_t attributes;  // their number
static uint32_t attribute_number = 4;  // of clusters; 6: a launch that may start while the one before it runs; 7: it records an event
static uint64_t buffers[] = {0x10000000, 0x20000000};  // the kernel's parameters
static int packed;  // whether they are given as a buffer

static void launch(const char *launcher, Handle kernel) {
    uint32_t attribute[18] = {attribute_number, 0, attribute_number == 4 ? 2 : 1, 1, 1};  // its number, and a value: the size of clusters
    void *none[] = {NULL, NULL, NULL, NULL, stream, attribute, (void *)attributes};  // a configuration
    static const uint32_t sizes[] = {4, 1, 1, 256, 1, 1, 0};
    Result (*call)() = find(launcher);
    if (!call) exit(8);
    void *given[] = {&buffers[0], &buffers[1]};
    size_t size = sizeof buffers;
    void *extra[] = {(void *)1, buffers, (void *)2, &size, NULL};
    void *list[14] = {kernel, [6] = given, [7] = kernel, [13] = given};  // two of CUDA_LAUNCH_PARAMS
    memcpy(&list[1], sizes, sizeof sizes), memcpy(&list[8], sizes, sizeof sizes), memcpy(none, sizes, sizeof sizes);
    if (strstr(launcher, "MultiDevice")) check(call(list, 2, 0), launcher);
    else if (!strcmp(launcher, "cuLaunchKernelEx")) check(call(none, kernel, given, NULL), launcher);
    else check(call(kernel, 4, 1, 1, 256, 1, 1, 0, stream, packed ? NULL : given, packed ? extra : NULL), launcher);
}

// A graph with the kernel and with a graph that has it too, run twice; `conditional`: also with a node whose kernels cannot be named.
static void run_graph(Handle kernel, int conditional) {
    Handle outer, inner, ready;
    check(((Result(*)())find("cuGraphCreate"))(&outer, 0) || ((Result(*)())find("cuGraphCreate"))(&inner, 0), "graphs");
    Result (*add)() = find("fakeGraphAddNode"), (*run)() = find("cuGraphLaunch");
    struct { int type, unused[3]; Handle function; uint32_t sizes[7]; void *rest[27]; } node = {0, {0}, kernel, {4, 1, 1, 256, 1, 1, 0}, {NULL}};
    Handle made;
    check(((Result(*)())find("cuGraphAddKernelNode"))(&made, outer, NULL, (size_t)0, &node.function), "node");
    check(((Result(*)())find("cuGraphAddNode"))(&made, inner, NULL, (size_t)0, &node), "node");
    check(add(outer, 4, inner) || (conditional && add(outer, 13, NULL)), "nodes");
    check(((Result(*)())find("cuGraphInstantiate"))(&ready, outer, 0), "instantiate");
    check(run(ready, NULL) || run(ready, NULL) || ((Result(*)())find("cuGraphExecDestroy"))(ready), "graph");
}

// Streams, an edge between them, and a graph that is captured: one step of a program. Returns whether it is one.
static int stream_step(const char *step) {
    static Handle streams[2], graph, ready, event;
    int second = !strcmp(step, "stream2");
    if (second || !strcmp(step, "stream1")) {
        if (!streams[second]) check(((Result(*)())find("cuStreamCreate"))(&streams[second], 1), "stream");
        stream = streams[second];
    } else if (!strcmp(step, "edge")) {
        check(((Result(*)())find("cuEventCreate"))(&event, 2) || ((Result(*)())find("cuEventRecord"))(event, streams[0]), "event");
        if (!streams[1]) check(((Result(*)())find("cuStreamCreate"))(&streams[1], 1), "stream");
        check(((Result(*)())find("cuStreamWaitEvent"))(streams[1], event, 0), "edge");
    } else if (!strcmp(step, "synchronize")) {
        check(((Result(*)())find("cuCtxSynchronize"))(), "synchronize");
    } else if (!strcmp(step, "begin")) {
        check(((Result(*)())find("cuStreamBeginCapture"))(stream, 0), "begin");
    } else if (!strcmp(step, "end")) {
        check(((Result(*)())find("cuStreamEndCapture"))(stream, &graph) || ((Result(*)())find("cuGraphInstantiate"))(&ready, graph, 0), "end");
    } else if (!strcmp(step, "larger")) {  // what was captured is instantiated once more, with a larger grid
        Handle nodes[16], about[9];
        size_t there = 16;
        const char *name;
        check(((Result(*)())find("cuGraphGetNodes"))(graph, nodes, &there), "nodes");
        for (size_t i = 0; i < there; i++) {
            int type;
            check(((Result(*)())find("cuGraphNodeGetType"))(nodes[i], &type), "type");
            if (type) continue;
            check(((Result(*)())find("cuGraphKernelNodeGetParams"))(nodes[i], about) || ((Result(*)())find("cuFuncGetName"))(&name, about[0]), "node");
            if (strcmp(name, "sums")) continue;
            memcpy(&about[1], (const uint32_t[]){4000, 1, 1, 256, 1, 1, 0}, 28);
            check(((Result(*)())find("cuGraphKernelNodeSetParams"))(nodes[i], about), "larger");
        }
        check(((Result(*)())find("cuGraphInstantiate"))(&ready, graph, 0), "instantiate");
    } else if (!strcmp(step, "run")) {
        check(((Result(*)())find("cuGraphLaunch"))(ready, stream), "run");
    } else {
        return 0;
    }
    return 1;
}

// Close all files, as daemons do, and open sockets in their place, to which nobody may write.
static int mine[64];

static void close_files(void) {
    for (int fd = 3; fd < 4096; fd++) close(fd);
    for (int i = 0; i < 64; i += 2)
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, &mine[i])) exit(14);
}

static void check_files(void) {
    char byte;
    for (int i = 0; i < 64; i++)
        if (recv(mine[i], &byte, 1, MSG_DONTWAIT) != -1 || errno != EAGAIN) exit(15);
}

static void *leave(void *unused) { return exit(22), unused; }

static char **words;

static void *thread(void *unused) {
    Handle kernel = kernel_of(words[2], load(words[2], words[3]));
    for (int i = 0; i < 100; i++) launch("cuLaunchKernel", kernel);
    return unused;
}

static Handle known;  // the kernel of all threads

static void *launch_known(void *waits) {
    for (int i = 0; i < 200; i++) {
        launch("cuLaunchKernel", known);
        if (waits && i % 20 == 0) stream_step("synchronize");
    }
    return NULL;
}

static void run_threads(void *(*what)(void *)) {
    pthread_t threads[4];
    for (int t = 0; t < 4; t++) pthread_create(&threads[t], NULL, what, t ? NULL : threads);
    for (int t = 0; t < 4; t++) pthread_join(threads[t], NULL);
}

int main(int count, char **given) {
    words = given;
    how = given[1];
    if (getenv("FAKE_OVERLAPS")) buffers[1] = buffers[0] + 1024;
#ifdef LINKED
    if (!strcmp(how, "direct")) {
        how = "linked";
        Handle module, kernel;
        char text[1 << 16] = {0};
        FILE *file = fopen(given[3], "rb");
        if (!file || !fread(text, 1, sizeof text - 1, file)) return 9;
        void *given[] = {&buffers[0], &buffers[1]};
        check(cuInit(0) || cuModuleLoadData(&module, text) || cuModuleGetFunction(&kernel, module, "sums") ||
              cuLaunchKernel(kernel, 4, 1, 1, 256, 1, 1, 0, NULL, given, NULL), "direct");
        return 0;
    }
#endif
    if (getenv("FAKE_EARLY_STREAMS")) stream_step("stream1"), stream_step("stream2"), stream = NULL;
    if (getenv("FAKE_SHARES")) share(getenv("FAKE_SHARES"));
    if (getenv("FAKE_EARLY_CAPTURE")) stream_step("stream1"), stream_step("begin");
    Handle module = load(given[2], given[3]), kernel = kernel_of(given[2], module);
    const char *launcher = count > 4 ? given[4] : "cuLaunchKernel";
    Handle made;
    if (!getenv("FAKE_EARLY_CAPTURE")) launch(launcher, kernel);
    for (int i = 5; i < count; i++) {
        if (*given[i] == '/') load(given[2], given[i]);
        if (stream_step(given[i])) continue;
        if (!strcmp(given[i], "capture")) stream = (Handle)0x40;  // the made-up driver's
        if (!strcmp(given[i], "attribute")) attributes = 1;
        if (!strcmp(given[i], "dependent")) attributes = 1, attribute_number = 6;
        if (!strcmp(given[i], "event7")) attributes = 1, attribute_number = 7;
        if (!strcmp(given[i], "event12")) attributes = 1, attribute_number = 12;
        if (!strncmp(given[i], "shares:", 7)) share(given[i] + 7);
        if (!strcmp(given[i], "overlap")) buffers[1] = buffers[0] + 1024;
        if (!strcmp(given[i], "packed")) packed = 1;
        if (!strcmp(given[i], "context")) check(((Result(*)())find("cuCtxCreate"))(&made, 0, 0), "context");
        if (!strncmp(given[i], "device", 6)) {
            check(((Result(*)())find("cuDevicePrimaryCtxRetain"))(&made, atoi(given[i] + 6)), "device");
            check(((Result(*)())find("cuCtxSetCurrent"))(made), "device");
        }
        if (!strcmp(given[i], "own")) buffers[0] ^= 1 << 27, buffers[1] ^= 1 << 27;  // memory of the other device
        if (!strcmp(given[i], "reload")) module = load(given[2], given[3]), kernel = kernel_of(given[2], module);
        if (!strcmp(given[i], "function")) check(((Result(*)())find("cuKernelGetFunction"))(&kernel, kernel), "function");
        if (!strcmp(given[i], "unseen")) check(((Result(*)())find("fakeGetFunction"))(&kernel, module, "sums"), "function");
        if (!strcmp(given[i], "module")) {
            Handle inner;
            check(((Result(*)())find("cuLibraryGetModule"))(&inner, module) || ((Result(*)())find("cuModuleGetFunction"))(&kernel, inner, "sums"), "module");
        }
        if (!strcmp(given[i], "graph") || !strcmp(given[i], "conditional")) run_graph(kernel, *given[i] == 'c');
        if (!strcmp(given[i], "table")) {  // its first byte is the step behind
            char *table;
            size_t bytes;
            check(((Result(*)())find("cuModuleGetGlobal"))(&table, &bytes, module, "table"), "table");
            strcpy(table, given[++i]);
        }
        if (!strcmp(given[i], "again")) launch(launcher, kernel);
        if (!strcmp(given[i], "unload")) check(((Result(*)())find("cuModuleUnload"))(module), "unload");
        if (!strcmp(given[i], "reset")) check(((Result(*)())find("cuDevicePrimaryCtxReset"))(0), "reset");
        if (!strcmp(given[i], "crash")) raise(SIGSEGV);
        if (!strcmp(given[i], "kill")) raise(SIGKILL);
        if (!strcmp(given[i], "abort")) abort();
        if (!strcmp(given[i], "_exit")) _exit(21);
        if (!strcmp(given[i], "close")) close_files();
        if (!strcmp(given[i], "mine")) check_files();
        if (!strcmp(given[i], "exit")) {  // in another thread
            pthread_t other;
            if (pthread_create(&other, NULL, leave, NULL) == 0) pthread_join(other, NULL);
        }
        if (!strcmp(given[i], "vfork")) {
            pid_t child = vfork();
            if (child == 0) execl("/bin/true", "true", NULL), _exit(23);
            int status;
            if (waitpid(child, &status, 0) != child || status) return 16;
            child = vfork();
            if (child == 0) _exit(0);
            if (waitpid(child, &status, 0) != child || status) return 17;
        }
        if (!strcmp(given[i], "wait")) puts("ready"), fflush(stdout), getchar();
        if (!strcmp(given[i], "fork")) {
            pid_t child = fork();
            if (child == 0) {
                launch(launcher, kernel_of(given[2], load(given[2], given[3])));
                exit(0);
            }
            int status;
            waitpid(child, &status, 0);
            if (status) return 10;
        }
        if (!strcmp(given[i], "threads")) run_threads(thread);
        if (!strcmp(given[i], "together")) known = kernel, run_threads(launch_known);
    }
    return 12;
}
