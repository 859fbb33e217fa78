// Computes full logs from compact ones: runs the text for the host (instrument/record/text/expansion.py) as a program of steps
// (consan/checker/logs/program.py).
//
// Threads of such a text do not meet and have no memory in common: each stores its own words. So a warp is run by itself, and its lanes may go on in any
// order: those at the lowest step first, together with all others that are there.
//
// A log lies where the program believes it to be (ExpandMemory): its words are stored elsewhere, as far as there is room, and it says how many lines it has.
// All addresses are checked: a step that accesses other memory than the host gives, or that this machine does not execute, ends the program, and the
// virtual machine runs the text.
#pragma once

#include <algorithm>
#include <vector>

#include "lanes.hpp"

class ExpansionWarp {
  public:
    // `log`: room for so many lines.
    ExpansionWarp(const Expansion &given, u32 cta, u32 warp, u32 *log, u64 room)
        : given_(given), cta_(cta), warp_(warp), log_((u8 *)log), room_(room * LINE), registers_((size_t)given.slots * LANES) {
        for (u32 slot = 0; slot < given.slots; ++slot) std::fill_n(row(slot), LANES, given.values[slot]);
        for (u32 lane = 0; lane < LANES; ++lane) {
            u32 thread = warp * LANES + lane;
            if (thread < given.threads) mask_ |= 1u << lane;
            row(SLOT_TID_X)[lane] = thread % given.width, row(SLOT_TID_Y)[lane] = thread / given.width % given.height;
            row(SLOT_TID_Z)[lane] = thread / given.width / given.height, row(SLOT_LANE)[lane] = lane, row(SLOT_CTA)[lane] = cta;
        }
    }

    // Run to the end; `budget`: of steps.
    ExpandEnd run(u64 &budget) {
        for (u32 at = 0; mask_;) {
            if (at >= others_first_) {
                at = change(at);
                continue;
            }
            const ExpandStep &step = given_.steps[at];
            u32 active = mask_ & guarded(step);
            ++at;
            if (!budget--) return EXPANSION_LONG;
            if (step.code == STEP_JUMP) at = jump(step, active, at);
            else if (step.code == STEP_LEAVE) at = leave(active, at);
            else if (active && !executed(step, active)) return status_;
        }
        return EXPANSION_EXPANDED;
    }

    u32 lines() const { return lines_; }

  private:
    struct Others {
        u32 at, mask;
    };

    u64 *row(u32 slot) { return registers_.data() + (size_t)slot * LANES; }

    u32 guarded(const ExpandStep &step) {
        if (!step.guard) return ~0u;
        const u64 *values = row(step.guard);
        u32 found = 0;
        for (u32 lane = 0; lane < LANES; ++lane) found |= (u32)(values[lane] & 1) << lane;
        return step.negated ? ~found : found;
    }

    u32 jump(const ExpandStep &step, u32 active, u32 at) {
        if (active == mask_) return step.target;
        if (active) {
            wait(step.target, active);
            mask_ &= ~active;
        }
        return at;
    }

    u32 leave(u32 active, u32 at) {
        mask_ &= ~active;
        return mask_ ? at : next();
    }

    void wait(u32 at, u32 mask) {
        others_.push_back({at, mask});
        others_first_ = std::min(others_first_, at);
    }

    // Lanes that are at this step meet those that wait at an earlier one, or at the same.
    u32 change(u32 at) {
        wait(at, mask_);
        mask_ = 0;
        return next();
    }

    u32 next() {
        u32 at = others_first_, left = NOTHING;
        size_t left_over = 0;
        for (const Others &each : others_) {
            if (each.at == at) {
                mask_ |= each.mask;
            } else {
                left = std::min(left, each.at);
                others_[left_over++] = each;
            }
        }
        others_.resize(left_over);
        others_first_ = left;
        return at;
    }

    bool executed(const ExpandStep &step, u32 active) {
        switch (step.type) {
        case AS_U8: return computed<u8>(step, active);
        case AS_S8: return computed<signed char>(step, active);
        case AS_U16: return computed<u16>(step, active);
        case AS_S16: return computed<int16_t>(step, active);
        case AS_U32: return computed<u32>(step, active);
        case AS_S32: return computed<i32>(step, active);
        case AS_U64: return computed<u64>(step, active);
        case AS_S64: return computed<i64>(step, active);
        default: return failed(EXPANSION_UNKNOWN);
        }
    }

    bool failed(ExpandEnd status) {
        status_ = status;
        return false;
    }

