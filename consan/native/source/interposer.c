// consan's library inside a native program: takes kernels at the CUDA driver and forwards them to the `consan run` process.
//
// It decides nothing. What the program hands to the driver (an image, a name, a launch) goes to the server as a request, and the
// server's answer (another image) goes to the driver instead. A second connection brings the server's orders: call this function of
// the driver with these arguments. So the server allocates and reads the shadow memory, which lives in this process's context.
//
// LD_PRELOAD and not CUDA_INJECTION64_PATH: the driver calls an injected library once, but gives it no documented means to replace an
// image. A preloaded library stands before the driver for programs that link it, that look functions up with dlsym, and that ask
// cuGetProcAddress, as the CUDA runtime does. Not seen: programs without a dynamic linker, and setuid programs.
//
// Images that were exchanged are never freed: the driver may read them again as long as the module lives.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

typedef int Result;  // CUresult: 0 is success
typedef void *Handle;

#define EXPORTED __attribute__((visibility("default")))
#define NOT_FOUND 500
#define PER_THREAD 2        // cuGetProcAddress: flag for functions with a default stream for each thread
#define LONGEST (1ull << 31)  // bytes of a message; a longer one is an error
#ifndef SILENCE_SECONDS
#define SILENCE_SECONDS 60  // without a word from the server, which says WAIT while it works: it is taken to be gone
#endif
#define FINISH_SECONDS 20   // how long the end of the process waits for another thread's request

// -- functions of the driver, of NVRTC, nvJitLink and nvPTXCompiler that are replaced ---------------------------------------------------

#define ENTRIES(X) \
    X(cuGetProcAddress) X(cuGetProcAddress_v2) \
    X(cuModuleLoad) X(cuModuleLoadData) X(cuModuleLoadDataEx) X(cuModuleLoadFatBinary) X(cuModuleUnload) \
    X(cuLibraryLoadData) X(cuLibraryLoadFromFile) X(cuLibraryUnload) \
    X(cuModuleGetFunction) X(cuModuleEnumerateFunctions) \
    X(cuLibraryGetKernel) X(cuLibraryEnumerateKernels) X(cuLibraryGetModule) X(cuKernelGetFunction) \
    X(cuLaunchKernel) X(cuLaunchKernel_ptsz) X(cuLaunchKernelEx) X(cuLaunchKernelEx_ptsz) \
    X(cuLaunchCooperativeKernel) X(cuLaunchCooperativeKernel_ptsz) X(cuLaunchCooperativeKernelMultiDevice) \
    X(cuGraphInstantiate) X(cuGraphInstantiate_v2) X(cuGraphInstantiateWithFlags) \
    X(cuGraphInstantiateWithParams) X(cuGraphInstantiateWithParams_ptsz) \
    X(cuGraphLaunch) X(cuGraphLaunch_ptsz) X(cuGraphExecDestroy) \
    X(cuGraphAddKernelNode) X(cuGraphAddKernelNode_v2) X(cuGraphAddNode) X(cuGraphAddNode_v2) \
    X(cuGraphKernelNodeSetParams) X(cuGraphKernelNodeSetParams_v2) X(cuGraphNodeSetParams) \
    X(cuGraphExecKernelNodeSetParams) X(cuGraphExecKernelNodeSetParams_v2) X(cuGraphExecNodeSetParams) \
    X(cuDevicePrimaryCtxReset) X(cuDevicePrimaryCtxReset_v2) X(cuDevicePrimaryCtxRelease) X(cuDevicePrimaryCtxRelease_v2) \
    X(cuCtxDestroy) X(cuCtxDestroy_v2) \
    X(cuLinkAddData) X(cuLinkAddData_v2) X(cuLinkAddFile) X(cuLinkAddFile_v2) X(cuLinkComplete) X(cuLinkDestroy) \
    X(nvrtcCompileProgram) X(nvrtcGetCUBINSize) X(nvrtcGetCUBIN) \
    X(nvPTXCompilerCreate) X(nvPTXCompilerGetCompiledProgram) X(nvPTXCompilerDestroy) \
    X(nvJitLinkAddData) X(nvJitLinkAddFile) X(nvJitLinkGetLinkedCubin) X(nvJitLinkDestroy) JIT_LINK_VERSIONS(JIT_LINK, X)

// nvJitLink's header gives each function the name of its version.
#define JIT_LINK_VERSIONS(Y, X) \
    Y(X, 12_0) Y(X, 12_1) Y(X, 12_2) Y(X, 12_3) Y(X, 12_4) Y(X, 12_5) Y(X, 12_6) Y(X, 12_8) Y(X, 12_9) \
    Y(X, 13_0) Y(X, 13_1) Y(X, 13_2) Y(X, 13_3) Y(X, 13_4) Y(X, 13_5)
#define JIT_LINK(X, version) \
    X(__nvJitLinkAddData_##version) X(__nvJitLinkAddFile_##version) X(__nvJitLinkGetLinkedCubin_##version) X(__nvJitLinkDestroy_##version)

#define AT(name) AT_##name,
enum Entry { ENTRIES(AT) ENTRY_COUNT };
#undef AT

#define DECLARED(name) EXPORTED Result name();
ENTRIES(DECLARED)
#undef DECLARED

#define NAMED(name) #name,
static const char *const names[] = {ENTRIES(NAMED)};
#undef NAMED
#define REPLACED(name) (void *)name,
static void *const replacements[] = {ENTRIES(REPLACED)};
#undef REPLACED

static _Atomic(void *) originals[ENTRY_COUNT];

typedef void *(*Finder)(void *, const char *);

static Finder finder(void) {
    static _Atomic(Finder) found;
    Finder find = atomic_load(&found);
    const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    for (size_t i = 0; find == NULL && i < sizeof versions / sizeof *versions; i++) find = (Finder)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (find == NULL) {
        fputs("consan: error: this C library's dlsym is not known\n", stderr);
        abort();
    }
    atomic_store(&found, find);
    return find;
}

static void *of_driver(const char *name) {
    void *driver = strncmp(name, "cu", 2) == 0 ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) : NULL;
    return finder()(driver ? driver : RTLD_NEXT, name);
}

static void *original(enum Entry at) {
    void *found = atomic_load(&originals[at]);
    if (found == NULL) atomic_store(&originals[at], found = of_driver(names[at]));
    return found;
}

#define CALLED(function, ...) (function ? ((Result(*)())function)(__VA_ARGS__) : NOT_FOUND)
#define ORIGINAL(name, ...) CALLED(original(AT_##name), __VA_ARGS__)

