// Seals (instrument/record/seals.py): barriers behind which no thread has copies in flight, so that the log needs neither the sources of copies
// nor the writes to global memory. The text shows that for each thread. Here is seen that threads at a seal
// wait only with threads at seals.
#pragma once

#include <algorithm>
#include <vector>

#include "shape.hpp"

class Seals {
  public:
    explicit Seals(const Shape &shape) : shape_(shape), rounds_(shape.threads(), 0), sealed_(shape.threads(), 0), copied_(sealed_), ctas_(shape.ctas()) {}

    // A thread arrives at barrier 0, where all threads meet. `waited`: for all of its copies.
    void arrive(u32 thread, bool seal, bool waited) {
        changed_ |= seal && !waited;
        u32 generation = ++rounds_[thread];
        Cta &cta = ctas_[shape_.home(thread)];
        if (sealed_[thread]) return;
        sealed_[thread] = seal;
        if (seal && !cta.seal) cta.seal = generation;
        if (!seal) cta.open = std::max(cta.open, generation);
        failed_ |= seal ? cta.seal != generation || cta.open >= generation : cta.seal && generation >= cta.seal;
    }

    void copy(u32 thread) {
        copied_[thread] = 1;
        u32 seal = ctas_[shape_.home(thread)].seal;
        failed_ |= seal && rounds_[thread] >= seal;
    }

    void exit(u32 thread) { changed_ |= copied_[thread] && !sealed_[thread]; }

    // What there is beside the rounds, as numbers. All threads of a CTA have come to as many of these behind a barrier of all.
    void state(std::vector<u32> &found) const {
        auto count = [](const std::vector<u8> &each) { return (u32)std::count_if(each.begin(), each.end(), [](u8 value) { return value != 0; }); };
        for (u32 each : {ctas_[0].seal, count(sealed_), count(copied_), (u32)failed_, (u32)changed_}) found.push_back(each);
    }
    // A changed kernel (consan/checker/questions/changes.py) may lack a wait or a seal: findings, if there are some, say that it was needed.
    bool failed(bool findings) const { return failed_ || (changed_ && !findings); }

  private:
    // The round of the first seal, and the last round in which a thread that had not passed a seal came to another barrier.
    struct Cta {
        u32 seal = 0, open = 0;
    };
    const Shape &shape_;
    std::vector<u32> rounds_;
    std::vector<u8> sealed_, copied_;
    std::vector<Cta> ctas_;
    bool failed_ = false, changed_ = false;
};
