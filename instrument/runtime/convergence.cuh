// Warp-synchronous instructions that some lanes of a warp do not reach (ISA "bar, barrier", "Instructions: .aligned", "shfl.sync").
//
// A point is an instruction that waits for its members: the whole warp (.aligned), or the lanes of a mask (.sync). The kernel asks here
// only where the lanes that are active are not all of the members, so a warp that is together pays for a look at its mask. A hook sees
// lanes come one group after another also where the program is uniform: that alone is no finding. Each lane of an incomplete point is
// noted with it, and the last group to come deletes the note. A divergence is proven when
//   - two lanes are noted at different points, and each is a member of the other's: neither can go on as the ISA wants; or
//   - a lane is at a join (what every path from a point comes to, and no path leads back from) and another one at that point; or
//   - a point that needs the whole warp finds that some of it have exited (ISA "mma", "ldmatrix", "stmatrix").
// After a divergent .aligned instruction the behaviour of the CTA is undefined: nothing that follows there is reported (report.cuh).
// Lanes that exited without passing a join of the point are not waited for (ISA "bar", "exit").
//
// Slot.split: lanes of each warp that are noted. Slot.points, one of each lane: members | site << 32 | what << 48 | join << 56,
// or what the lane has passed: set of joins | site << 32 | JOINED << 48.
#pragma once

#include "access.cuh"

#define ALIGNED 0u     // what: the same point is the same instruction
#define WHOLE 1u       // the same, and no lane of the warp may have exited
#define JOINED 255u    // no point, but joins passed; other numbers are those of opcodes whose same point is the same mask
#define SPLIT_PAST 1u  // FindingRecord.parity: (2) is a join of (1), and no point
#define SPLIT_EXITED 2u

DEVICE u32 site_of(u64 point) { return high_word(point) & 0xffff; }
DEVICE u32 what_of(u64 point) { return high_word(point) >> 16 & 0xff; }
DEVICE u32 join_of(u64 point) { return high_word(point) >> 24; }
DEVICE u64 split_at(u64 slot, u32 me) { return FIELD(slot, Slot, split) + 4 * (me >> 5); }
DEVICE u64 point_at(u64 slot, u32 me, u32 lane) { return FIELD(slot, Slot, points) + 8 * ((me & ~31u) + lane); }

DEVICE bool same_point(u64 a, u64 b) {
    return what_of(a) == what_of(b) && low_word(a) == low_word(b) && (what_of(a) > WHOLE || site_of(a) == site_of(b));
}

DEVICE bool is_among(u32 joins, u64 point) { return join_of(point) && joins >> (join_of(point) - 1) & 1; }

// `here` of the caller's warp came to `point`; `others` did not, and are at `site`.
COLD void report_split(u64 slot, u64 state, u32 me, u64 point, u32 here, u32 site, u32 others, u32 how) {
    u32 exited = load32(FIELD(slot, Slot, exited) + 4 * (me >> 5));
    u32 own = site_of(point), base = me & ~31u;
    if (!how && site < own) {  // that of the two which stands first in the text is (1)
        u32 swapped = own; own = site; site = swapped;
        swapped = here; here = others; others = swapped;
    }
    Caller c = {slot, state, base + __ffs(here) - 1, own, 0, 0, 0};
    Finding f = make_finding(c, KIND_BARRIER_MISUSE, HAZARD_NONE, site, base + __ffs(others) - 1, 0);
    f.reason = REASON_DIVERGENT; f.flags = 0; f.group = others & exited; f.commits = here; f.retired = others; f.parity = how;
    report(slot, f);
    if (what_of(point) == ALIGNED) raise32(FIELD(slot, Slot, lanes_left), AFTER_DIVERGENCE);
}

// A lane that goes on from a point has been let go by it, and so are the others there.
DEVICE void settle(u64 slot, u32 me) {
    u64 own = load64(point_at(slot, me, me & 31));
    u32 there = 0;
    if (what_of(own) == JOINED) return;
    for (u32 split = load32(split_at(slot, me)); split; split &= split - 1) {
        u32 lane = __ffs(split) - 1;
        if (same_point(load64(point_at(slot, me, lane)), own)) there |= 1u << lane;
    }
    clear_bits(split_at(slot, me), there);
}

