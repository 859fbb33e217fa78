// Launches of the program that repeat. Python arms a launch: how it is recognised, memory for its log, and the receipt of those before it.
// It takes the launch back whenever it needs to know what was done (consan/backends/armed.py). Two ways lead here: a program that calls
// `cuLaunchKernel` by a pointer calls `consan_launch`, which is the launch; for all others Python calls `consan_begin` and `consan_end`.
//
// What is assumed: launches of one module come here one at a time, and all others of this module take it back before. Work in a stream runs
// in its order. Events and streams are pointers. `consan_take_back` may come between `consan_begin` and `consan_end`, of any thread.
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define MOST_ARMED 256
#define MOST_SLOTS 32
#define MOST_SETS 128 // of values of the parameters, of one launch that is armed
#define KEY 9 // the kernel's handle, grid, block, bytes of dynamic shared memory, stream
#define SUMS 1        // words from the number in a slip to what is compared
#define LONGEST 8000 // nanoseconds of waiting for a receipt: copies of variables for another slot take longer

struct Slot {
    struct Around *around;
    _Atomic uint64_t *slip;
    uint64_t number; // of the launch whose receipt has not come; 0: none
};

struct Deciding { // bytes of a parameter that make launches alike
    uint64_t parameter, offset, nbytes;
    char value[16];
};

struct Armed {
    bool taken, armed;
    uint64_t serial; // another one for each that was ever armed
    const _Atomic int64_t *over; // no launches are made once it is not 0; null: it never is
    uint64_t key[KEY];
    uint64_t count; // of parameters whose values Python wants to know
    const uint64_t *sizes;
    char *sets; // of their values, one behind the other; `times`: launches with each
    uint64_t *times;
    uint64_t set_bytes, set_count, set; // the last is that of the launch before
    struct Slot slots[MOST_SLOTS];
    void *instead; // of the kernel; none: it is launched itself
    const struct Deciding *decides;
    uint64_t decide_count;
    uint64_t slot_count, last; // none: the kernel records nothing; the slot whose memory the module's variables name
    const char *receipt;
    uint64_t receipt_bytes;
    const struct Around *here; // its driver and its context
    struct Filter *filter;     // none: calls are not followed
    uint64_t notes, call;      // the context whose calls are noted, and the number of a launch; or all ones, and calls that Python has heard of
    uint64_t sharings;         // so many times the process had begun to share memory when it was armed
    uint64_t equal, nanoseconds, status;
    uint64_t busy; // Python makes a launch: its slot, plus one
};

static struct {
    pthread_mutex_t lock;
    struct Armed armed[MOST_ARMED];
    int used; // no more of them were armed at a time
    Launch *real, *otherwise;
} launches = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Atomic uint64_t last_number, sharings;

// A number that no launch of the process has had.
EXPORTED uint64_t consan_next_number(void) { return atomic_fetch_add(&last_number, 1) + 1; }

// Exchange a word that another process uses, too.
EXPORTED uint64_t consan_exchange(_Atomic uint64_t *word, uint64_t value) { return atomic_exchange(word, value); }

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// The process shares more memory with others from now on: Python looks where the launches point that C would make. Gives how often that was.
EXPORTED uint64_t consan_shares(int more) { return atomic_fetch_add(&sharings, more != 0) + (more != 0); }

static bool is_like(const struct Armed *armed, const uint64_t *key) {
    if (!armed->armed || armed->busy || memcmp(armed->key, key, sizeof armed->key) != 0) return false;
    return armed->sharings == atomic_load(&sharings) && !(armed->over && atomic_load(armed->over));
}

static struct Armed *find_armed(const uint64_t *key) {
    for (struct Armed *armed = launches.armed; armed < launches.armed + launches.used; armed++)
        if (is_like(armed, key)) return armed;
    return NULL;
}

static bool equals(const struct Armed *armed, const char *set, void **parameters) {
    for (uint64_t at = 0; at < armed->count; set += armed->sizes[at++])
        if (memcmp(parameters[at], set, armed->sizes[at]) != 0) return false;
    return true;
}

static bool has_deciding_bytes(const struct Armed *armed, void **parameters) {
    for (const struct Deciding *each = armed->decides; each < armed->decides + armed->decide_count; each++) {
        const char *given = parameters ? parameters[each->parameter] : NULL;
        if (!given || memcmp(given + each->offset, each->value, each->nbytes) != 0) return false;
    }
    return true;
}

