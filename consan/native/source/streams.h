// Calls that order streams.
#pragma once

#include "messages.h"

//
// The server chooses the library of CUPTI and the calls (consan/native/calls.py). Behind each of them it gets the parameters.
//
// The thread waits for no answer to a call of which the server asks the driver nothing: it knows the stream, from a call before that it
// has answered. What comes behind on the connection comes behind it in the order of streams, too.

struct Followed {  // by the number of the function
    uint32_t number, bytes;    // of its parameters
    uint64_t pointer, behind;  // where the address of a value is among them (beyond them: there is none), and how far before the value
    uint64_t way, stream;      // enum Way; where its stream is among the parameters (beyond them: it has none)
};
#define LEGACY 1  // the default stream of a context
enum Way { IS_ASKED, MAY_BE_NOTED, ENDS_STREAMS };
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

#define MOST_KNOWN 256
static _Atomic uint64_t known_streams[MOST_KNOWN];  // the server knows them

static _Atomic uint64_t *place_of_stream(uint64_t stream) { return &known_streams[(stream >> 4) % MOST_KNOWN]; }

static void forget_streams(void) {
    for (int i = 0; i < MOST_KNOWN; i++) atomic_store(&known_streams[i], 0);
}

static bool is_known(uint64_t stream) { return stream == LEGACY || atomic_load(place_of_stream(stream)) == stream; }

// The stream of a call; the legacy default stream where it has none.
static uint64_t stream_of(const struct Followed *form, const char *values) {
    uint64_t stream = LEGACY;
    if (form->stream + sizeof stream <= form->bytes) memcpy(&stream, values + form->stream, sizeof stream);
    return stream ? stream : LEGACY;
}

static bool rest_on_order(void);

struct Seen {  // a call
    uint32_t number, bytes;
    uint64_t context;  // the part that is reported begins here
    char values[MOST_OF_CALL];
};

// Tell the server. Launches that are made without a question rest on the order of streams: while there are any, nothing is noted.
static void tell_call(struct Seen *seen, bool noted) {
    struct Head head;
    char *answer;
    uint64_t thread = (uint64_t)syscall(SYS_gettid), length = sizeof seen->context + seen->bytes;
    int before = errno;
    pthread_mutex_lock(&turn);
    uint64_t begun = nanoseconds();
    if (!noted || rest_on_order()) {
        if (ask_in_turn(CALLED, seen->number, thread, &seen->context, length, &head, &answer)) free(answer);
    } else if (connected()) {
        if (!tell(requests, NOTED, seen->number, thread, &seen->context, length)) lose();
        spend(true, nanoseconds() - begun);
    }
    pthread_mutex_unlock(&turn);
    errno = before;
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
    uint64_t stream = stream_of(&form, seen.values);
    if (form.way == ENDS_STREAMS) forget_streams();
    tell_call(&seen, form.way == MAY_BE_NOTED && is_known(stream));
    if (form.way == MAY_BE_NOTED) atomic_store(place_of_stream(stream), stream);
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