// The function that a library's own call would reach: in itself (a compiler that is linked statically), or in what it is linked with. A
// library that the program has opened for itself (RTLD_LOCAL) is not where RTLD_NEXT looks, and a process may have several versions.
static void *callers(enum Entry at, void *caller) {
    Dl_info about;
    void *library = dladdr(caller, &about) ? dlopen(about.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *found = library ? finder()(library, names[at]) : NULL;
    if (library) dlclose(library);
    return found && found != replacements[at] ? found : original(at);
}

#define CALLERS(name) void *own = callers(AT_##name, __builtin_return_address(0))

static int entry_of(const char *name) {
    if (name == NULL || (strncmp(name, "cu", 2) != 0 && strncmp(name, "nv", 2) != 0 && strncmp(name, "__nv", 4) != 0)) return -1;
    for (int at = 0; at < ENTRY_COUNT; at++)
        if (strcmp(name, names[at]) == 0) return at;
    return -1;
}

static const char *socket_path(void) { return getenv("_CONSAN_SOCKET"); }

// What a look-up gives to the program in place of what it found.
static void *replaced(int at, void *found) {
    if (at < 0 || found == NULL || found == replacements[at] || socket_path() == NULL) return found;
    atomic_store(&originals[at], found);
    return replacements[at];
}

EXPORTED void *dlsym(void *handle, const char *name) {
    int at = entry_of(name);
    // A tail call: RTLD_NEXT means the library that the return address lies in.
    if (at < 0) return finder()(handle, name);
    return replaced(at, finder()(handle, name));
}

// The entry that a name means to cuGetProcAddress. Versions are those in which the newer form came.
static int entry_asked(const char *name, int version, uint64_t flags) {
    char full[64];
    static const struct { const char *name; int since; } newer[] = {
        {"cuGetProcAddress", 12000}, {"cuCtxDestroy", 4000}, {"cuDevicePrimaryCtxReset", 11000}, {"cuDevicePrimaryCtxRelease", 11000},
        {"cuLinkAddData", 6050}, {"cuLinkAddFile", 6050}, {"cuGraphAddKernelNode", 12000}, {"cuGraphKernelNodeSetParams", 12000},
        {"cuGraphExecKernelNodeSetParams", 12000}, {"cuGraphAddNode", 12030}};
    const char *suffix = "";
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
        if (strcmp(name, newer[i].name) == 0 && version >= newer[i].since) suffix = "_v2";
    if (snprintf(full, sizeof full, "%s_ptsz", name) < (int)sizeof full && (flags & PER_THREAD) && entry_of(full) >= 0) return entry_of(full);
    if (snprintf(full, sizeof full, "%s%s", name, suffix) >= (int)sizeof full) return -1;
    return entry_of(full);
}

EXPORTED Result cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {
    Result result = ORIGINAL(cuGetProcAddress, name, found, version, flags);
    if (result == 0 && name && found) *found = replaced(entry_asked(name, version, flags), *found);
    return result;
}

EXPORTED Result cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, void *status) {
    Result result = ORIGINAL(cuGetProcAddress_v2, name, found, version, flags, status);
    if (result == 0 && name && found) *found = replaced(entry_asked(name, version, flags), *found);
    return result;
}

// -- messages: consan/native/wire.py has the other side ---------------------------------------------------------------------------

#define MAGIC 0x6e61736eu

enum Kind { HELLO = 1, ORDERS, IMAGE, LOADED, REFUSED, UNLOADED, FOUND, COLLECT, INPUT, MADE, LAUNCH, LAUNCHED, ANSWER, CALL, MAP, TEXT, WAIT,
            PARAMETERS, FOLLOW, FOLLOWING, CALLED };

struct Head {
    uint32_t magic, kind;
    uint64_t a, b, length;
};

struct Call {  // behind the head of an order to call a function
    char name[64];
    uint64_t arguments[12];
    uint64_t pointers;  // bit i: argument i is an offset into the scratch memory
    uint64_t scratch, input, output;  // its bytes; the input fills it from here to the end; the output is what lies before here
};

struct Launches {  // shared with the server
    _Atomic uint64_t handle, count;
};
#define TABLE_ENTRIES (1u << 14)

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
enum { NEW, CONNECTED, GONE };
static _Atomic int state;
static int requests = -1, orders = -1;
static bool registered;  // finish, as a function for the end of the process
static pid_t owner;
static _Atomic(struct Launches *) table;

static bool transfer(int fd, void *data, uint64_t length, bool out) {
    for (char *at = data; length > 0;) {
        ssize_t done = out ? send(fd, at, length, MSG_NOSIGNAL) : recv(fd, at, length, 0);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        at += done;
        length -= (uint64_t)done;
    }
    return true;
}

static _Atomic ino_t sockets[2];  // of the two connections

// Whether a descriptor is still consan's: programs close files that they have not opened, and get the numbers for their own.
static bool own(int fd) {
    struct stat about;
    return fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode) && (about.st_ino == sockets[0] || about.st_ino == sockets[1]);
}

static bool tell(int fd, enum Kind kind, uint64_t a, uint64_t b, const void *data, uint64_t length) {
    struct Head head = {MAGIC, kind, a, b, length};
    return own(fd) && transfer(fd, &head, sizeof head, true) && transfer(fd, (void *)data, length, true);
}

// Read the first bytes of a message, and the file that may come with them.
static bool receive_head(int fd, struct Head *head, int *file) {
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {head, sizeof *head};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t done;
    do done = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    while (done < 0 && errno == EINTR);
    struct cmsghdr *with = done > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (with && with->cmsg_level == SOL_SOCKET && with->cmsg_type == SCM_RIGHTS) memcpy(file, CMSG_DATA(with), sizeof *file);
    return done > 0 && transfer(fd, (char *)head + done, sizeof *head - (size_t)done, false);
}

// Read a message. The payload is allocated, with a zero behind it.
static bool hear(int fd, struct Head *head, char **payload, int *file) {
    *payload = NULL;
    if (!own(fd) || !receive_head(fd, head, file) || head->magic != MAGIC || head->length > LONGEST) return false;
    *payload = malloc(head->length + 1);
    if (*payload == NULL || !transfer(fd, *payload, head->length, false)) {
        free(*payload);
        *payload = NULL;
        return false;
    }
    (*payload)[head->length] = 0;
    return true;
}

static bool hear_answer(int fd, struct Head *head, char **payload) {
    int file = -1;
    while (hear(fd, head, payload, &file)) {
        if (file >= 0) close(file);
        if (head->kind == ANSWER) return true;
        free(*payload);
        if (head->kind != WAIT) return false;
        file = -1;
    }
    return false;
}

static _Atomic(void *) pages;  // mapped last

static void *map(int file, uint64_t bytes) {
    struct stat about;
    bool whole = file >= 0 && fstat(file, &about) == 0 && about.st_size >= 0 && bytes <= (uint64_t)about.st_size;
    void *at = whole ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    atomic_store(&pages, at == MAP_FAILED ? NULL : at);
    return atomic_load(&pages);
}

static const char *text;  // that the driver has named last

static bool names_text(const char *function) {
    return strncmp(function, "cuGetError", strlen("cuGetError")) == 0 || strcmp(function, "cuFuncGetName") == 0;
}

static bool obey_call(int fd, const char *payload, uint64_t length) {
    struct Call call;
    if (length < sizeof call) return false;
    memcpy(&call, payload, sizeof call);
    call.name[sizeof call.name - 1] = 0;
    if (call.scratch > LONGEST || call.input > call.scratch || call.output > call.scratch) return false;
    if (length - sizeof call != call.scratch - call.input) return false;
    char *scratch = calloc(1, call.scratch + sizeof(uint64_t));
    if (scratch == NULL) return false;
    memcpy(scratch + call.input, payload + sizeof call, call.scratch - call.input);
    for (int i = 0; i < 12; i++) {
        if (!(call.pointers >> i & 1)) continue;
        if (call.arguments[i] > call.scratch) return free(scratch), false;
        call.arguments[i] += (uintptr_t)scratch;
    }
    uint64_t *with = call.arguments;
    // Integers and pointers only: more arguments than a function takes do no harm on the machines that have CUDA.
    Result (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) =
        strncmp(call.name, "cu", 2) == 0 ? of_driver(call.name) : NULL;
    Result result = function ? function(with[0], with[1], with[2], with[3], with[4], with[5], with[6], with[7], with[8], with[9], with[10],
                                        with[11])
                             : NOT_FOUND;
    if (result == 0 && call.scratch >= sizeof text && names_text(call.name)) memcpy(&text, scratch, sizeof text);
    bool told = tell(fd, ANSWER, (uint64_t)result, 0, scratch, call.output);
    free(scratch);
    return told;
}

static _Atomic(void **) launch_arguments, launch_extra;  // of the launch that has the turn: `kernelParams` and `extra`
#define MOST_PARAMETERS (1u << 16)  // bytes

// The buffer in `extra` (CU_LAUNCH_PARAM_*), and its bytes.
static const void *buffer_of(void **extra, uint64_t *length) {
    const void *buffer = NULL;
    const size_t *size = NULL;
    for (; extra && *extra; extra += 2) {
        if ((uintptr_t)*extra == 1) buffer = extra[1];
        else if ((uintptr_t)*extra == 2) size = extra[1];
        else return NULL;
    }
    *length = size ? *size : 0;
    return size && *size <= MOST_PARAMETERS ? buffer : NULL;
}