    template <typename F> bool each(const ExpandStep &step, u32 active, F f) {
        const u64 *a = row(step.a), *b = row(step.b), *c = row(step.c), *d = row(step.d);
        u64 made[LANES], mask = low_bits(step.bits);
        for (u32 lane = 0; lane < LANES; ++lane) made[lane] = (u64)f(a[lane], b[lane], c[lane], d[lane]) & mask;
        u64 *into = row(step.into);
        if (active == ~0u) memcpy(into, made, sizeof made);
        else
            for (u32 lane = 0; lane < LANES; ++lane) into[lane] = active >> lane & 1 ? made[lane] : into[lane];
        return true;
    }

    template <typename T> bool computed(const ExpandStep &step, u32 active) {
        using N = Of<T>;
        switch (step.code) {
        case STEP_LOAD: return load<T>(step, active);
        case STEP_STORE: return store<T>(step, active);
        case STEP_MOVE: return each(step, active, [](u64 a, u64, u64, u64) { return (u64)(T)a; });
        case STEP_ADD: return each(step, active, [](u64 a, u64 b, u64, u64) { return a + b; });
        case STEP_SUB: return each(step, active, [](u64 a, u64 b, u64, u64) { return a - b; });
        case STEP_MUL: return each(step, active, [](u64 a, u64 b, u64, u64) { return a * b; });
        case STEP_MUL_HIGH: return each(step, active, [](u64 a, u64 b, u64, u64) { return N::product(a, b, N::BITS); });
        case STEP_MUL_WIDE: return each(step, active, [](u64 a, u64 b, u64, u64) { return (u64)(T)a * (u64)(T)b; });
        case STEP_MAD: return each(step, active, [](u64 a, u64 b, u64 c, u64) { return a * b + c; });
        case STEP_MAD_HIGH: return each(step, active, [](u64 a, u64 b, u64 c, u64) { return N::product(a, b, N::BITS) + c; });
        case STEP_MAD_WIDE: return each(step, active, [](u64 a, u64 b, u64 c, u64) { return (u64)(T)a * (u64)(T)b + c; });
        case STEP_DIV: return each(step, active, [](u64 a, u64 b, u64, u64) { return N::divided(a, b); });
        case STEP_REM: return each(step, active, [](u64 a, u64 b, u64, u64) { return N::rest(a, b); });
        default: return chosen<T>(step, active);
        }
    }

    template <typename T> bool chosen(const ExpandStep &step, u32 active) {
        switch (step.code) {
        case STEP_MIN: return each(step, active, [](u64 a, u64 b, u64, u64) { return (T)a < (T)b ? a : b; });
        case STEP_MAX: return each(step, active, [](u64 a, u64 b, u64, u64) { return (T)a > (T)b ? a : b; });
        case STEP_ABS: return each(step, active, [](u64 a, u64, u64, u64) { return (T)a < 0 ? 0 - a : a; });
        case STEP_EQUAL: return each(step, active, [](u64 a, u64 b, u64, u64) { return (u64)((T)a == (T)b); });
        case STEP_UNEQUAL: return each(step, active, [](u64 a, u64 b, u64, u64) { return (u64)((T)a != (T)b); });
        case STEP_LESS: return each(step, active, [](u64 a, u64 b, u64, u64) { return (u64)((T)a < (T)b); });
        case STEP_AT_MOST: return each(step, active, [](u64 a, u64 b, u64, u64) { return (u64)((T)a <= (T)b); });
        case STEP_SELECT: return each(step, active, [](u64 a, u64 b, u64 c, u64) { return c & 1 ? a : b; });
        default: return bitwise<T>(step, active);
        }
    }

    template <typename T> bool bitwise(const ExpandStep &step, u32 active) {
        using N = Of<T>;
        switch (step.code) {
        case STEP_AND: return each(step, active, [](u64 a, u64 b, u64, u64) { return a & b; });
        case STEP_OR: return each(step, active, [](u64 a, u64 b, u64, u64) { return a | b; });
        case STEP_XOR: return each(step, active, [](u64 a, u64 b, u64, u64) { return a ^ b; });
        case STEP_NOT: return each(step, active, [](u64 a, u64, u64, u64) { return ~a; });
        case STEP_LOOK_UP: return each(step, active, looked_up);
        case STEP_LEFT_SHIFT: return each(step, active, [](u64 a, u64 b, u64, u64) { return N::left(a, b); });
        case STEP_RIGHT_SHIFT: return each(step, active, [](u64 a, u64 b, u64, u64) { return N::right(a, b); });
        case STEP_FUNNEL_LEFT: return each(step, active, [](u64 a, u64 b, u64 c, u64 wraps) { return funnel(a, b, c, true, wraps); });
        case STEP_FUNNEL_RIGHT: return each(step, active, [](u64 a, u64 b, u64 c, u64 wraps) { return funnel(a, b, c, false, wraps); });
        case STEP_FIELD: return each(step, active, [](u64 a, u64 b, u64 c, u64) { return N::field(a, b, c); });
        case STEP_INSERT: return each(step, active, N::inserted);
        case STEP_PERMUTE: return each(step, active, [](u64 a, u64 b, u64 c, u64) { return permuted(a, b, c); });
        case STEP_ONES: return each(step, active, [](u64 a, u64, u64, u64) { return N::ones(a); });
        case STEP_LEADING_ZEROS: return each(step, active, [](u64 a, u64, u64, u64) { return N::leading_zeros(a); });
        case STEP_REVERSE: return each(step, active, [](u64 a, u64, u64, u64) { return N::reversed(a); });
        default: return failed(EXPANSION_UNKNOWN);
        }
    }

