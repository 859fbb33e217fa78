// Calls of a program in a process of its own: each goes to consan through a socket, which asks for the program's memory meanwhile
// (consan/libcuda/remote.py has the other side). Each thread has a connection, since each has a current context.
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "host_functions.h"
#include "watched.h"

struct question {
    uint32_t what;
    int32_t code;
    uint64_t address, bytes;
};
enum { ANSWER, READ, WRITE, STRING, WATCH, RUN, LAY };  // of WATCH the code says how bytes are closed; RUN: a number, a function, and its parameter

static pthread_mutex_t remote_lock = PTHREAD_MUTEX_INITIALIZER;

static int transferred(int connection, void *data, size_t bytes, int is_read) {
    for (char *at = data; bytes;) {
        // One call at a time is served. NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection)
        ssize_t done = is_read ? recv(connection, at, bytes, 0) : send(connection, at, bytes, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return 0;
        at += done, bytes -= (size_t)done;
    }
    return 1;
}

static int connection_of_thread(void) {
    static __thread int connection = -1;
    static __thread pid_t owner;
    const char *path = getenv("_CONSAN_DRIVER");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (connection >= 0 && owner == getpid()) return connection;
    if (!path || strlen(path) >= sizeof address.sun_path) return -1;
    strcpy(address.sun_path, path);
    connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);  // a forked child leaves its parent's to it
    owner = getpid();
    if (connection >= 0 && connect(connection, (struct sockaddr *)&address, sizeof address)) {
        close(connection);
        connection = -1;
    }
    return connection;
}

// A function of the host may wait for another thread, whose calls are served meanwhile. Its own calls are not permitted.
static int ran(int connection, const struct question *asked) {
    int before = touches_noted();  // by the program's own threads
    watch_on();
    pthread_mutex_unlock(&remote_lock);
    word gave = run_host_function((word)asked->code, asked->address, asked->bytes);
    pthread_mutex_lock(&remote_lock);
    int touches = watch_off() - before;
    const word answer[] = {gave, (word)touches};
    watching.touches = before;
    return transferred(connection, (void *)answer, sizeof answer, 0) &&
           transferred(connection, watching.touched + before, (size_t)touches * sizeof *watching.touched, 0);
}

// Pages at an address that the device knows; an older kernel lays them elsewhere.
static int laid(int connection, const struct question *asked) {
    void *wanted = (void *)(uintptr_t)asked->address;
    void *found = mmap(wanted, asked->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    word is_there = found == wanted;
    if (found != MAP_FAILED && !is_there) munmap(found, asked->bytes);
    return transferred(connection, &is_there, sizeof is_there, 0);
}

static int served(int connection, const struct question *asked) {
    char *memory = (char *)(uintptr_t)asked->address;
    if (asked->what == RUN) return ran(connection, asked);
    if (asked->what == LAY) return laid(connection, asked);
    if (asked->what == WATCH) {
        watch(asked->address, asked->bytes, asked->code);
        return 1;
    }
    uint64_t length = asked->what == STRING ? strlen(memory) : asked->bytes;
    if (asked->what == STRING && !transferred(connection, &length, sizeof length, 0)) return 0;
    return transferred(connection, memory, length, asked->what == WRITE);
}

static int asked_of_server(const char *name, const word *words) {
    int connection = connection_of_thread();
    uint64_t length = strlen(name);
    struct question asked = {ANSWER, DEINITIALIZED, 0, 0};
    if (connection < 0 || !transferred(connection, &length, sizeof length, 0) || !transferred(connection, (void *)name, length, 0) ||
        !transferred(connection, (void *)words, 16 * sizeof *words, 0))
        return DEINITIALIZED;
    while (transferred(connection, &asked, sizeof asked, 1) && asked.what != ANSWER)
        if (!served(connection, &asked)) break;
    return asked.what == ANSWER ? asked.code : DEINITIALIZED;
}

// The server knows what the program's own code has touched before it serves a call. A function that was held back comes first: the program
// did not wait for it.
static int remote(const char *name, const word *words) {
    if (running_function) return NOT_PERMITTED;
    settle();
    if (holds_back(name, words)) return SUCCESS;
    pthread_mutex_lock(&remote_lock);
    int touches = watch_off();
    const word noted[16] = {(word)(uintptr_t)watching.touched, (word)touches};
    if (touches && !is_runner) {
        asked_of_server("_consan_touched", noted);
        watching.touches = 0;
    }
    int code = asked_of_server(name, words);
    watch_on();
    pthread_mutex_unlock(&remote_lock);
    return code;
}

static void renew_lock(void) {
    pthread_mutex_init(&remote_lock, NULL);
    forget_held_back();
}
__attribute__((constructor)) static void let_children_call(void) { pthread_atfork(NULL, NULL, renew_lock); }

__attribute__((destructor)) static void hand_over_touches(void) {
    const word none[16] = {0};
    settle();
    if (watching.touches) remote("_consan_ends", none);
}