// Tell the parameters of the launch that has the turn: each of the bytes that the server names (1), a whole buffer (2), or nothing (0).
static bool obey_parameters(int fd, const char *payload, uint64_t length) {
    void **arguments = atomic_load(&launch_arguments);
    uint64_t count = length / sizeof(uint32_t), total = 0;
    const void *buffer = arguments ? NULL : buffer_of(atomic_load(&launch_extra), &total);
    if (buffer) return tell(fd, ANSWER, 2, 0, buffer, total);
    char *found = arguments && count <= MOST_PARAMETERS ? malloc(MOST_PARAMETERS) : NULL;
    bool known = found != NULL;
    total = 0;
    for (uint64_t i = 0; known && i < count; i++) {
        uint32_t size;
        memcpy(&size, payload + i * sizeof size, sizeof size);
        known = arguments[i] && size <= MOST_PARAMETERS - total;
        if (known) memcpy(found + total, arguments[i], size);
        total += known ? size : 0;
    }
    bool told = tell(fd, ANSWER, known, 0, found, known ? total : 0);
    free(found);
    return told;
}

static bool obey(int fd, const struct Head *head, const char *payload, int file) {
    if (head->kind == PARAMETERS) return obey_parameters(fd, payload, head->length);
    if (head->kind == CALL) return obey_call(fd, payload, head->length);
    if (head->kind == MAP) return tell(fd, ANSWER, (uintptr_t)map(file, head->a), 0, NULL, 0);
    return head->kind == TEXT && text && (uintptr_t)text == head->a && tell(fd, ANSWER, 0, 0, text, strnlen(text, 4096));
}

static _Thread_local bool unseen;    // this thread makes calls for consan, or a launch that the server knows
static _Thread_local bool has_turn;  // for a launch of which the server knows no stream: that is told when the turn is another's

static void *serve_orders(void *unused) {
    struct Head head;
    char *order;
    bool more = true;
    unseen = true;
    while (more) {
        int file = -1;
        more = hear(orders, &head, &order, &file) && obey(orders, &head, order, file);
        free(order);
        if (file >= 0) close(file);
    }
    return unused;
}

#define HIGH 512  // a number that programs seldom name

static int dial(int number) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = socket_path();
    struct stat about;
    if (path == NULL || strlen(path) >= sizeof address.sun_path) return -1;
    strcpy(address.sun_path, path);
    int low = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, HIGH);
    int fd = high < 0 ? low : high;
    if (high >= 0) close(low);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && fstat(fd, &about) == 0) {
        sockets[number] = about.st_ino;
        return fd;
    }
    if (fd >= 0) close(fd);
    return -1;
}

static void lose(void) {
    const char *why = own(requests) ? "the consan process has gone" : "the program has closed consan's connection";
    if (state == CONNECTED) fprintf(stderr, "consan: error: %s; kernels loaded from now on are not checked\n", why);
    state = GONE;
}

static bool strange(void) {
    fputs("consan: error: what listens at the socket is no consan process; kernels are not checked\n", stderr);
    return false;
}

static void finish(void);
static bool followed_all;  // the server was asked which calls order streams
static void follow(void);

static bool start_orders(void) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's handlers run in its own threads
    bool started = pthread_create(&thread, NULL, serve_orders, NULL) == 0 && pthread_detach(thread) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

