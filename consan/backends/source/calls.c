// The function that CUPTI calls. It drops launches that add nothing to the order of streams (consan/backends/call_filter.py).
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define API_EXIT 1 // CUPTI_API_EXIT
#define MOST_CALLBACKS 4096

struct CallbackData { // CUpti_CallbackData
    int site;
    const char *name;
    const void *parameters;
    const int *status;
    const char *symbol;
    void *context;
};

struct StreamPlace { // where a launch has its stream
    uint32_t behind; // the bytes before it among the parameters, plus one; 0: the call is no launch
    int32_t within;  // there is an address, and the stream is so many bytes behind it; less than 0: it is the stream
};

struct Filter {
    void (*tell)(void *, int, uint32_t, const struct CallbackData *);
    _Atomic uint64_t stream, context; // launches into this stream are dropped; none: all ones
    struct StreamPlace places[MOST_CALLBACKS];
};

static bool tells_nothing(const struct Filter *filter, uint32_t number, const struct CallbackData *data) {
    uint64_t stream = atomic_load(&filter->stream), found;
    if (stream == UINT64_MAX || number >= MOST_CALLBACKS || !data->parameters) return false;
    struct StreamPlace place = filter->places[number];
    if (!place.behind || (uintptr_t)data->context != atomic_load(&filter->context)) return false;
    const char *at = (const char *)data->parameters + place.behind - 1;
    if (place.within >= 0) {
        const char *configuration;
        memcpy(&configuration, at, sizeof configuration);
        if (!configuration) return false;
        at = configuration + place.within;
    }
    memcpy(&found, at, sizeof found);
    return found == stream;
}

__attribute__((visibility("default"))) void consan_called(struct Filter *filter, int domain, uint32_t number, const struct CallbackData *data) {
    if (data->site == API_EXIT && !tells_nothing(filter, number, data)) filter->tell(NULL, domain, number, data);
}
