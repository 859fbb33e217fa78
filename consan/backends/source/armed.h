// Launches of the program that repeat, made without the interpreter. Python arms a launch: how it is recognised, its parameters, memory for
// its log, and the receipt of those before it. It takes the launch back whenever it needs to know what was done (consan/backends/armed.py).
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))
#define MOST_ARMED 64
#define MOST_SLOTS 32
#define KEY 9 // the kernel's handle, grid, block, bytes of dynamic shared memory, stream
#define SUMS 1        // words from the number in a slip to what is compared
#define LONGEST 8000 // nanoseconds of waiting for a receipt: copies of variables for another slot take longer

struct Slot {
    struct Around *around;
    _Atomic uint64_t *slip;
    uint64_t number; // of the launch whose receipt has not come; 0: none
};

struct Armed {
    bool taken, armed;
    uint64_t key[KEY];
    uint64_t count; // of parameters; a launch with other values is not made here
    const uint64_t *sizes;
    const char *values;
    struct Slot slots[MOST_SLOTS];
    uint64_t slot_count, last; // none: the kernel records nothing; the slot whose memory the module's variables name
    const char *receipt;
    uint64_t receipt_bytes;
    const struct Around *here; // its driver and its context
    struct Filter *filter;     // none: calls are not followed
    uint64_t notes, call;      // the context whose calls are noted, and the number of a launch
    uint64_t launches, equal, nanoseconds, status;
};

static struct {
    pthread_mutex_t lock;
    struct Armed armed[MOST_ARMED];
    Launch *real, *otherwise;
} launches = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Atomic uint64_t last_number;

// A number that no launch of the process has had.
EXPORTED uint64_t consan_next_number(void) { return atomic_fetch_add(&last_number, 1) + 1; }

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct Armed *find_armed(const uint64_t *key) {
    for (int at = 0; at < MOST_ARMED; at++)
        if (launches.armed[at].armed && memcmp(launches.armed[at].key, key, sizeof launches.armed[at].key) == 0) return &launches.armed[at];
    return NULL;
}

static bool has_values(const struct Armed *armed, void **parameters) {
    const char *expected = armed->values;
    if (armed->count && !parameters) return false;
    for (uint64_t at = 0; at < armed->count; expected += armed->sizes[at++])
        if (!parameters[at] || memcmp(parameters[at], expected, armed->sizes[at]) != 0) return false;
    return true;
}

static bool is_out(const struct Slot *slot) { return slot->number && atomic_load_explicit(slot->slip, memory_order_acquire) != slot->number; }

// Take the receipts that have come. False: one of them is another one.
static bool take_receipts(struct Armed *armed, uint64_t began) {
    if (armed->slot_count)
        while (is_out(&armed->slots[armed->last]) && nanoseconds() < began + LONGEST);
    for (uint64_t at = 0; at < armed->slot_count; at++) {
        struct Slot *slot = &armed->slots[at];
        if (!slot->number || is_out(slot)) continue;
        if (memcmp((const char *)(slot->slip + SUMS), armed->receipt, armed->receipt_bytes) != 0) return false;
        slot->number = 0;
        armed->equal++;
    }
    return true;
}

// A slot that no launch uses: the last one needs no copies of variables.
static struct Slot *free_slot(struct Armed *armed) {
    if (!armed->slots[armed->last].number) return &armed->slots[armed->last];
    for (uint64_t at = 0; at < armed->slot_count; at++)
        if (!armed->slots[at].number) return &armed->slots[at];
    return NULL;
}

// The launch is noted as the callback would do it.
static bool note_launch(const struct Armed *armed) {
    static const struct CallbackData unknown;
    struct Filter *filter = armed->filter;
    if (!filter) return true;
    lock(filter);
    bool done = load(&filter->notes) == armed->notes && note(filter, (uint32_t)armed->call, LAUNCH, &unknown);
    if (done) store(&filter->stream, UINT64_MAX);
    unlock(filter);
    return done;
}

static bool is_here(const struct Armed *armed) {
    void *current = NULL;
    own_calls++;
    int status = armed->here->driver->get_current(&current);
    own_calls--;
    return !status && current == armed->here->context;
}