// Connect at the first use, in the process that uses the driver. The caller has the turn.
static bool connected(void) {
    if (state != NEW) return state == CONNECTED;
    state = GONE;
    owner = getpid();
    const struct timeval silence = {.tv_sec = SILENCE_SECONDS};
    requests = dial(0);
    if (requests >= 0) setsockopt(requests, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
    orders = requests < 0 ? -1 : dial(1);
    struct Head head;
    char *nothing;
    if (orders < 0 || !tell(orders, ORDERS, (uint64_t)owner, 0, NULL, 0) || !start_orders()) return false;
    uint64_t bytes = TABLE_ENTRIES * sizeof(struct Launches);
    if (!tell(requests, HELLO, (uint64_t)owner, bytes, NULL, 0) || !hear_answer(requests, &head, &nothing)) return strange();
    free(nothing);
    if (head.a == 0 || head.a != (uintptr_t)atomic_load(&pages)) return strange();
    atomic_store(&table, (void *)(uintptr_t)head.a);
    state = CONNECTED;
    return true;
}

// After the driver's own handlers, which its initialisation has registered: so this one runs before them. A program may link machine code
// before that.
static void register_finish(enum Kind kind) {
    if (registered || kind >= COLLECT) return;
    registered = true;
    atexit(finish);
    at_quick_exit(finish);
}

// Send a request and read its answer, which is the caller's to free. False if there is no server.
static bool ask_in_turn(enum Kind kind, uint64_t a, uint64_t b, const void *data, uint64_t length, struct Head *head, char **answer) {
    if (!connected()) return false;
    if (kind == IMAGE && !followed_all) follow();  // what only links or assembles has no streams
    if (state != CONNECTED) return false;
    register_finish(kind);
    if (tell(requests, kind, a, b, data, length) && hear_answer(requests, head, answer)) return true;
    lose();
    return false;
}

static bool ask(enum Kind kind, uint64_t a, uint64_t b, const void *data, uint64_t length, struct Head *head, char **answer) {
    int before = errno;
    pthread_mutex_lock(&turn);
    bool asked = ask_in_turn(kind, a, b, data, length, head, answer);
    pthread_mutex_unlock(&turn);
    errno = before;
    return asked;
}

// -- calls that order streams -------------------------------------------------------------------------------------------------------
//
// The server chooses the library of CUPTI and the calls (consan/native/calls.py). Behind each of them it gets the parameters.

struct Followed {  // by the number of the function
    uint32_t number, bytes;    // of its parameters
    uint64_t pointer, behind;  // where the address of a value is among them (beyond them: there is none), and how far before the value
};
#define MOST_CALLBACKS 2048
#define MOST_OF_CALL 128
static struct Followed followed[MOST_CALLBACKS];

struct CallbackData {  // CUpti_CallbackData
    int site;
    const char *name;
    const void *parameters;
    const int *status;
    const char *symbol;
    void *context;
};
#define DRIVER_API 1
#define API_EXIT 1

static void report(enum Kind kind, uint64_t a, uint64_t b, const void *data, uint64_t length);

struct Seen {  // a call
    uint32_t number, bytes;
    uint64_t context;  // what is told begins here
    char values[MOST_OF_CALL];
};
static _Thread_local struct Seen waiting;  // for the turn

static void tell_call(struct Seen *seen) {
    if (seen->number) report(CALLED, seen->number, (uint64_t)syscall(SYS_gettid), &seen->context, sizeof seen->context + seen->bytes);
    seen->number = 0;
}

static void called(void *unused, int domain, uint32_t number, const struct CallbackData *data) {
    (void)unused, (void)domain;
    if (unseen || data->site != API_EXIT || (data->status && *data->status) || number >= MOST_CALLBACKS) return;
    struct Followed form = followed[number];
    struct Seen seen = {number, form.bytes, (uintptr_t)data->context, {0}};
    uint64_t at = 0, value = 0;
    if (form.bytes && data->parameters) memcpy(seen.values, data->parameters, form.bytes);
    if (form.pointer + sizeof at <= form.bytes) {
        memcpy(&at, seen.values + form.pointer, sizeof at);
        if (at) memcpy(&value, (const char *)(uintptr_t)at + form.behind, sizeof value);
        memcpy(seen.values + form.pointer, &value, sizeof value);
    }
    if (has_turn) waiting = seen;
    else tell_call(&seen);
}

// The text is the path of the library, and behind its zero the calls. Returns what CUPTI says.
static int subscribe(const char *text, uint64_t length) {
    uint64_t begin = strlen(text) + 1;
    void *library = dlopen(text, RTLD_NOW), *subscriber = NULL;
    int (*take)(void **, void *, void *) = library ? finder()(library, "cuptiSubscribe") : NULL;
    int (*enable)(uint32_t, void *, int, uint32_t) = library ? finder()(library, "cuptiEnableCallback") : NULL;
    int status = take && enable ? take(&subscriber, (void *)called, NULL) : -1;
    for (; status == 0 && begin + sizeof(struct Followed) <= length; begin += sizeof(struct Followed)) {
        struct Followed form;
        memcpy(&form, text + begin, sizeof form);
        if (form.number >= MOST_CALLBACKS || form.bytes > MOST_OF_CALL) continue;
        followed[form.number] = form;
        status = enable(1, subscriber, DRIVER_API, form.number);
    }
    return status;
}

// The caller has the turn.
static void follow(void) {
    struct Head head;
    char *text, *nothing;
    followed_all = true;
    if (!tell(requests, FOLLOW, 0, 0, NULL, 0) || !hear_answer(requests, &head, &text)) return lose();
    if (head.length) {
        unseen = true;
        int status = subscribe(text, head.length);
        unseen = false;
        if (!tell(requests, FOLLOWING, (uint64_t)(uint32_t)status, 0, NULL, 0) || !hear_answer(requests, &head, &nothing)) {
            lose();
        } else {
            free(nothing);
        }
    }
    free(text);
}

static void report(enum Kind kind, uint64_t a, uint64_t b, const void *data, uint64_t length) {
    struct Head head;
    char *answer;
    if (ask(kind, a, b, data, length, &head, &answer)) free(answer);
}

// The report is read while the driver still works: at exit, and before a context is destroyed.
static void finish(void) {
    struct Head head;
    char *answer;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FINISH_SECONDS;
    if (getpid() != owner || state != CONNECTED || pthread_mutex_timedlock(&turn, &until) != 0) return;
    if (ask_in_turn(COLLECT, 1, 0, NULL, 0, &head, &answer)) free(answer);
    pthread_mutex_unlock(&turn);
}

EXPORTED void _exit(int status) {
    finish();
    syscall(SYS_exit_group, status);
    __builtin_unreachable();
}

EXPORTED void _Exit(int status) { _exit(status); }

static void in_child(void) {  // of a fork: the connection is the parent's
    pthread_mutex_init(&turn, NULL);
    if (requests >= 0 && own(requests)) close(requests);
    if (orders >= 0 && own(orders)) close(orders);
    requests = orders = -1;
    state = NEW;
    registered = followed_all = false;
    owner = 0;
    atomic_store(&table, NULL);
}

__attribute__((constructor)) static void begin(void) {
    finder();
    pthread_atfork(NULL, NULL, in_child);
}

// -- images -----------------------------------------------------------------------------------------------------------------------

#define FATBIN_WRAPPER 0x466243b1u
#define FATBIN 0xba55ed50u
#define ELF 0x464c457fu

struct Offer {
    const void *image;  // what to hand to the driver instead; NULL: what the program gave
    uint64_t id;
};
static _Atomic bool records;  // kernels of the program are recorded: each of their launches needs a log, so the server is asked

static uint32_t magic_of(const void *image) {
    uint32_t magic;
    memcpy(&magic, image, sizeof magic);
    return magic;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

// Machine code's bytes, as far as its headers reach; the driver gets no length.
static uint64_t bytes_of_code(const void *image) {
    Elf64_Ehdr head;
    Elf64_Shdr section;
    memcpy(&head, image, sizeof head);
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shoff > LONGEST || head.e_phoff > LONGEST) return 0;
    uint64_t end = larger(head.e_shoff + (uint64_t)head.e_shnum * sizeof section, head.e_phoff + (uint64_t)head.e_phnum * head.e_phentsize);
    for (unsigned i = 0; head.e_shentsize == sizeof section && i < head.e_shnum; i++) {
        memcpy(&section, (const char *)image + head.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_NOBITS && section.sh_offset <= LONGEST && section.sh_size <= LONGEST)
            end = larger(end, section.sh_offset + section.sh_size);
    }
    return end > LONGEST ? 0 : end;
}

// Whether all that machine code's headers name lies within its bytes: the driver believes them.
static bool whole_code(const void *image, uint64_t length) {
    Elf64_Ehdr head;
    if (length < sizeof head || magic_of(image) != ELF) return false;
    memcpy(&head, image, sizeof head);
    if (head.e_shoff > length || (length - head.e_shoff) / sizeof(Elf64_Shdr) < head.e_shnum) return false;
    uint64_t bytes = bytes_of_code(image);
    return bytes > 0 && bytes <= length;
}

static uint64_t bytes_of_fatbin(const void *image) {
    uint16_t head;
    uint64_t rest;
    memcpy(&head, (const char *)image + 6, sizeof head);
    memcpy(&rest, (const char *)image + 8, sizeof rest);
    return magic_of(image) != FATBIN || rest > LONGEST ? 0 : head + rest;
}

// An image's bytes. The server may know machine code: by what it was linked or assembled from.
static uint64_t bytes_of(const void *image) {
    if (*(const char *)image == 0) return 0;
    if (memchr(image, 0, sizeof(uint32_t))) return strlen(image);
    if (magic_of(image) == ELF) return bytes_of_code(image);
    return magic_of(image) == FATBIN ? bytes_of_fatbin(image) : strlen(image);
}

struct Wrapper {  // of the fat binaries in a program: one, or (version 2, -rdc=true) also those that were linked to it
    uint32_t magic, version;
    const void *data, *const *linked;
};

// The fat binaries of a wrapper, one behind the other, which are the caller's to free.
static char *unwrapped(const struct Wrapper *wrapper, uint64_t *bytes) {
    const void *const none[] = {NULL}, *const *linked = wrapper->version == 2 && wrapper->linked ? wrapper->linked : none;
    *bytes = wrapper->data ? bytes_of_fatbin(wrapper->data) : 0;
    for (size_t i = 0; linked[i]; i++) *bytes = (*bytes + 7) / 8 * 8 + bytes_of_fatbin(linked[i]);
    char *all = *bytes > LONGEST ? NULL : calloc(1, *bytes + 1);
    if (all == NULL) return NULL;
    uint64_t at = wrapper->data ? bytes_of_fatbin(wrapper->data) : 0;
    if (at) memcpy(all, wrapper->data, at);
    for (size_t i = 0; linked[i]; i++) {
        at = (at + 7) / 8 * 8;
        memcpy(all + at, linked[i], bytes_of_fatbin(linked[i]));
        at += bytes_of_fatbin(linked[i]);
    }
    return all;
}

static uint64_t context(void) {
    void *current = NULL;
    Result (*get)(void **) = of_driver("cuCtxGetCurrent");
    return get && get(&current) == 0 ? (uintptr_t)current : 0;
}

static struct Offer exchanged(const void *image, uint64_t bytes, bool library) {
    struct Offer offer = {NULL, 0};
    struct Head head;
    char *answer;
    if (bytes == 0 || !ask(IMAGE, context(), library, image, bytes, &head, &answer)) return offer;
    if (!whole_code(answer, head.length)) {
        if (head.length) fputs("consan: error: the consan process has sent what is no machine code; a module is not checked\n", stderr);
        return free(answer), offer;
    }
    if (head.b) atomic_store(&records, true);
    offer.image = answer;
    offer.id = head.a;
    return offer;
}

static struct Offer offer_of(const void *image, bool library) {
    struct Wrapper wrapper;
    uint64_t bytes;
    if (image == NULL) return (struct Offer){NULL, 0};
    if (*(const char *)image == 0 || magic_of(image) != FATBIN_WRAPPER) return exchanged(image, bytes_of(image), library);
    memcpy(&wrapper, image, sizeof wrapper);
    char *all = unwrapped(&wrapper, &bytes);
    struct Offer offer = exchanged(all, all ? bytes : 0, library);
    free(all);
    return offer;
}

// A file's bytes, until they are unmapped; NULL if it cannot be read.
static void *mapped(const char *path, uint64_t *bytes) {
    struct stat about;
    void *data = MAP_FAILED;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0 && fstat(fd, &about) == 0 && about.st_size > (off_t)sizeof(Elf64_Ehdr) && (uint64_t)about.st_size < LONGEST)
        data = mmap(NULL, *bytes = (uint64_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0) close(fd);
    return data == MAP_FAILED ? NULL : data;
}

static struct Offer offer_of_file(const char *path, bool library) {
    uint64_t bytes;
    void *data = mapped(path, &bytes);
    if (data == NULL) return (struct Offer){NULL, 0};
    struct Offer offer = exchanged(data, bytes, library);
    munmap(data, bytes);
    return offer;
}

static Result adopted(struct Offer offer, Result result, Handle *made, bool library) {
    if (result == 0 && made) {
        uint64_t about[] = {(uintptr_t)*made, library};
        report(LOADED, offer.id, context(), about, sizeof about);
    }
    return result;
}

// Load the exchanged image; if the driver refuses it, the program's own.
#define LOAD(offered, library, made, with_other, with_own) \
    struct Offer offer = offered; \
    if (offer.image) { \
        Result result = with_other; \
        if (result == 0) return adopted(offer, result, made, library); \
        report(REFUSED, offer.id, (uint64_t)result, NULL, 0); \
    } \
    return with_own

EXPORTED Result cuModuleLoadData(Handle *module, const void *image) {
    LOAD(offer_of(image, false), false, module, ORIGINAL(cuModuleLoadData, module, offer.image), ORIGINAL(cuModuleLoadData, module, image));
}

EXPORTED Result cuModuleLoadDataEx(Handle *module, const void *image, unsigned count, int *options, void **values) {
    LOAD(offer_of(image, false), false, module, ORIGINAL(cuModuleLoadDataEx, module, offer.image, count, options, values),
         ORIGINAL(cuModuleLoadDataEx, module, image, count, options, values));
}

EXPORTED Result cuModuleLoadFatBinary(Handle *module, const void *image) {
    LOAD(offer_of(image, false), false, module, ORIGINAL(cuModuleLoadData, module, offer.image), ORIGINAL(cuModuleLoadFatBinary, module, image));
}

EXPORTED Result cuModuleLoad(Handle *module, const char *path) {
    LOAD(offer_of_file(path, false), false, module, ORIGINAL(cuModuleLoadData, module, offer.image), ORIGINAL(cuModuleLoad, module, path));
}

EXPORTED Result cuLibraryLoadData(Handle *library, const void *code, int *jit, void **jit_values, unsigned jits, int *options, void **values,
                                  unsigned count) {
    LOAD(offer_of(code, true), true, library, ORIGINAL(cuLibraryLoadData, library, offer.image, jit, jit_values, jits, options, values, count),
         ORIGINAL(cuLibraryLoadData, library, code, jit, jit_values, jits, options, values, count));
}

EXPORTED Result cuLibraryLoadFromFile(Handle *library, const char *path, int *jit, void **jit_values, unsigned jits, int *options,
                                      void **values, unsigned count) {
    LOAD(offer_of_file(path, true), true, library,
         ORIGINAL(cuLibraryLoadData, library, offer.image, jit, jit_values, jits, options, values, count),
         ORIGINAL(cuLibraryLoadFromFile, library, path, jit, jit_values, jits, options, values, count));
}

EXPORTED Result cuModuleUnload(Handle module) {
    report(UNLOADED, (uintptr_t)module, 0, NULL, 0);
    return ORIGINAL(cuModuleUnload, module);
}

EXPORTED Result cuLibraryUnload(Handle library) {
    report(UNLOADED, (uintptr_t)library, 0, NULL, 0);
    return ORIGINAL(cuLibraryUnload, library);
}

// -- names: which kernel a handle is, and from which module -----------------------------------------------------------------------

static Result found(Result result, Handle *made, Handle from, const char *name) {
    if (result == 0 && made) report(FOUND, (uintptr_t)*made, (uintptr_t)from, name, name ? strnlen(name, LONGEST) : 0);
    return result;
}

static Result found_all(Result result, Handle *made, unsigned count, Handle from) {
    for (unsigned i = 0; result == 0 && made && i < count; i++) found(result, &made[i], from, NULL);
    return result;
}

EXPORTED Result cuModuleGetFunction(Handle *function, Handle module, const char *name) {
    return found(ORIGINAL(cuModuleGetFunction, function, module, name), function, module, name);
}

EXPORTED Result cuLibraryGetKernel(Handle *kernel, Handle library, const char *name) {
    return found(ORIGINAL(cuLibraryGetKernel, kernel, library, name), kernel, library, name);
}

EXPORTED Result cuKernelGetFunction(Handle *function, Handle kernel) {
    return found(ORIGINAL(cuKernelGetFunction, function, kernel), function, kernel, NULL);
}

EXPORTED Result cuLibraryGetModule(Handle *module, Handle library) {
    return found(ORIGINAL(cuLibraryGetModule, module, library), module, library, NULL);
}

EXPORTED Result cuModuleEnumerateFunctions(Handle *functions, unsigned count, Handle module) {
    return found_all(ORIGINAL(cuModuleEnumerateFunctions, functions, count, module), functions, count, module);
}

EXPORTED Result cuLibraryEnumerateKernels(Handle *kernels, unsigned count, Handle library) {
    return found_all(ORIGINAL(cuLibraryEnumerateKernels, kernels, count, library), kernels, count, library);
}

// -- launches ---------------------------------------------------------------------------------------------------------------------

#define LEGACY_STREAM 1  // it cannot be captured, and a query while another stream is captured would end that capture

// A launch into a graph is no launch yet.
static bool captured(Handle stream) {
    static _Atomic(void *) found;
    int status = 0;
    if ((uintptr_t)stream <= LEGACY_STREAM) return false;
    if (atomic_load(&found) == NULL) atomic_store(&found, of_driver("cuStreamIsCapturing"));
    Result (*query)(Handle, int *) = atomic_load(&found);
    return query && query(stream, &status) == 0 && status != 0;
}

static void count(Handle function) {
    struct Launches *entries = atomic_load(&table);
    uint64_t handle = (uintptr_t)function, at = handle >> 4;
    for (unsigned tried = 0; handle && entries && tried < TABLE_ENTRIES; tried++, at++) {
        struct Launches *entry = &entries[at % TABLE_ENTRIES];
        uint64_t expected = 0;
        if (atomic_compare_exchange_strong(&entry->handle, &expected, handle) || expected == handle) {
            atomic_fetch_add(&entry->count, 1);
            break;
        }
    }
}

static Result counted(Result result, Handle function, Handle stream) {
    if (result == 0 && !captured(stream)) count(function);
    return result;
}

#define UNKNOWN 999          // CUDA_ERROR_UNKNOWN
#define STREAM_PER_THREAD 2
#define NO_LAUNCH ((Handle)(intptr_t)-1)  // in place of a stream: consan cannot wait for what is launched

struct Shape {
    unsigned grid[3], block[3], cluster[3], shared;
    uint64_t context;
};

// The context of a launch: that of its stream, or the thread's.
static uint64_t context_of(Handle stream) {
    void *found = NULL;
    Result (*get)(Handle, void **) = (uintptr_t)stream > STREAM_PER_THREAD && stream != NO_LAUNCH ? of_driver("cuStreamGetCtx") : NULL;
    return get && get(stream, &found) == 0 && found ? (uintptr_t)found : context();
}

struct Started {
    Handle function;  // what to launch
    bool recorded, refused;
};

// Before a launch: the server gives it a log, or names the form of its kernel that needs none. Until `launched` nobody else has the turn.
static struct Started starting(Handle function, Handle stream, struct Shape shape, void **arguments, void **extra) {
    struct Started started = {function, false, false};
    struct Head head;
    char *answer;
    if (!atomic_load(&records) || function == NULL) return started;
    shape.context = shape.context ? shape.context : context_of(stream);
    pthread_mutex_lock(&turn);
    atomic_store(&launch_arguments, arguments);
    atomic_store(&launch_extra, extra);
    if (ask_in_turn(LAUNCH, (uintptr_t)function, (uintptr_t)stream, &shape, sizeof shape, &head, &answer)) {
        free(answer);
        started = (struct Started){head.a ? (Handle)(uintptr_t)head.a : function, head.b == 1, head.b > 1};
    } else {
        started.refused = true;  // a recorded kernel without a log would write anywhere
    }
    atomic_store(&launch_arguments, NULL);
    atomic_store(&launch_extra, NULL);
    if (!started.recorded) pthread_mutex_unlock(&turn);
    unseen = started.recorded && stream != NO_LAUNCH;
    has_turn = started.recorded && !unseen;
    return started;
}

static Result launched(struct Started started, Result result) {
    struct Head head;
    char *answer;
    if (!started.recorded) return result;
    unseen = has_turn = false;
    if (ask_in_turn(LAUNCHED, (uint64_t)result, 0, NULL, 0, &head, &answer)) free(answer);
    pthread_mutex_unlock(&turn);
    tell_call(&waiting);
    return result;
}

// The default stream of a thread is another one in consan's.
static Handle waitable(Handle stream, bool per_thread) {
    return (uintptr_t)stream == STREAM_PER_THREAD || (per_thread && stream == NULL) ? NO_LAUNCH : stream;
}

#define STARTED(stream, per_thread, extra, ...) \
    struct Started started = starting(function, waitable(stream, per_thread), (struct Shape)__VA_ARGS__, arguments, extra); \
    if (started.refused) return UNKNOWN
#define SHAPE {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {1, 1, 1}, shared}

struct Attribute {  // CUlaunchAttribute
    int number, unused;
    unsigned value[16];
};
#define CLUSTER_SHAPE 4

struct Config {  // CUlaunchConfig
    unsigned grid[3], block[3], shared;
    Handle stream;
    const struct Attribute *attributes;
    unsigned count;
};

static struct Shape shape_of(const struct Config *config) {
    struct Shape shape = {.cluster = {1, 1, 1}, .shared = config->shared};
    memcpy(shape.grid, config->grid, sizeof shape.grid);
    memcpy(shape.block, config->block, sizeof shape.block);
    for (unsigned i = 0; config->attributes && i < config->count; i++)
        if (config->attributes[i].number == CLUSTER_SHAPE) memcpy(shape.cluster, config->attributes[i].value, sizeof shape.cluster);
    return shape;
}

#define PLAIN_LAUNCH(name, per_thread) \
    EXPORTED Result name(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
                         unsigned block_z, unsigned shared, Handle stream, void **arguments, void **extra) { \
        STARTED(stream, per_thread, extra, SHAPE); \
        Result result = ORIGINAL(name, started.function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, arguments, extra); \
        return counted(launched(started, result), function, stream); \
    }
#define COOPERATIVE_LAUNCH(name, per_thread) \
    EXPORTED Result name(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
                         unsigned block_z, unsigned shared, Handle stream, void **arguments) { \
        STARTED(stream, per_thread, NULL, SHAPE); \
        Result result = ORIGINAL(name, started.function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, arguments); \
        return counted(launched(started, result), function, stream); \
    }
#define CONFIGURED_LAUNCH(name, per_thread) \
    EXPORTED Result name(const struct Config *config, Handle function, void **arguments, void **extra) { \
        if (config == NULL) return ORIGINAL(name, config, function, arguments, extra); \
        struct Started started = starting(function, waitable(config->stream, per_thread), shape_of(config), arguments, extra); \
        if (started.refused) return UNKNOWN; \
        Result result = ORIGINAL(name, config, started.function, arguments, extra); \
        return counted(launched(started, result), function, config->stream); \
    }

PLAIN_LAUNCH(cuLaunchKernel, false)
PLAIN_LAUNCH(cuLaunchKernel_ptsz, true)
COOPERATIVE_LAUNCH(cuLaunchCooperativeKernel, false)
COOPERATIVE_LAUNCH(cuLaunchCooperativeKernel_ptsz, true)
CONFIGURED_LAUNCH(cuLaunchKernelEx, false)
CONFIGURED_LAUNCH(cuLaunchKernelEx_ptsz, true)

// What a program hands over with a kernel in it, where no single launch follows: it gets the form that needs no log.
static bool without_log(Handle *function, struct Shape shape) {
    struct Started started = starting(*function, NO_LAUNCH, shape, NULL, NULL);
    if (started.refused) return false;
    launched(started, 0);
    *function = started.function;
    return true;
}

struct Params {  // CUDA_LAUNCH_PARAMS
    Handle function;
    unsigned grid[3], block[3], shared;
    Handle stream;
    void **arguments;
};

EXPORTED Result cuLaunchCooperativeKernelMultiDevice(struct Params *launches, unsigned count, unsigned flags) {
    struct Params *all = launches ? calloc(count + 1, sizeof *all) : NULL;
    bool fine = all || launches == NULL;
    for (unsigned i = 0; all && i < count && fine; i++) {
        struct Shape shape = {.cluster = {1, 1, 1}, .shared = launches[i].shared, .context = context_of(launches[i].stream)};
        all[i] = launches[i];
        memcpy(shape.grid, all[i].grid, sizeof shape.grid);
        memcpy(shape.block, all[i].block, sizeof shape.block);
        fine = without_log(&all[i].function, shape);
    }
    Result result = fine ? ORIGINAL(cuLaunchCooperativeKernelMultiDevice, all, count, flags) : UNKNOWN;
    free(all);
    for (unsigned i = 0; launches && i < count; i++) counted(result, launches[i].function, launches[i].stream);
    return result;
}

// -- graphs: what each is made of is looked up when it is instantiated, and counted at its launches --------------------------------

enum { KERNEL_NODE = 0, CHILD_NODE = 4, CONDITIONAL_NODE = 13 };
static const char conditional[] = "kernels in a conditional node of a graph";  // its address stands for them as a handle

struct KernelNode {  // CUDA_KERNEL_NODE_PARAMS_v2
    Handle function;
    unsigned grid[3], block[3], shared;
    void **arguments, **extra;
    Handle kernel, context;
};

struct Graph {
    struct Graph *next;
    Handle handle;
    size_t count;
    Handle kernels[];
};
static pthread_mutex_t graphs_turn = PTHREAD_MUTEX_INITIALIZER;
static struct Graph *graphs;

static Handle name_of_node(Handle handle, const char *function) {
    const char *name = NULL;
    Result (*get)(const char **, Handle) = of_driver(function);
    if (handle && get && get(&name, handle) == 0) report(FOUND, (uintptr_t)handle, 0, name, name ? strnlen(name, LONGEST) : 0);
    return handle;
}

static Handle kernel_of(Handle node) {
    struct KernelNode about = {0};
    Result (*get)(Handle, struct KernelNode *) = of_driver("cuGraphKernelNodeGetParams_v2");
    if (get == NULL || get(node, &about) != 0) return NULL;
    return about.function ? name_of_node(about.function, "cuFuncGetName") : name_of_node(about.kernel, "cuKernelGetName");
}

static Handle *nodes_of(Handle graph, size_t *count) {
    Result (*list)(Handle, Handle *, size_t *) = of_driver("cuGraphGetNodes");
    *count = 0;
    Handle *nodes = list && list(graph, NULL, count) == 0 ? calloc(*count + 1, sizeof *nodes) : NULL;
    if (nodes && list(graph, nodes, count) == 0) return nodes;
    free(nodes);
    *count = 0;
    return NULL;
}

static struct Graph *with_kernel(struct Graph *graph, Handle kernel) {
    struct Graph *larger = kernel && graph ? realloc(graph, sizeof *graph + (graph->count + 1) * sizeof kernel) : NULL;
    if (larger == NULL) return graph;
    larger->kernels[larger->count++] = kernel;
    return larger;
}

static struct Graph *with_nodes(struct Graph *graph, Handle from) {
    Result (*type_of)(Handle, int *) = of_driver("cuGraphNodeGetType"), (*child_of)(Handle, Handle *) = of_driver("cuGraphChildGraphNodeGetGraph");
    size_t count;
    Handle *nodes = nodes_of(from, &count), child;
    for (size_t i = 0; i < count; i++) {
        int type = -1;
        if (type_of == NULL || type_of(nodes[i], &type) != 0) continue;
        if (type == KERNEL_NODE) graph = with_kernel(graph, kernel_of(nodes[i]));
        if (type == CHILD_NODE && child_of && child_of(nodes[i], &child) == 0) graph = with_nodes(graph, child);
        if (type != CONDITIONAL_NODE) continue;
        report(FOUND, (uintptr_t)conditional, 0, conditional, strlen(conditional));
        graph = with_kernel(graph, (Handle)conditional);
    }
    free(nodes);
    return graph;
}

static void forget_graph(Handle handle) {
    pthread_mutex_lock(&graphs_turn);
    for (struct Graph **at = &graphs; *at; at = &(*at)->next) {
        if ((*at)->handle != handle) continue;
        struct Graph *gone = *at;
        *at = gone->next;
        free(gone);
        break;
    }
    pthread_mutex_unlock(&graphs_turn);
}

static Result instantiated(Result result, Handle *made, Handle from) {
    struct Graph *graph = result == 0 && made && socket_path() ? calloc(1, sizeof *graph) : NULL;
    if (graph == NULL) return result;
    graph = with_nodes(graph, from);
    forget_graph(graph->handle = *made);
    pthread_mutex_lock(&graphs_turn);
    graph->next = graphs;
    graphs = graph;
    pthread_mutex_unlock(&graphs_turn);
    return result;
}

static Result graph_launched(Result result, Handle handle) {
    pthread_mutex_lock(&graphs_turn);
    for (struct Graph *graph = graphs; graph; graph = graph->next)
        for (size_t i = 0; result == 0 && graph->handle == handle && i < graph->count; i++) count(graph->kernels[i]);
    pthread_mutex_unlock(&graphs_turn);
    return result;
}

// A kernel that the program puts into a graph, or changes there. The first version of the parameters ends before `kernel`.
static bool for_graph(struct KernelNode *about, bool first_version) {
    struct Shape shape = {.cluster = {1, 1, 1}, .shared = about->shared, .context = first_version ? 0 : (uintptr_t)about->context};
    memcpy(shape.grid, about->grid, sizeof shape.grid);
    memcpy(shape.block, about->block, sizeof shape.block);
    Handle own = about->function ? about->function : first_version ? NULL : about->kernel, other = own;
    if (!without_log(&other, shape)) return false;
    if (other == own) return true;
    about->function = other;
    if (!first_version) about->kernel = NULL;
    return true;
}

struct NodeParams {  // CUgraphNodeParams
    int type, unused[3];
    union {
        struct KernelNode kernel;
        char bytes[240];
    };
};

#define FIRST_BYTES offsetof(struct KernelNode, kernel)
#define KERNEL_NODE_CALL(name, bytes, parameters, ...) \
    EXPORTED Result name parameters { \
        struct KernelNode about = {0}; \
        if (given) memcpy(&about, given, bytes); \
        if (given && !for_graph(&about, bytes == FIRST_BYTES)) return UNKNOWN; \
        return ORIGINAL(name, __VA_ARGS__, given ? &about : NULL); \
    }
#define NODE_CALL(name, parameters, ...) \
    EXPORTED Result name parameters { \
        struct NodeParams about = {0}; \
        if (given == NULL || *(const int *)given != KERNEL_NODE) return ORIGINAL(name, __VA_ARGS__, given); \
        memcpy(&about, given, sizeof about); \
        if (!for_graph(&about.kernel, false)) return UNKNOWN; \
        return ORIGINAL(name, __VA_ARGS__, &about); \
    }
#define ADDED (Handle *node, Handle graph, const Handle *before, size_t count, void *given)

KERNEL_NODE_CALL(cuGraphAddKernelNode, FIRST_BYTES, ADDED, node, graph, before, count)
KERNEL_NODE_CALL(cuGraphAddKernelNode_v2, sizeof about, ADDED, node, graph, before, count)
KERNEL_NODE_CALL(cuGraphKernelNodeSetParams, FIRST_BYTES, (Handle node, const void *given), node)
KERNEL_NODE_CALL(cuGraphKernelNodeSetParams_v2, sizeof about, (Handle node, const void *given), node)
KERNEL_NODE_CALL(cuGraphExecKernelNodeSetParams, FIRST_BYTES, (Handle graph, Handle node, const void *given), graph, node)
KERNEL_NODE_CALL(cuGraphExecKernelNodeSetParams_v2, sizeof about, (Handle graph, Handle node, const void *given), graph, node)
NODE_CALL(cuGraphAddNode, ADDED, node, graph, before, count)
NODE_CALL(cuGraphAddNode_v2, (Handle *node, Handle graph, const Handle *before, const void *edges, size_t count, void *given), node, graph,
          before, edges, count)
NODE_CALL(cuGraphNodeSetParams, (Handle node, void *given), node)
NODE_CALL(cuGraphExecNodeSetParams, (Handle graph, Handle node, void *given), graph, node)

// The forms differ in what follows the graph.
#define INSTANTIATE(name) \
    EXPORTED Result name(Handle *made, Handle from, uint64_t a, uint64_t b, uint64_t c) { \
        return instantiated(ORIGINAL(name, made, from, a, b, c), made, from); \
    }
#define GRAPH_LAUNCH(name) \
    EXPORTED Result name(Handle graph, Handle stream) { return graph_launched(ORIGINAL(name, graph, stream), graph); }

INSTANTIATE(cuGraphInstantiate)
INSTANTIATE(cuGraphInstantiate_v2)
INSTANTIATE(cuGraphInstantiateWithFlags)
INSTANTIATE(cuGraphInstantiateWithParams)
INSTANTIATE(cuGraphInstantiateWithParams_ptsz)
GRAPH_LAUNCH(cuGraphLaunch)
GRAPH_LAUNCH(cuGraphLaunch_ptsz)

EXPORTED Result cuGraphExecDestroy(Handle graph) {
    forget_graph(graph);
    return ORIGINAL(cuGraphExecDestroy, graph);
}

// -- ends of a context ------------------------------------------------------------------------------------------------------------

#define CONTEXT_END(name, type, destroys, context) \
    EXPORTED Result name(type which) { \
        if (state == CONNECTED) report(COLLECT, destroys, context, NULL, 0); \
        return ORIGINAL(name, which); \
    }

CONTEXT_END(cuDevicePrimaryCtxReset, int, 1, 0)
CONTEXT_END(cuDevicePrimaryCtxReset_v2, int, 1, 0)
CONTEXT_END(cuDevicePrimaryCtxRelease, int, 0, 0)
CONTEXT_END(cuDevicePrimaryCtxRelease_v2, int, 0, 0)
CONTEXT_END(cuCtxDestroy, Handle, 1, (uintptr_t)which)
CONTEXT_END(cuCtxDestroy_v2, Handle, 1, (uintptr_t)which)

// -- machine code that is linked at run time: the server is told of what -----------------------------------------------------------

static Result input(Result result, Handle linker, const void *data, uint64_t bytes) {
    if (result == 0 && data && bytes <= LONGEST && socket_path()) report(INPUT, (uintptr_t)linker, 0, data, bytes);
    return result;
}

static Result input_file(Result result, Handle linker, const char *path) {
    uint64_t bytes;
    void *data = result == 0 && socket_path() ? mapped(path, &bytes) : NULL;
    if (data == NULL) return result;
    input(result, linker, data, bytes);
    munmap(data, bytes);
    return result;
}

static Result made(Result result, Handle linker, const void *code) {
    if (result != 0 || code == NULL || magic_of(code) != ELF || socket_path() == NULL) return result;
    report(MADE, (uintptr_t)linker, 0, code, bytes_of_code(code));
    return result;
}

static void forget(Handle linker) {
    if (state == CONNECTED) report(MADE, (uintptr_t)linker, 0, NULL, 0);
}

#define DRIVERS_LINKER(version) \
    EXPORTED Result cuLinkAddData##version(Handle linker, int type, void *data, size_t bytes, const char *name, unsigned count, int *options, \
                                           void **values) { \
        return input(ORIGINAL(cuLinkAddData##version, linker, type, data, bytes, name, count, options, values), linker, data, bytes); \
    } \
    EXPORTED Result cuLinkAddFile##version(Handle linker, int type, const char *path, unsigned count, int *options, void **values) { \
        return input_file(ORIGINAL(cuLinkAddFile##version, linker, type, path, count, options, values), linker, path); \
    }

DRIVERS_LINKER()
DRIVERS_LINKER(_v2)

EXPORTED Result cuLinkComplete(Handle linker, void **code, size_t *bytes) {
    Result result = ORIGINAL(cuLinkComplete, linker, code, bytes);
    return made(result, linker, result == 0 && code ? *code : NULL);
}

EXPORTED Result cuLinkDestroy(Handle linker) {
    forget(linker);
    return ORIGINAL(cuLinkDestroy, linker);
}

#define LIBRARYS_LINKER(prefix, version) \
    EXPORTED Result prefix##AddData##version(Handle linker, int type, const void *data, size_t bytes, const char *name) { \
        CALLERS(prefix##AddData##version); \
        return input(CALLED(own, linker, type, data, bytes, name), linker, data, bytes); \
    } \
    EXPORTED Result prefix##AddFile##version(Handle linker, int type, const char *path) { \
        CALLERS(prefix##AddFile##version); \
        return input_file(CALLED(own, linker, type, path), linker, path); \
    } \
    EXPORTED Result prefix##GetLinkedCubin##version(Handle linker, void *code) { \
        CALLERS(prefix##GetLinkedCubin##version); \
        return made(CALLED(own, linker, code), linker, code); \
    } \
    EXPORTED Result prefix##Destroy##version(Handle *linker) { \
        CALLERS(prefix##Destroy##version); \
        if (linker) forget(*linker); \
        return CALLED(own, linker); \
    }
#define LIBRARYS_VERSION(prefix, version) LIBRARYS_LINKER(prefix, _##version)

LIBRARYS_LINKER(nvJitLink, )
JIT_LINK_VERSIONS(LIBRARYS_VERSION, __nvJitLink)

// nvPTXCompiler has no shared form. A library that it is linked into calls it as any function, unless its symbols are hidden there.

EXPORTED Result nvPTXCompilerCreate(Handle *compiler, size_t bytes, const char *ptx) {
    CALLERS(nvPTXCompilerCreate);
    Result result = CALLED(own, compiler, bytes, ptx);
    return input(result, result == 0 && compiler ? *compiler : NULL, ptx, bytes);
}

EXPORTED Result nvPTXCompilerGetCompiledProgram(Handle compiler, void *code) {
    CALLERS(nvPTXCompilerGetCompiledProgram);
    return made(CALLED(own, compiler, code), compiler, code);
}

EXPORTED Result nvPTXCompilerDestroy(Handle *compiler) {
    CALLERS(nvPTXCompilerDestroy);
    if (compiler) forget(*compiler);
    return CALLED(own, compiler);
}

// -- ptxas and nvlink as programs, which nvcc, Triton and XLA start: the files that they read, and the one that they write -----------

struct Words {
    int count;
    char **words;
};

// Whether a word names the output; `next`: it is the word behind.
static const char *output_of(const char *word, const char *next) {
    if (strcmp(word, "-o") == 0 || strcmp(word, "--output-file") == 0) return next;
    return strncmp(word, "--output-file=", strlen("--output-file=")) == 0 ? strchr(word, '=') + 1 : NULL;
}

static void tool_ends(int status, void *given) {
    struct Words *with = given;
    const char *output = NULL;
    uint64_t bytes;
    for (int i = 1; status == 0 && i < with->count; i++) {
        const char *word = with->words[i], *next = i + 1 < with->count ? with->words[i + 1] : NULL, *named = output_of(word, next);
        if (named) output = named, i += named == next;
        else if (*word != '-') input_file(0, with, word);
    }
    void *code = output ? mapped(output, &bytes) : NULL;
    if (code) made(0, with, code), munmap(code, bytes);
}

__attribute__((constructor)) static void follow_tool(int count, char **words) {
    static struct Words with;
    const char *name = program_invocation_short_name;
    with = (struct Words){count, words};
    if (socket_path() && (strcmp(name, "ptxas") == 0 || strcmp(name, "nvlink") == 0)) on_exit(tool_ends, &with);
}

// -- NVRTC: a program that asks for machine code gets PTX, which the driver takes in its place ---------------------------------------

#define KEPT 256
static _Atomic(Handle) for_linker[KEPT];  // programs whose machine code is linked: PTX is no input for that

static bool is_one_of(const char *option, const char *const *known) {
    for (; *known; known++)
        if (strcmp(option, *known) == 0) return true;
    return false;
}

static bool any_option(int count, const char *const *options, const char *const *known) {
    for (int i = 0; i < count; i++)
        if (options[i] && is_one_of(options[i], known)) return true;
    return false;
}

EXPORTED Result nvrtcCompileProgram(Handle program, int count, const char *const *options) {
    static const char *const lines[] = {"-lineinfo", "--generate-line-info", "-G", "--device-debug", NULL};
    static const char *const linker[] = {"-dc", "--device-c", "-rdc=true", "--relocatable-device-code=true", "-dlto", "--dlink-time-opt", NULL};
    CALLERS(nvrtcCompileProgram);
    const char **more = socket_path() && count >= 0 ? calloc((size_t)count + 1, sizeof *more) : NULL;
    if (more == NULL) return CALLED(own, program, count, options);
    atomic_store(&for_linker[((uintptr_t)program >> 4) % KEPT], any_option(count, options, linker) ? program : NULL);
    for (int i = 0; i < count; i++) more[i] = options[i];
    if (!any_option(count, options, lines)) more[count++] = "-lineinfo";
    Result result = CALLED(own, program, count, more);
    free(more);
    return result;
}

static bool is_linked_later(Handle program) { return atomic_load(&for_linker[((uintptr_t)program >> 4) % KEPT]) == program; }

// A function of the NVRTC that a function lies in.
static void *of_nvrtc(void *function, const char *name) {
    Dl_info library;
    void *handle = dladdr(function, &library) ? dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    return handle ? finder()(handle, name) : NULL;
}

// NVRTC's function for PTX, if the program's machine code is not empty and PTX can take its place.
static void *ptx_instead(Handle program, void *caller, const char *name) {
    size_t bytes = 0;
    void *own = callers(AT_nvrtcGetCUBINSize, caller);
    if (socket_path() == NULL || is_linked_later(program)) return NULL;
    if (CALLED(own, program, &bytes) != 0 || bytes == 0) return NULL;
    return of_nvrtc(own, name);
}

EXPORTED Result nvrtcGetCUBINSize(Handle program, size_t *bytes) {
    CALLERS(nvrtcGetCUBINSize);
    Result (*instead)(Handle, size_t *) = ptx_instead(program, __builtin_return_address(0), "nvrtcGetPTXSize");
    return instead ? instead(program, bytes) : CALLED(own, program, bytes);
}

// Machine code for a linker is known by its PTX, as if a linker had made it.
static Result made_by_nvrtc(Result result, void *own, Handle program, const char *code) {
    Result (*size)(Handle, size_t *) = of_nvrtc(own, "nvrtcGetPTXSize"), (*get)(Handle, char *) = of_nvrtc(own, "nvrtcGetPTX");
    size_t bytes = 0;
    char *ptx = result == 0 && size && get && size(program, &bytes) == 0 ? malloc(bytes + 1) : NULL;
    if (ptx && get(program, ptx) == 0) made(input(result, program, ptx, bytes), program, code), forget(program);
    free(ptx);
    return result;
}

EXPORTED Result nvrtcGetCUBIN(Handle program, char *code) {
    CALLERS(nvrtcGetCUBIN);
    Result (*instead)(Handle, char *) = ptx_instead(program, __builtin_return_address(0), "nvrtcGetPTX");
    if (instead) return instead(program, code);
    Result result = CALLED(own, program, code);
    return socket_path() && is_linked_later(program) ? made_by_nvrtc(result, own, program, code) : result;
}
