// The function that CUPTI calls, on the thread that has called the driver. It does not wait for the interpreter of Python.
//
// It drops what has no effect on the order of streams, notes calls that Python reads later, and reports all others to Python at once
// (consan/backends/call_filter.py has the kinds of calls, and when they are noted).
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define API_EXIT 1      // CUPTI_API_EXIT
#define OUT_OF_MEMORY 2 // CUDA_ERROR_OUT_OF_MEMORY
#define MEMORY_TYPE 2   // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
#define LEGACY 1        // CU_STREAM_LEGACY; no stream is less
#define MOST_CALLBACKS 4096
#define MOST_NOTED 1024
#define WORDS 4
#define MOST_OPERATIONS 64 // one more: a launch of unknown accesses stands for all of them

enum CallKind { AT_ONCE, LAUNCH, GRAPH, OPERATION, COPY, EVENT, EVENT_USE, WAIT, FREE, ALLOCATION };

struct CallbackData { // CUpti_CallbackData
    int site;
    const char *name;
    const void *parameters;
    const int *status;
    const char *symbol;
    void *context;
};

struct CallRule {
    uint32_t behind; // the bytes before its stream among the parameters, plus one; 0: it has none
    int32_t within;  // there is an address, and the stream is so many bytes behind it; less than 0: it is the stream
    uint32_t kind, nbytes;
    uint32_t allocates; // it is reported if the device has no memory for it
};

struct NotedCall {
    uint32_t number, kind;
    uint64_t words[WORDS]; // its parameters
};

struct Filter {
    void (*tell)(void *, int, uint32_t, const struct CallbackData *);
    int (*attribute)(void *, int, uint64_t); // cuPointerGetAttribute
    _Atomic uint64_t stream, context;        // launches into this stream are dropped; none: all ones
    _Atomic uint64_t graph;                  // 0: those of kernels; else those of this executable graph
    _Atomic uint64_t notes;                  // the context whose calls are noted; none: all ones
    atomic_flag busy;                        // held by who uses what is below
    uint32_t launched;                       // a launch is noted, and no event behind it
    uint32_t operations, events, count;
    struct CallRule rules[MOST_CALLBACKS];
    struct NotedCall noted[MOST_NOTED];
};

static __thread int own_calls; // more than 0: this thread calls for consan itself

__attribute__((visibility("default"))) int *consan_own_calls(void) { return &own_calls; }

#include "around.h"

static bool find_stream(const struct CallRule *rule, const char *parameters, uint64_t *stream) {
    *stream = 0;
    if (!rule->behind) return true;
    if (!parameters) return false;
    const char *at = parameters + rule->behind - 1;
    if (rule->within >= 0) {
        const char *configuration;
        memcpy(&configuration, at, sizeof configuration);
        if (!configuration) return false;
        at = configuration + rule->within;
    }
    memcpy(stream, at, sizeof *stream);
    return true;
}

static bool is_passed_over(struct Filter *filter, const struct CallRule *rule, const struct CallbackData *data) {
    uint64_t stream = atomic_load(&filter->stream), graph = atomic_load(&filter->graph), found;
    if (stream == UINT64_MAX || rule->kind != (graph ? GRAPH : LAUNCH) || (uintptr_t)data->context != atomic_load(&filter->context)) return false;
    if (graph && (!data->parameters || memcmp(data->parameters, &graph, sizeof graph) != 0)) return false;
    return find_stream(rule, data->parameters, &found) && found == stream;
}

static bool is_pageable(const struct Filter *filter, uint64_t address) {
    unsigned int kind;
    own_calls++;
    bool unknown = !filter->attribute || filter->attribute(&kind, MEMORY_TYPE, address) != 0;
    own_calls--;
    return unknown;
}

static void copy_parameters(void *target, size_t most, uint32_t nbytes, const void *parameters) {
    memset(target, 0, most);
    if (nbytes && parameters) memcpy(target, parameters, nbytes < most ? nbytes : most);
}

// The host has waited for all that was noted: only events are of use.
static void forget(struct Filter *filter) {
    filter->launched = filter->operations = 0;
    if (!filter->events) filter->count = 0;
}

static bool note(struct Filter *filter, uint32_t number, enum CallKind kind, const struct CallbackData *data) {
    if (kind == WAIT) forget(filter);
    if (kind == OPERATION && filter->operations == MOST_OPERATIONS && !filter->events) {
        forget(filter);
        kind = LAUNCH;
    }
    if (kind == LAUNCH && filter->launched) return true;
    if (filter->count == MOST_NOTED) return false;
    struct NotedCall *call = &filter->noted[filter->count++];
    call->number = number, call->kind = kind;
    copy_parameters(call->words, sizeof call->words, filter->rules[number].nbytes, data->parameters);
    filter->operations += kind == OPERATION;
    filter->launched = kind != EVENT && (filter->launched || kind == LAUNCH);
    filter->events += kind == EVENT || kind == EVENT_USE;
    return true;
}

static bool is_noted(struct Filter *filter, uint32_t number, const struct CallbackData *data) {
    const struct CallRule *rule = &filter->rules[number];
    enum CallKind kind = rule->kind;
    uint64_t stream, words[2];
    if (kind == AT_ONCE || kind == GRAPH || kind == ALLOCATION || (uintptr_t)data->context != atomic_load(&filter->notes)) return false;
    if (!find_stream(rule, data->parameters, &stream) || stream > LEGACY) return false;
    copy_parameters(words, sizeof words, rule->nbytes, data->parameters);
    if (kind == FREE && !words[0]) return true;
    if (kind == COPY) kind = is_pageable(filter, words[0]) || is_pageable(filter, words[1]) ? WAIT : OPERATION;
    while (atomic_flag_test_and_set_explicit(&filter->busy, memory_order_acquire));
    atomic_store(&filter->stream, UINT64_MAX);
    bool done = (uintptr_t)data->context == atomic_load(&filter->notes) && note(filter, number, kind == FREE ? WAIT : kind, data);
    atomic_flag_clear_explicit(&filter->busy, memory_order_release);
    return done;
}

// Take what is noted. Gives how many calls that is. `notes`: the context whose calls are noted from now on.
__attribute__((visibility("default"))) uint32_t consan_take_noted(struct Filter *filter, struct NotedCall *calls, uint64_t notes) {
    while (atomic_flag_test_and_set_explicit(&filter->busy, memory_order_acquire));
    uint32_t count = filter->count;
    memcpy(calls, filter->noted, count * sizeof *calls);
    filter->count = filter->launched = filter->operations = filter->events = 0;
    atomic_store(&filter->notes, notes);
    atomic_flag_clear_explicit(&filter->busy, memory_order_release);
    return count;
}

__attribute__((visibility("default"))) void consan_called(struct Filter *filter, int domain, uint32_t number, const struct CallbackData *data) {
    if (data->site != API_EXIT || own_calls > 0) return;
    if (number >= MOST_CALLBACKS) return;
    const struct CallRule *rule = &filter->rules[number];
    if (data->parameters || !rule->nbytes) {
        if (data->status && *data->status && !(rule->allocates && *data->status == OUT_OF_MEMORY)) return;
        if (!data->status || !*data->status) {
            if (rule->kind == ALLOCATION || is_passed_over(filter, rule, data) || is_noted(filter, number, data)) return;
        }
    }
    filter->tell(NULL, domain, number, data);
}