// Lanes `here` have been noted at `point`: who else is, and who cannot come any more.
DEVICE void look_at_point(u64 slot, u64 state, u32 me, u64 point, u32 here) {
    u32 wanted = low_word(point) & existing_lanes(slot, me), exited = load32(FIELD(slot, Slot, exited) + 4 * (me >> 5));
    u32 there = here, odd = 0, past = 0, odd_site = 0, past_site = 0;
    for (u32 rest = wanted & load32(split_at(slot, me)) & ~here; rest; rest &= rest - 1) {
        u32 lane = __ffs(rest) - 1;
        u64 other = load64(point_at(slot, me, lane));
        if (what_of(other) == JOINED) {
            if (is_among(low_word(other), point)) past |= 1u << lane, past_site = site_of(other);
        } else if (same_point(other, point)) {
            there |= 1u << lane;
        } else if (low_word(other) & here) {
            odd |= 1u << lane, odd_site = site_of(other);
        }
    }
    if (odd) report_split(slot, state, me, point, there, odd_site, odd, 0);
    if (past) report_split(slot, state, me, point, there, past_site, past, SPLIT_PAST);
    if (what_of(point) == WHOLE && wanted & exited & ~past) report_split(slot, state, me, point, there, 0, wanted & exited, SPLIT_EXITED);
    if (!(wanted & ~exited & ~there)) clear_bits(split_at(slot, me), there);
}

// Lanes `here` have come to a place that is past the points of `joins`: who is noted at one of these that they did not come to.
DEVICE void look_back(u64 slot, u64 state, u32 me, u32 joins, u32 site, u32 here) {
    for (u32 rest = load32(split_at(slot, me)); rest;) {
        u64 point = load64(point_at(slot, me, __ffs(rest) - 1));
        u32 there = 0;
        for (u32 left = rest; left; left &= left - 1) {
            u32 lane = __ffs(left) - 1;
            if (same_point(load64(point_at(slot, me, lane)), point)) there |= 1u << lane;
        }
        rest &= ~(there | (rest & 0 - rest));
        u32 others = low_word(point) & here & ~there;
        if (what_of(point) != JOINED && is_among(joins, point) && others) report_split(slot, state, me, point, there, site, others, SPLIT_PAST);
    }
}

DEVICE bool first_of(u32 lanes) { return lane_id() == __ffs(lanes) - 1; }

// Notes the caller's lanes; returns those that came together.
DEVICE u32 note_point(u64 slot, u32 me, u64 point) {
    u32 here = __match_any_sync(active_mask(), point);
    if (load32(split_at(slot, me)) >> (me & 31) & 1) settle(slot, me);
    __syncwarp(here);
    store64(point_at(slot, me, me & 31), point);
    raise32(FIELD(slot, Slot, lanes_left), 1);
    __syncwarp(here);
    if (first_of(here)) set_bits(split_at(slot, me), here);
    record_fence();  // of two groups, the later one sees the earlier
    __syncwarp(here);
    return here;
}

// Before a point: not all of its members are active. `code`: site | what << 16 | join << 24.
HOOK void __consan_split(u64 slot, u64 state, u32 me, u32 members, u32 code) {
    if (!slot) return;
    u64 point = pack(members, code);
    u32 here = note_point(slot, me, point);
    if (first_of(here)) look_at_point(slot, state, me, point, here);
    __syncwarp(here);
}

// At a place that is past the points of `joins`. A lane that is noted at one of these keeps the note: the others may come here later.
HOOK void __consan_joined(u64 slot, u64 state, u32 me, u32 site, u32 joins) {
    if (!slot) return;
    u32 here = active_mask(), split = load32(split_at(slot, me));
    if (here == ~0u && !split) return;
    here = __match_any_sync(here, site);
    bool noted = split >> (me & 31) & 1;
    if (first_of(here)) look_back(slot, state, me, joins, site, here);
    u64 before = noted ? load64(point_at(slot, me, me & 31)) : 0;
    bool keeps = noted && what_of(before) != JOINED && is_among(joins, before);
    here = __ballot_sync(here, !keeps);
    if (keeps || here == ~0u) return;
    u32 passed = joins | (noted && what_of(before) == JOINED ? low_word(before) : 0);
    here = note_point(slot, me, pack(passed, site | JOINED << 16));
    if (first_of(here)) look_back(slot, state, me, joins, site, here);
    __syncwarp(here);
}
