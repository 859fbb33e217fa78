// Calls that order streams.
#pragma once

#include "messages.h"

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
    uint64_t context;  // the part that is reported begins here
    char values[MOST_OF_CALL];
};

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
    report(CALLED, seen.number, (uint64_t)syscall(SYS_gettid), &seen.context, sizeof seen.context + seen.bytes);
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
