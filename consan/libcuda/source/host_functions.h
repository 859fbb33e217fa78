// Functions of the host that the server lets run in the order of a stream (consan/libcuda/host_calls.py), and what they tell other threads.
// They order nothing for a thread but by locks: who takes a lock that a function has given away knows what was before the function.
// So these functions of the C library stand in front of its own. They note nothing while no function has given anything away.
//
// A function is held back until the program makes another call, which then does not wait for it, or for PATIENCE: the host may wait. It runs in
// a thread of its own, as on a GPU.
//
// Not seen: atomic variables, pipes, and other calls of the operating system.
#include <dlfcn.h>
#include <semaphore.h>
#include <time.h>

enum { MOST_GIVEN = 256 };
static struct {
    const void *lock;
    word function;
} given_away[MOST_GIVEN];
static int given_count, given_busy;
static word gifts;                        // of all functions so far
static __thread word running_function;  // its number; 0: this thread runs none

static int remote(const char *name, const word *words);

static void lock_given(void) {
    while (__atomic_test_and_set(&given_busy, __ATOMIC_ACQUIRE)) {}
}
static void unlock_given(void) { __atomic_clear(&given_busy, __ATOMIC_RELEASE); }

static void give(const void *lock) {
    if (!running_function) return;
    lock_given();
    ++gifts;
    int at = given_count == MOST_GIVEN ? given_count - 1 : given_count++;
    given_away[at].lock = lock, given_away[at].function = running_function;
    unlock_given();
}

// The last function that has given a lock away; 0: none. It is known from now on.
static word given_by(const void *lock) {
    word found = 0;
    int kept = 0;
    lock_given();
    for (int at = 0; at < given_count; ++at)
        if (given_away[at].lock == lock && given_away[at].function > found) found = given_away[at].function;
    for (int at = 0; at < given_count; ++at)
        if (given_away[at].function != found) given_away[kept++] = given_away[at];
    given_count = kept;
    unlock_given();
    return found;
}

static void take(const void *lock) {
    if (!__atomic_load_n(&given_count, __ATOMIC_ACQUIRE) || running_function) return;
    const word words[16] = {given_by(lock)};
    if (words[0]) remote("_consan_host_learns", words);
}

#define BEHIND(name, parameters, arguments, before, behind) \
    EXPORT int name parameters { \
        static int(*next) parameters; \
        if (!next) next = (int(*) parameters)dlsym(RTLD_NEXT, #name); \
        before; \
        int code = next arguments; \
        if (!code) { behind; } \
        return code; \
    }
#define GIVES(name, type, lock) BEHIND(name, (type * lock), (lock), give(lock), )
#define TAKES(name, type, lock) BEHIND(name, (type * lock), (lock), , take(lock))

TAKES(pthread_mutex_lock, pthread_mutex_t, lock)
TAKES(pthread_mutex_trylock, pthread_mutex_t, lock)
GIVES(pthread_mutex_unlock, pthread_mutex_t, lock)
GIVES(pthread_cond_signal, pthread_cond_t, condition)
GIVES(pthread_cond_broadcast, pthread_cond_t, condition)
GIVES(sem_post, sem_t, semaphore)
TAKES(sem_wait, sem_t, semaphore)
TAKES(sem_trywait, sem_t, semaphore)
BEHIND(sem_timedwait, (sem_t * semaphore, const struct timespec *until), (semaphore, until), , take(semaphore))
BEHIND(pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t *lock), (condition, lock), give(lock), (take(condition), take(lock)))
BEHIND(pthread_cond_timedwait, (pthread_cond_t * condition, pthread_mutex_t *lock, const struct timespec *until), (condition, lock, until), give(lock),
       (take(condition), take(lock)))
BEHIND(pthread_cond_clockwait, (pthread_cond_t * condition, pthread_mutex_t *lock, clockid_t clock, const struct timespec *until),
       (condition, lock, clock, until), give(lock), (take(condition), take(lock)))

// Run a function. Gives how often it has given something away.
static word run_host_function(word number, word function, word data) {
    word before = __atomic_load_n(&gifts, __ATOMIC_ACQUIRE);
    running_function = number;
    ((void (*)(void *))(uintptr_t)function)((void *)(uintptr_t)data);
    running_function = 0;
    return __atomic_load_n(&gifts, __ATOMIC_ACQUIRE) - before;
}

// ---- functions that are held back ----

enum { PATIENCE = 10, MOST_PATIENCE = 1000 };  // milliseconds; a function may need a lock that the caller has
struct held_back {
    struct held_back *next;
    const char *name;
    word words[16];
};
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct held_back *first;
    int is_wanted, has_thread;
} held = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0};
static __thread int is_runner;

static struct timespec in_milliseconds(long count) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += count / 1000, at.tv_nsec += count % 1000 * 1000000;
    if (at.tv_nsec >= 1000000000) ++at.tv_sec, at.tv_nsec -= 1000000000;
    return at;
}

static void run_first(void) {
    struct held_back *first = held.first;
    first->words[3] = (word)held.is_wanted;
    pthread_mutex_unlock(&held.lock);
    remote(first->name, first->words);
    pthread_mutex_lock(&held.lock);
    held.first = first->next;
    free(first);
    if (!held.first) held.is_wanted = 0;
    pthread_cond_broadcast(&held.changed);
}

static void *run_held_back(void *none) {
    is_runner = 1;
    pthread_mutex_lock(&held.lock);
    for (;;) {
        struct timespec until = in_milliseconds(PATIENCE);
        while (held.first && !held.is_wanted && !pthread_cond_timedwait(&held.changed, &held.lock, &until)) {}
        if (held.first) run_first();
        else pthread_cond_wait(&held.changed, &held.lock);
    }
    return none;
}

// Another call is made: functions that are held back run now.
static void settle(void) {
    if (is_runner || !__atomic_load_n(&held.first, __ATOMIC_ACQUIRE)) return;
    struct timespec until = in_milliseconds(MOST_PATIENCE);
    pthread_mutex_lock(&held.lock);
    held.is_wanted = held.first != NULL;
    pthread_cond_broadcast(&held.changed);
    while (held.first && !pthread_cond_timedwait(&held.changed, &held.lock, &until)) {}
    pthread_mutex_unlock(&held.lock);
}

static void add_held_back(struct held_back *added) {
    pthread_t thread;
    pthread_mutex_lock(&held.lock);
    struct held_back **end = &held.first;
    while (*end) end = &(*end)->next;
    *end = added;
    if (!held.has_thread) held.has_thread = !pthread_create(&thread, NULL, run_held_back, NULL) && !pthread_detach(thread);
    pthread_cond_broadcast(&held.changed);
    pthread_mutex_unlock(&held.lock);
}

// Whether a call is one of a function that runs later. The server does not want it if it fails, or if a capture keeps the function.
static int holds_back(const char *name, const word *words) {
    static const char *const names[] = {"cuLaunchHostFunc", "_cudaLaunchHostFunc", "_consan_callback"};
    for (size_t at = 0; at < COUNT(names) && !is_runner; ++at) {
        if (strcmp(name, names[at]) != 0) continue;
        struct held_back *added = remote("_consan_holds_back", words) == SUCCESS ? calloc(1, sizeof *added) : NULL;
        if (!added) return 0;
        added->name = names[at];
        memcpy(added->words, words, sizeof added->words);
        add_held_back(added);
        return 1;
    }
    return 0;
}

static void forget_held_back(void) {
    held.first = NULL, held.has_thread = 0, held.is_wanted = 0;
    pthread_mutex_init(&held.lock, NULL);
    pthread_cond_init(&held.changed, NULL);
}
