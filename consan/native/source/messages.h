// Messages to and from the server: consan/native/wire.py has the other side.
#pragma once

#include "driver.h"

#define MAGIC 0x6e61736eu

enum Kind {
    HELLO = 1,
    ORDERS,
    IMAGE,
    LOADED,
    REFUSED,
    UNLOADED,
    FOUND,
    COLLECT,
    INPUT,
    MADE,
    LAUNCH,
    LAUNCHED,
    ANSWER,
    CALL,
    MAP,
    TEXT,
    WAIT,
    PARAMETERS,
    FOLLOW,
    FOLLOWING,
    CALLED,
    TAKE,
    NOTED
};

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

struct Spent {  // behind the table: nanoseconds that threads of the program were in consan
    _Atomic uint64_t asked, unasked;  // for a request; for launches without one, by a sample
};

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

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
static _Atomic uint64_t page_bytes, table_bytes;  // of these, and of those that the table begins

static void *map(int file, uint64_t bytes) {
    struct stat about;
    bool whole = file >= 0 && fstat(file, &about) == 0 && about.st_size >= 0 && bytes <= (uint64_t)about.st_size;
    void *at = whole ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    atomic_store(&pages, at == MAP_FAILED ? NULL : at);
    atomic_store(&page_bytes, bytes);
    return atomic_load(&pages);
}

// What lies so far behind the table, if so many bytes were mapped.
static void *behind_table(uint64_t offset, uint64_t bytes) {
    struct Launches *counts = atomic_load(&table);
    return counts && table_bytes >= TABLE_ENTRIES * sizeof *counts + offset + bytes ? (char *)(counts + TABLE_ENTRIES) + offset : NULL;
}

static void spend(bool asked, uint64_t time) {
    struct Spent *spent = behind_table(0, sizeof *spent);
    if (spent) atomic_fetch_add(asked ? &spent->asked : &spent->unasked, time);
}

static const char *text;  // that the driver has named last

static bool names_text(const char *function) { return strncmp(function, "cuGetError", strlen("cuGetError")) == 0 || strcmp(function, "cuFuncGetName") == 0; }

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
    Result result =
        function ? function(with[0], with[1], with[2], with[3], with[4], with[5], with[6], with[7], with[8], with[9], with[10], with[11]) : NOT_FOUND;
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

static _Thread_local bool unseen;  // this thread makes calls for consan, or a launch that the server knows

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
    table_bytes = page_bytes;
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
    uint64_t begun = nanoseconds();
    bool asked = tell(requests, kind, a, b, data, length) && hear_answer(requests, head, answer);
    if (asked) spend(true, nanoseconds() - begun);
    else lose();
    return asked;
}

// The server is to hear of the calls that follow, though there is no image yet.
static void follow_early(void) {
    if (followed_all || unseen) return;
    int before = errno;
    pthread_mutex_lock(&turn);
    if (!followed_all && connected()) follow();
    pthread_mutex_unlock(&turn);
    errno = before;
}

static bool ask(enum Kind kind, uint64_t a, uint64_t b, const void *data, uint64_t length, struct Head *head, char **answer) {
    int before = errno;
    pthread_mutex_lock(&turn);
    bool asked = ask_in_turn(kind, a, b, data, length, head, answer);
    pthread_mutex_unlock(&turn);
    errno = before;
    return asked;
}
