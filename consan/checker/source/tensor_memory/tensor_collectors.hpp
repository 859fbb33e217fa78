// Collector buffers (SEMANTICS 4.4, R-T14; ISA "tcgen05.mma": .collector_usage): which matrix each of them holds.
//
// A buffer is a permission to cache, so it orders nothing. A product that says `use` or `lastuse` must find the fill of its own matrix.
#pragma once

#include <array>
#include <vector>

#include "tensor_allocations.hpp"

class Collectors {
  public:
    // A matrix in shared or tensor memory, how its rows are read, and the kind of the product.
    struct Matrix {
        u64 address;
        u32 shape, kind;
        bool operator==(const Matrix &other) const { return address == other.address && shape == other.shape && kind == other.kind; }
    };

    Collectors(const Shape &shape, Findings &findings) : shape_(shape), findings_(findings), held_(shape.ctas()) {}

    // A product. Its collector: the number of the buffer (A, then B 0 to 3), and what happens to it.
    void use(u32 thread, const effects::TensorMma &product, const Matrix &matrix) {
        u32 cta = product.pair() ? shape_.home(thread) & ~1u : shape_.home(thread), usage = product.collector() & 3;
        Held &held = held_[cta][product.collector() >> 2];
        if (usage >= USE && !held.valid) misuse(held.site ? COLLECTOR_DISCARDED : COLLECTOR_EMPTY, thread, product.site(), held);
        else if (usage >= USE && !(held.matrix == matrix)) misuse(COLLECTOR_OTHER, thread, product.site(), held);
        if (usage == USE) return;
        held = {usage == FILL_IT, matrix, product.site(), thread};
    }

  private:
    enum Usage : u32 { DISCARD = 0, FILL_IT, USE, LAST_USE };
    struct Held {
        bool valid = false;
        Matrix matrix{};
        u32 site = 0, thread = 0;  // of the product that filled it, or emptied it
    };

    void misuse(Reason reason, u32 thread, u32 site, const Held &held) {
        Record found{};
        found.kind = TENSOR_MISUSE, found.reason = reason;
        found.site = site, found.other_site = held.site;
        found.thread = thread, found.other_thread = held.site ? held.thread : thread;
        findings_.add(found);
    }

    const Shape &shape_;
    Findings &findings_;
    std::vector<std::array<Held, 5>> held_;  // by CTA; of a pair by the even one
};
