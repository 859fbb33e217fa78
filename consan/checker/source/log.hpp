// Reads the log of a lane: block numbers and words become events.
#pragma once

#include "types.hpp"

class LaneLog {
  public:
    LaneLog() = default;
    LaneLog(const Input &input, u32 thread) : input_(&input), words_(input.log + (u64)(thread / LANES) * input.lines * LANES + thread % LANES) {}

    enum State { EVENT, FINISHED, STOPPED, BROKEN };

    // Advance to the next event that happened.
    State next() {
        for (;;) {
            while (left_ == 0) {
                State state = open();
                if (state != EVENT) return state;
            }
            --left_;
            event_ = next_++;
            if (happened()) return EVENT;
        }
    }

    const Event &event() const { return *event_; }
    u32 address() const { return (event_->address_word < 0 ? 0 : word(event_->address_word)) + (u32)event_->offset; }
    u32 a() const { return event_->a_word < 0 ? (u32)event_->a : word(event_->a_word); }
    u32 b() const { return event_->b_word < 0 ? (u32)event_->b : word(event_->b_word); }
    u32 b_address() const { return (event_->b_word < 0 ? 0 : word(event_->b_word)) + (u32)event_->b; }
    bool has_value() const { return event_->value_word >= 0; }
    u32 value() const { return word(event_->value_word); }
    u64 wide_value() const { return (u64)value_at(1) << 32 | value(); }
    u32 value_at(u32 place) const { return word(event_->value_word + (i32)place); }

    // Whether the log ran out of room: then its last line is not zero.
    bool full() const { return words_[(input_->lines - 1) * LANES] != 0; }

  private:
    State open() {
        if (at_ + size_ >= input_->lines) return BROKEN;
        at_ += size_;
        size_ = 0;
        u32 number = words_[at_ * LANES];
        if (number == END) return FINISHED;
        if (number == STOP || number == 0) return STOPPED;
        if (number > input_->block_count) return BROKEN;
        const Block &block = input_->blocks[number];
        size_ = (u64)block.words;
        if (at_ + size_ >= input_->lines) return BROKEN;
        if (words_[(at_ + size_) * LANES] == 0) return STOPPED;  // the launch ended in the midst of the block: not all its words are there
        next_ = input_->events + block.first;
        left_ = (u32)block.events;
        return EVENT;
    }

    u32 word(i32 position) const { return words_[(at_ + (u64)position) * LANES]; }

    bool happened() const {
        if (event_->guard_word >= 0 && word(event_->guard_word) == NOTHING) return false;
        return event_->address_word < 0 || word(event_->address_word) != NOTHING;
    }

    const Input *input_ = nullptr;
    const u32 *words_ = nullptr;
    const Event *event_ = nullptr, *next_ = nullptr;
    u64 at_ = 0, size_ = 0;
    u32 left_ = 0;
};
