// The work of consan's own in a stream before and behind a launch of the program: all calls of the driver at once.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define ELSEWHERE (-1) // another context is current
#define CAPTURED (-2)  // the stream is captured

// Make the context current: 0, and `pushed` if it was not; or what stands against it.
static int enter(const struct Around *work, bool *pushed) {
    void *current = NULL;
    int status = work->driver->get_current(&current);
    *pushed = !status && !current;
    if (status) return status;
    return current ? (current == work->context ? 0 : ELSEWHERE) : work->driver->push(work->context);
}

static void leave(const struct Around *work, bool pushed) {
    void *popped;
    if (pushed) work->driver->pop(&popped);
}

static int put_before(const struct Around *work, void *stream, bool copies) {
    int status = 0, captured = 0;
    if ((uintptr_t)stream > LEGACY) {
        status = work->driver->is_capturing(stream, &captured);
        if (status || captured) return status ? status : CAPTURED;
    }
    for (int at = 0; at < PIECES && !status; at++) {
        const struct Piece *piece = &work->clears[at];
        if (piece->nbytes) status = work->driver->set(piece->address, 0, piece->nbytes, stream);
    }
    for (int at = 0; at < PIECES && copies && !status; at++) {
        const struct Piece *piece = &work->copies[at];
        if (piece->nbytes) status = work->driver->copy(piece->address, piece->source, piece->nbytes, stream);
    }
    return status ? status : work->driver->record(work->begun, stream);
}

static int put_behind(struct Around *work, void *stream) {
    void *parameters[NUMBERS];
    for (uint32_t at = 0; at < NUMBERS; at++) parameters[at] = &work->numbers[at];
    int status = work->driver->launch(work->function, work->ctas, 1, 1, work->threads, 1, 1, 0, stream, parameters, NULL);
    return status ? status : work->driver->record(work->ended, stream);
}

// Before the launch. `copies`: the pieces are copied, too.
EXPORTED int consan_before(const struct Around *work, uint64_t stream, int copies) {
    bool pushed;
    own_calls++;
    int status = enter(work, &pushed);
    if (!status) status = put_before(work, (void *)(uintptr_t)stream, copies);
    leave(work, pushed);
    own_calls--;
    return status;
}

// Behind it. `number`: the last parameter of the kernel.
EXPORTED int consan_behind(struct Around *work, uint64_t stream, uint64_t number) {
    bool pushed;
    own_calls++;
    work->numbers[work->count - 1] = number;
    int status = enter(work, &pushed);
    if (!status) status = put_behind(work, (void *)(uintptr_t)stream);
    leave(work, pushed);
    own_calls--;
    return status;
}