// All that comes before the kernel. False: Python is to make the launch, and finds out why.
static bool prepare(struct Armed *armed, struct Slot *slot, uint64_t stream) {
    if (!slot) return is_here(armed) && note_launch(armed);
    if (!note_launch(armed)) return false;
    uint64_t at = (uint64_t)(slot - armed->slots);
    if (consan_before(slot->around, stream, at != armed->last)) return false;
    armed->last = at;
    return true;
}

static void finish(struct Armed *armed, struct Slot *slot, uint64_t stream) {
    armed->launches++;
    if (!slot) return;
    slot->number = consan_next_number();
    armed->status = (uint64_t)consan_behind(slot->around, stream, slot->number);
    if (armed->status) armed->armed = false;
}

EXPORTED int consan_launch(void *function, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared, void *stream,
                           void **parameters, void **extra) {
    const uint64_t key[KEY] = {(uintptr_t)function, x, y, z, a, b, c, shared, (uintptr_t)stream};
    bool made = false;
    int status = 0;
    if (!own_calls && !extra && !pthread_mutex_trylock(&launches.lock)) {
        uint64_t began = nanoseconds();
        struct Armed *armed = find_armed(key);
        struct Slot *slot = NULL;
        made = armed && has_values(armed, parameters) && take_receipts(armed, began);
        if (made && armed->slot_count) made = (slot = free_slot(armed)) != NULL;
        made = made && prepare(armed, slot, key[KEY - 1]);
        if (made) {
            uint64_t until = nanoseconds();
            own_calls++;
            status = launches.real(function, x, y, z, a, b, c, shared, stream, parameters, extra);
            own_calls--;
            uint64_t again = nanoseconds();
            if (!status) finish(armed, slot, key[KEY - 1]);
            armed->nanoseconds += until - began + nanoseconds() - again;
        }
        pthread_mutex_unlock(&launches.lock);
    }
    return made ? status : launches.otherwise(function, x, y, z, a, b, c, shared, stream, parameters, extra);
}

// The driver's function, and what is called for a launch that is not armed.
EXPORTED void consan_launches(Launch *real, Launch *otherwise) { launches.real = real, launches.otherwise = otherwise; }

// Arm a launch. Gives nothing if there are too many. All that it names stays as it is until it is taken back.
EXPORTED struct Armed *consan_arm(const uint64_t *key, const struct Around *here, struct Filter *filter, uint64_t notes, uint64_t call) {
    struct Armed *found = NULL;
    pthread_mutex_lock(&launches.lock);
    for (int at = 0; at < MOST_ARMED && !found; at++)
        if (!launches.armed[at].taken) found = &launches.armed[at];
    if (found) {
        *found = (struct Armed){.taken = true, .here = here, .filter = filter, .notes = notes, .call = call};
        memcpy(found->key, key, sizeof found->key);
    }
    pthread_mutex_unlock(&launches.lock);
    return found;
}

// The values of its parameters.
EXPORTED void consan_arm_values(struct Armed *armed, uint64_t count, const uint64_t *sizes, const char *values) {
    armed->count = count, armed->sizes = sizes, armed->values = values;
}

// One more slot. `number`: of the launch that uses it.
EXPORTED void consan_arm_slot(struct Armed *armed, struct Around *around, uint64_t *slip, uint64_t number) {
    armed->slots[armed->slot_count++] = (struct Slot){around, (_Atomic uint64_t *)slip, number};
}

// Launches are made from now on. `last`: the slot that was used last.
EXPORTED void consan_arm_begin(struct Armed *armed, const char *receipt, uint64_t nbytes, uint64_t last) {
    pthread_mutex_lock(&launches.lock);
    armed->receipt = receipt, armed->receipt_bytes = nbytes, armed->last = last, armed->armed = true;
    pthread_mutex_unlock(&launches.lock);
}

// Take a launch back. Gives how many were made, how many had the receipt, nanoseconds of work, the driver's status, the slot that was used
// last, and of each slot the number of the launch whose receipt has not come.
EXPORTED void consan_take_back(struct Armed *armed, uint64_t *result) {
    pthread_mutex_lock(&launches.lock);
    *result++ = armed->launches, *result++ = armed->equal, *result++ = armed->nanoseconds, *result++ = armed->status, *result++ = armed->last;
    for (uint64_t at = 0; at < armed->slot_count; at++) *result++ = armed->slots[at].number;
    armed->taken = armed->armed = false;
    pthread_mutex_unlock(&launches.lock);
}
