// Reads the log of a lane: block numbers and words become events.
#pragma once

#include "types.hpp"

class LaneLog {
  public:
    LaneLog() = default;
    LaneLog(const Input &input, u32 thread)
        : input_(&input), words_(input.log + warp_of(input, thread) * input.lines * LANES + thread % LANES), retained_(at(input.lines - 1)) {}

    // CUT: the log has run out of room here.
    enum State { EVENT, FINISHED, STOPPED, BROKEN, CUT };

    // Advance to the next event that happened.
    State next() {
        return next([](const Event &) { return true; });
    }

    // The same for the events of some kinds only: wanted(event).
    template <typename Wanted> State next(Wanted wanted) {
        for (;;) {
            while (left_ == 0) {
                if (open_) return stopped();
                State state = open();
                if (state != EVENT) return state;
            }
            --left_;
            event_ = next_++;
            if (wanted(*event_) && happened()) return EVENT;
        }
    }

    const Event &event() const { return *event_; }
    bool has_event() const { return event_; }  // some event has come
    // Words of the event's block, for effects.hpp: one, two as an address, the sum of a number and of a word that may be missing.
    u32 at_word(i32 position) const { return word(position); }
    u64 wide(i32 position) const { return (u64)word(position + 1) << 32 | word(position); }
    u32 sum(i32 number, i32 position) const { return (position < 0 ? 0 : word(position)) + (u32)number; }

    // Whether the thread has exited: `next` said so.
    bool is_over() const { return left_ == 0 && size_ == 0; }

    // What follows the block: the number of the next one, a mark, or 0.
    u32 following() const { return at_ + size_ < input_->lines ? words_[(at_ + size_) * LANES] : 0; }
    // Whether the thread did nothing after this event.
    bool is_last() const { return left_ == 0 && (following() == 0 || (following() >= LEFT && following() < END)); }

    // The place of the next block, and whether all events of this one are over.
    u64 place() const { return at_ + size_; }
    bool between() const { return left_ == 0 && !open_; }
    u32 at(u64 place) const { return words_[place * LANES]; }
    // Leave out the next lines.
    void skip(u64 lines) { at_ += size_ + lines, size_ = 0; }

    // Whether the log ran out of room: then its last line says how many lines nobody has written over.
    bool full() const { return retained_ != 0; }

  private:
    State stopped() const { return full() ? CUT : STOPPED; }

    // The place of a thread's warp in the log, where CTAs follow each other without gaps.
    static u64 warp_of(const Input &input, u32 thread) {
        return (u64)(thread / input.cta_threads) * ((input.threads + LANES - 1) / LANES) + thread % input.cta_threads / LANES;
    }

    State open() {
        if (at_ + size_ >= input_->lines) return BROKEN;
        at_ += size_;
        size_ = 0;
        if (full() && at_ >= retained_) return CUT;
        u32 number = words_[at_ * LANES];
        if (number == END) return FINISHED;
        if (number >= LEFT || number == 0) return stopped();
        if (number > input_->block_count) return BROKEN;
        const Block &block = input_->blocks[number];
        size_ = (u64)block.words;
        if (full() && at_ + size_ > retained_) return CUT;
        if (at_ + size_ >= input_->lines) return BROKEN;
        open_ = !input_->closed && words_[(at_ + size_) * LANES] == 0;  // the launch ended in the midst of the block: not all its words are there
        if (open_ && number != input_->open_block) return stopped();
        next_ = input_->events + block.first;
        left_ = open_ ? input_->open_events : (u32)block.events;
        if (left_ == 0 && open_) return stopped();
        return EVENT;
    }

    u32 word(i32 position) const { return words_[(at_ + (u64)position) * LANES]; }

    bool happened() const {
        if (event_->guard_word >= 0 && word(event_->guard_word) == NOTHING) return false;
        if (event_->address_word < 0) return true;
        return word(event_->address_word) != NOTHING && !(open_ && word(event_->address_word) == 0);
    }

    const Input *input_ = nullptr;
    const u32 *words_ = nullptr;
    const Event *event_ = nullptr, *next_ = nullptr;
    u64 at_ = 0, size_ = 0;
    u32 left_ = 0, retained_ = 0;
    bool open_ = false;
};
