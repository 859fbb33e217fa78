// The ends of the process and of a context.
#pragma once

#include "messages.h"

static void report(enum Kind kind, uint64_t a, uint64_t b, const void *data, uint64_t length) {
    struct Head head;
    char *answer;
    if (ask(kind, a, b, data, length, &head, &answer)) free(answer);
}

// For consan's pytest plugin in this process: what has been found since it last took that, as text that is the caller's to free.
EXPORTED char *consan_taken(void);
EXPORTED char *consan_taken(void) {
    struct Head head;
    char *answer;
    return state == CONNECTED && ask(TAKE, 0, 0, NULL, 0, &head, &answer) ? answer : NULL;
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