    // The range of the addresses of the active lanes lies in a piece of memory; null: it does not.
    const ExpandMemory *memory(const ExpandStep &step, u32 active, u32 bytes, u64 &low, u64 &high) {
        const u64 *base = row(step.a);
        low = ~0ull, high = 0;
        for (u32 lane = 0; lane < LANES; ++lane)
            if (active >> lane & 1) low = std::min(low, base[lane]), high = std::max(high, base[lane]);
        low += (u64)(i64)step.offset, high += (u64)(i64)step.offset;
        for (u32 i = 0; i < given_.memory_count; ++i) {
            const ExpandMemory &each = given_.memory[i];
            if (each.begin <= low && low <= high && high < each.end && each.end - high >= bytes) return &each;
        }
        return nullptr;
    }

    template <typename T> bool load(const ExpandStep &step, u32 active) {
        u64 low, high;
        const ExpandMemory *from = memory(step, active, sizeof(T), low, high);
        if (!from || !from->readable) return failed(EXPANSION_UNKNOWN);
        const u64 *base = row(step.a);
        u64 *into = row(step.into), mask = low_bits(step.bits);
        for (u32 lane = 0; lane < LANES; ++lane) {
            if (!(active >> lane & 1)) continue;
            T value;
            memcpy(&value, (const void *)(uintptr_t)(base[lane] + (u64)(i64)step.offset), sizeof value);
            into[lane] = (u64)value & mask;
        }
        return true;
    }

    template <typename T> bool store(const ExpandStep &step, u32 active) {
        u64 low, high;
        const ExpandMemory *to = memory(step, active, sizeof(T), low, high);
        if (!to || to->readable) return failed(EXPANSION_UNKNOWN);
        u64 begin = to->log ? to->begin + ((u64)cta_ * given_.warps + warp_) * given_.lines * LINE : 0;
        if (to->log && !note_lines(low, high, begin)) return failed(EXPANSION_LONG);
        const u64 *base = row(step.a), *values = row(step.b);
        for (u32 lane = 0; lane < LANES; ++lane) {
            if (!(active >> lane & 1)) continue;
            T value = (T)values[lane];
            u64 at = base[lane] + (u64)(i64)step.offset - begin;
            if (!to->log) memcpy((void *)(uintptr_t)at, &value, sizeof value);
            else if (at + sizeof value <= room_) memcpy(log_ + at, &value, sizeof value);
        }
        return true;
    }

    // A word is stored in the log of this warp, which begins there.
    bool note_lines(u64 low, u64 high, u64 begin) {
        if (low < begin || high - begin >= given_.lines * LINE) return false;
        lines_ = std::max(lines_, (u32)((high - begin) / LINE + 1));
        return true;
    }

    static constexpr u64 LINE = LANES * sizeof(u32);  // bytes
    const Expansion &given_;
    u32 cta_, warp_, mask_ = 0, others_first_ = NOTHING, lines_ = 0;
    u8 *log_;
    u64 room_;  // bytes
    std::vector<u64> registers_;
    std::vector<Others> others_;
    ExpandEnd status_ = EXPANSION_EXPANDED;
};

inline ExpandEnd expand(const Expansion &given) {
    u64 budget = given.most_steps;
    for (u32 cta = given.first; cta < given.end; ++cta) {
        for (u32 warp = 0; warp < given.warps; ++warp) {
            size_t number = (size_t)cta * given.warps + warp;
            ExpansionWarp each(given, cta, warp, given.log + number * given.room * LANES, given.room);
            ExpandEnd status = each.run(budget);
            if (status != EXPANSION_EXPANDED) return status;
            given.used[number] = each.lines();
        }
    }
    return EXPANSION_EXPANDED;
}
