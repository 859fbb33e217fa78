// Launches that are made without a question: the server has put them into pages that both processes map (consan/native/unasked.py).
//
// An entry has a word: its number, and how many launches were made. It is open while the word is not 0. A launch counts itself by an
// exchange of the word, so no launch is made by an entry that the server has taken back, and none goes uncounted. What is compared is a
// copy: the server may write another entry meanwhile, which has another number.
#pragma once

#include "streams.h"

#define MOST_UNASKED 256
#define UNASKED_VALUES 1904  // bytes: of each parameter its size, and the value behind it

struct Shape {
    unsigned grid[3], block[3], cluster[3], shared;
    uint64_t context;
    unsigned programmatic;  // it may start while the launch before it runs
    unsigned records;       // an event, by an attribute
};

struct UnaskedHead {
    _Atomic uint64_t word;
    _Atomic uint64_t function;  // that the program launches
};

struct Unasked {
    uint64_t instead, context, stream;
    unsigned sizes[10];
    uint32_t count, bytes;  // of parameters, and of what is stored of them
    char values[UNASKED_VALUES];
};

struct UnaskedTable {  // behind what was spent
    struct UnaskedHead heads[MOST_UNASKED];
    struct Unasked entries[MOST_UNASKED];
};

struct MadeUnasked {  // a launch that has counted itself
    struct UnaskedHead *head;
    uint64_t word;
};

static struct UnaskedTable *unasked(void) { return behind_table(sizeof(struct Spent), sizeof(struct UnaskedTable)); }

static bool rest_on_order(void) {
    struct UnaskedTable *all = unasked();
    for (int at = 0; all && at < MOST_UNASKED; at++)
        if (atomic_load_explicit(&all->heads[at].word, memory_order_relaxed)) return true;
    return false;
}

static bool has_values(const struct Unasked *entry, void **arguments) {
    uint32_t size, at = 0;
    if (entry->count && arguments == NULL) return false;
    for (uint32_t i = 0; i < entry->count; i++, at += size) {
        if (entry->bytes - at < sizeof size) return false;
        memcpy(&size, entry->values + at, sizeof size);
        at += sizeof size;
        if (size > entry->bytes - at || arguments[i] == NULL || memcmp(arguments[i], entry->values + at, size) != 0) return false;
    }
    return true;
}

// Copy an entry, as it is with this word. False: it is another one by now.
static bool copy_entry(struct UnaskedTable *all, int at, uint64_t word, struct Unasked *copy) {
    memcpy(copy, &all->entries[at], offsetof(struct Unasked, values));
    if (copy->bytes > UNASKED_VALUES) return false;
    memcpy(copy->values, all->entries[at].values, copy->bytes);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load(&all->heads[at].word) >> 32 == word >> 32;
}

// Find the launch among the entries, and count it. The kernel to launch is in `instead`.
static struct MadeUnasked make_unasked(Handle function, Handle stream, const struct Shape *shape, void **arguments, Handle *instead) {
    struct UnaskedTable *all = unasked();
    struct Unasked copy;
    if (all == NULL || shape->programmatic || shape->records) return (struct MadeUnasked){NULL, 0};
    for (int at = 0; at < MOST_UNASKED; at++) {
        struct UnaskedHead *head = &all->heads[at];
        if (atomic_load_explicit(&head->function, memory_order_relaxed) != (uintptr_t)function) continue;
        uint64_t word = atomic_load(&head->word);
        if (word == 0 || !copy_entry(all, at, word, &copy)) continue;
        if (copy.context != shape->context || copy.stream != (uintptr_t)stream || memcmp(copy.sizes, shape, sizeof copy.sizes) != 0) continue;
        if (!has_values(&copy, arguments)) continue;
        for (uint64_t number = word >> 32; word >> 32 == number && (uint32_t)word != UINT32_MAX;)
            if (atomic_compare_exchange_weak(&head->word, &word, word + 1)) {
                *instead = copy.instead ? (Handle)(uintptr_t)copy.instead : function;
                return (struct MadeUnasked){head, word};
            }
    }
    return (struct MadeUnasked){NULL, 0};
}

// The driver has refused it: it is none.
static void uncount(struct MadeUnasked made) {
    for (uint64_t word = atomic_load(&made.head->word); word >> 32 == made.word >> 32 && (uint32_t)word;)
        if (atomic_compare_exchange_weak(&made.head->word, &word, word - 1)) break;
}