// Find the values of a launch among those of earlier ones.
static bool knows_values(struct Armed *armed, void **parameters) {
    for (uint64_t more = 0; more < armed->set_count; more++) {
        uint64_t at = (armed->set + more) % armed->set_count;
        if (equals(armed, armed->sets + at * armed->set_bytes, parameters)) return armed->set = at, true;
    }
    return false;
}

// Find them, or add them. False: there are too many, or they are not given by pointers.
static bool find_values(struct Armed *armed, void **parameters) {
    if (armed->count && !parameters) return false;
    for (uint64_t at = 0; at < armed->count; at++)
        if (!parameters[at]) return false;
    if (knows_values(armed, parameters)) return true;
    if (armed->set_count == MOST_SETS) return false;
    char *set = armed->sets + armed->set_count * armed->set_bytes;
    for (uint64_t at = 0; at < armed->count; set += armed->sizes[at++]) memcpy(set, parameters[at], armed->sizes[at]);
    armed->set = armed->set_count++;
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

// Find a slot that no launch uses: the last one needs no copies of variables. Null in `found`: none is needed.
static bool find_slot(struct Armed *armed, struct Slot **found) {
    *found = NULL;
    if (!armed->slot_count) return true;
    if (!armed->slots[armed->last].number) return *found = &armed->slots[armed->last], true;
    for (uint64_t at = 0; at < armed->slot_count && !*found; at++)
        if (!armed->slots[at].number) *found = &armed->slots[at];
    return *found != NULL;
}

// Whether launches into the default stream, which is the only one, are noted as when it was armed.
static bool notes_launches(const struct Armed *armed) { return load(&armed->filter->notes) == armed->notes && !armed->filter->everywhere; }

// The launch is noted as the callback would do it. While none are noted it adds nothing, unless Python has heard of a call since it was armed.
static bool note_launch(const struct Armed *armed) {
    struct Filter *filter = armed->filter;
    struct NotedCall call = {.number = (uint32_t)armed->call, .kind = LAUNCH};
    if (!filter) return true;
    if (armed->notes == UINT64_MAX) return notes_launches(armed) && load(&filter->reported) == armed->call;
    lock(filter);
    bool done = notes_launches(armed) && note(filter, &call);
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

// Put into the stream what comes before the kernel. False: Python is to make the launch, and finds out why. So it may behind this, too: then
// the memory is cleared twice.
static bool prepare(struct Armed *armed, struct Slot *slot) {
    if (!slot) return is_here(armed);
    uint64_t at = (uint64_t)(slot - armed->slots);
    if (consan_before(slot->around, armed->key[KEY - 1], at != armed->last)) return false;
    armed->last = at;
    return true;
}

static void finish(struct Armed *armed, struct Slot *slot) {
    if (!slot) return;
    slot->number = consan_next_number();
    armed->status = (uint64_t)consan_behind(slot->around, armed->key[KEY - 1], slot->number);
    if (armed->status) armed->armed = false;
}

// A launch without a slot is made without the lock: the driver waits where its queue is full, and behind a kernel that hangs only Python can
// end that. It may be taken back meanwhile, so it is counted before.
EXPORTED int consan_launch(void *function, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared, void *stream,
                           void **parameters, void **extra) {
    const uint64_t key[KEY] = {(uintptr_t)function, x, y, z, a, b, c, shared, (uintptr_t)stream};
    bool made = false;
    int status = 0;
    if (!own_calls && !extra && !pthread_mutex_trylock(&launches.lock)) {
        uint64_t began = nanoseconds();
        struct Armed *armed = find_armed(key);
        struct Slot *slot = NULL;
        made = armed && has_deciding_bytes(armed, parameters) && find_values(armed, parameters) && take_receipts(armed, began) && find_slot(armed, &slot);
        made = made && prepare(armed, slot) && note_launch(armed);
        if (made) {
            uint64_t until = nanoseconds(), set = armed->set;
            bool alone = !slot;
            void *launched = armed->instead ? armed->instead : function;
            armed->times[set]++;
            if (alone) pthread_mutex_unlock(&launches.lock);
            own_calls++;
            status = launches.real(launched, x, y, z, a, b, c, shared, stream, parameters, extra);
            own_calls--;
            if (alone) pthread_mutex_lock(&launches.lock);
            uint64_t again = nanoseconds();
            if (!status) finish(armed, slot);
            if (status && find_armed(key) == armed && armed->times[set]) armed->times[set]--;
            armed->nanoseconds += until - began + nanoseconds() - again;
        }
        pthread_mutex_unlock(&launches.lock);
    }
    return made ? status : launches.otherwise(function, x, y, z, a, b, c, shared, stream, parameters, extra);
}

// Before a launch that Python makes, whose call is noted as any other is. Gives its slot, plus one; 0: it is not made like this.
EXPORTED uint64_t consan_begin(struct Armed *armed) {
    if (pthread_mutex_trylock(&launches.lock)) return 0;
    struct Slot *slot = NULL;
    bool noted = !armed->filter || notes_launches(armed);
    bool ready = armed->armed && !armed->busy && noted && take_receipts(armed, nanoseconds()) && find_slot(armed, &slot);
    uint64_t found = ready && prepare(armed, slot) ? (slot ? (uint64_t)(slot - armed->slots) + 1 : 1) : 0;
    if (slot) armed->busy = found;
    pthread_mutex_unlock(&launches.lock);
    return found;
}

// Behind one that has a slot. `made`: whether the driver has taken it. It was not taken back since.
EXPORTED void consan_end(struct Armed *armed, int made) {
    pthread_mutex_lock(&launches.lock);
    struct Slot *slot = &armed->slots[armed->busy - 1];
    armed->busy = 0;
    if (made) finish(armed, slot);
    pthread_mutex_unlock(&launches.lock);
}

// The driver's function, and what is called for a launch that is not armed.
EXPORTED void consan_launches(Launch *real, Launch *otherwise) { launches.real = real, launches.otherwise = otherwise; }

// Arm a launch. Gives nothing if there are too many. All that it names stays as it is until it is taken back. `shared`: what `consan_shares` gave
// before Python looked whether memory is shared.
EXPORTED struct Armed *consan_arm(const uint64_t *key, const struct Around *here, struct Filter *filter, uint64_t notes, uint64_t call, uint64_t shared) {
    struct Armed *found = NULL;
    pthread_mutex_lock(&launches.lock);
    for (int at = 0; at < MOST_ARMED && !found; at++)
        if (!launches.armed[at].taken) {
            found = &launches.armed[at];
            launches.used = at < launches.used ? launches.used : at + 1;
        }
    if (found) {
        *found =
            (struct Armed){.taken = true, .serial = consan_next_number(), .here = here, .filter = filter, .notes = notes, .call = call, .sharings = shared};
        memcpy(found->key, key, sizeof found->key);
    }
    pthread_mutex_unlock(&launches.lock);
    return found;
}

// Room for the values of its parameters and for the launches with each. The first are those of the launch before.
EXPORTED void consan_arm_values(struct Armed *armed, uint64_t count, const uint64_t *sizes, char *sets, uint64_t *times) {
    armed->count = count, armed->sizes = sizes, armed->sets = sets, armed->times = times, armed->set_count = 1;
    for (uint64_t at = 0; at < count; at++) armed->set_bytes += sizes[at];
}

// One more slot. `number`: of the launch that uses it.
EXPORTED void consan_arm_slot(struct Armed *armed, struct Around *around, uint64_t *slip, uint64_t number) {
    armed->slots[armed->slot_count++] = (struct Slot){around, (_Atomic uint64_t *)slip, number};
}

// The kernel that is launched, if it is another one, and the bytes that parameters must have. `over`: no launches are made once it is not 0.
EXPORTED void consan_arm_instead(struct Armed *armed, void *instead, uint64_t count, const struct Deciding *decides, const _Atomic int64_t *over) {
    armed->instead = instead, armed->decides = decides, armed->decide_count = count, armed->over = over;
}

// Launches are made from now on. `last`: the slot that was used last.
EXPORTED void consan_arm_begin(struct Armed *armed, const char *receipt, uint64_t nbytes, uint64_t last) {
    pthread_mutex_lock(&launches.lock);
    armed->receipt = receipt, armed->receipt_bytes = nbytes, armed->last = last, armed->armed = true;
    pthread_mutex_unlock(&launches.lock);
}

// Take a launch back. Gives how many sets of values there are, how many launches had the receipt, nanoseconds of work, the driver's status,
// the slot that was used last, that of a launch which Python makes now (plus one), and of each slot the number of the launch whose receipt
// has not come.
EXPORTED void consan_take_back(struct Armed *armed, uint64_t *result) {
    pthread_mutex_lock(&launches.lock);
    *result++ = armed->set_count, *result++ = armed->equal, *result++ = armed->nanoseconds, *result++ = armed->status;
    *result++ = armed->last, *result++ = armed->busy;
    for (uint64_t at = 0; at < armed->slot_count; at++) *result++ = armed->slots[at].number;
    armed->taken = armed->armed = false;
    pthread_mutex_unlock(&launches.lock);
}
