// Rounds of a loop that repeat are replayed once.
//
// A milestone is the completion of a barrier at which all threads wait that have not exited, and behind which all earlier accesses are forgotten
// (Barriers). A period leads from one milestone to a later one. Where the state at its end is the state at its beginning, and the words behind
// its end are again those of the period, another replay of them finds what the first one has found, and leaves the same state; so by induction
// do all further ones. They are skipped; events and findings are counted as often as they would have come.
//
// Why the state is the same if what is compared here is (`look` in rules.hpp), for a module that has only events of `taken`:
// - What the replay does next is a function of its state and of the words that its events read. No event looks at the clock of the host, at
//   addresses of memory, or at the number of a round.
// - Times are only compared with times of the same thread or warp: with what somebody knows of it. At a milestone everybody knows all that came
//   before, and nothing of what comes after. No item of Races is left. So all times can be moved by as much as a period takes.
// - Barriers: no round has arrivals (`idle`); the last round of each is not looked at any more, because a milestone came after it. No thread waits
//   at a warp barrier, for lanes that come together or for other warps of its warpgroup, because all wait here.
// - Calls of barriers: in no period do warps meet at different ones. So what is left out of their visits is alike for all, and only the visits of
//   one call are compared.
// - Initialised: its bytes and reads have a version. Its reads are older than the milestone, so that no later write explains one.
// - Copies: those in flight are compared one by one, their groups counted from the last group that their thread has waited for. Of a group that
//   was waited for before the milestone everybody knows that it is complete. No source in global memory is kept. What is in flight after a period
//   was issued in it, if the period has groups at all: so the numbers of all groups are moved.
// - Products: like copies, by the four warps that wait for them. What arrivals at mbarriers signal of them is not needed: no such module has any.
// - Writes that lack a proxy fence: what is left of their bytes behind later writes, whether they are ordered, and whether a fence is behind them.
// - Seals: all but the numbers of rounds, which are only compared with each other. All threads have come to as many.
// - Findings do not change what is found later. To merge the same ones again changes their counts only.
//
// A value that is stored is compared with another one only if there is a race, so values are not compared if the period has found nothing. The same holds for
// whether equality of values decides (Races::by_value).
// Global addresses, and the sources of copies there, are not compared: only the replay of a launch looks at them (Grid), and that skips nothing.
#pragma once

#include <algorithm>
#include <deque>
#include <iterator>
#include <vector>

#include "asynchronous.hpp"

struct Milestone {
    std::vector<u64> places;    // in the logs of the threads
    std::vector<u32> state;     // of what is compared; empty: nobody has looked
    std::vector<u32> findings;  // how often each was found
    std::vector<u32> groups;    // of copies, by thread
    std::vector<u32> commits;   // of products, by thread
    u64 events;
};

class Repeats {
  public:
    explicit Repeats(const Input &input) : input_(input), uses_(input.block_count + 1) {
        possible_ = input.ctas == 1 && !input.every && alike() && !(products_ && input.isa);
    }

    // Whether rounds may be skipped at all.
    bool possible() const { return possible_; }
    // Whether the module has copies.
    bool copies() const { return copies_; }
    // Whether it has products, or fences for them.
    bool products() const { return products_; }

    // Whether a thread's words behind a milestone are those since an earlier one. Only then is it worth while to look at the state.
    bool may_repeat(const Milestone &now, const LaneLog &log, u32 thread) const {
        auto again = [&](const Milestone &then) { return repeated(log, then.places[thread], now.places[thread], false, 1) != 0; };
        return std::any_of(milestones_.rbegin(), milestones_.rend(), again);
    }

    // The earlier milestone at which a period begins that is repeated now, and how often; null if there is none.
    const Milestone *find(const Milestone &now, const std::vector<LaneLog> &logs, const std::vector<bool> &gone, u64 &times) const {
        for (auto then = milestones_.rbegin(); then != milestones_.rend(); ++then) {
            if (then->state != now.state) continue;
            times = NEVER;
            for (u32 thread = 0; times && thread < logs.size(); ++thread)
                if (!gone[thread]) times = repeated(logs[thread], then->places[thread], now.places[thread], then->findings != now.findings, times);
            if (times && times != NEVER) return &*then;
        }
        return nullptr;
    }

    void keep(Milestone &&now) {
        milestones_.push_back(std::move(now));
        if (milestones_.size() > MOST) milestones_.pop_front();
    }

    // Periods begin at this milestone or later.
    void keep_only(Milestone &&now) {
        milestones_.clear();
        keep(std::move(now));
    }

  private:
    static constexpr size_t MOST = 16;  // barriers of a period
    static constexpr u64 NEVER = ~0ull;
    enum Use : u8 { NOT = 0, AS_VALUE = 1, ALWAYS = 2 };

    static bool taken(const Event &event) { return effects::has(event, effects::Trait::repeats); }

    // Whether all events are such; notes for what the words of the blocks are used.
    bool alike() {
        for (u32 number = 1; number <= input_.block_count; ++number) {
            const Block &block = input_.blocks[number];
            uses_[number].assign((size_t)block.words, NOT);
            if (block.words) uses_[number][0] = ALWAYS;  // its number
            for (i32 i = 0; i < block.events; ++i) {
                const Event &event = input_.events[block.first + i];
                if (!taken(event)) return false;
                bool outside = event.kind == GLOBAL_READ || event.kind == GLOBAL_WRITE || (event.kind == COPY_ISSUE && event.value_word >= 0);
                copies_ |= event.kind == COPY_ISSUE, products_ |= effects::has(event, effects::Trait::asynchronous);
                for (i32 word : {event.guard_word, event.address_word}) use(number, word, ALWAYS);
                for (i32 word : {event.a_word, event.b_word, event.c_word}) use(number, word, outside ? NOT : ALWAYS);
                use(number, event.value_word, outside ? NOT : event.kind == WRITE || event.kind == ATOMIC ? AS_VALUE : ALWAYS);
            }
        }
        return true;
    }

    void use(u32 number, i32 word, Use how) {
        if (word >= 0) uses_[number][(size_t)word] = std::max<u8>(uses_[number][(size_t)word], how);
    }

    // How often a thread's words between two places come again behind the second one, `most` at most. `values`: stored ones are compared too.
    u64 repeated(const LaneLog &log, u64 from, u64 to, bool values, u64 most) const {
        u64 length = to - from, at = to;
        for (u64 times = 0; length && times < most; ++times) {
            for (u64 end = at + length; at < end; at += (u64)input_.blocks[log.at(at)].words)
                if (!comes_again(log, at - length, at, values)) return times;
        }
        return length ? most : 0;
    }

    // Whether the block at one place is again at another one, and complete.
    bool comes_again(const LaneLog &log, u64 before, u64 at, bool values) const {
        u32 number = log.at(before);
        if (log.at(at) != number || at + (u64)input_.blocks[number].words >= input_.lines) return false;
        const std::vector<u8> &uses = uses_[number];
        for (size_t word = 1; word < uses.size(); ++word)
            if (uses[word] > (values ? NOT : AS_VALUE) && log.at(before + word) != log.at(at + word)) return false;
        return log.at(at + uses.size()) != 0;  // else the thread has ended in its midst
    }

    const Input &input_;
    std::vector<std::vector<u8>> uses_;  // by block: the Use of each word
    bool possible_ = false, copies_ = false, products_ = false;
    std::deque<Milestone> milestones_;  // the last ones
};
