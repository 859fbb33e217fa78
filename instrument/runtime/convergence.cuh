// Warp-synchronous instructions that some lanes of a warp do not reach (ISA "bar, barrier", "Instructions: .aligned", "shfl.sync").
//
// A point is an instruction that its members must reach together: the whole warp (.aligned), or the lanes of a mask (.sync). The kernel
// calls these hooks only if some members are not active, so a converged warp pays for a test of its mask only. Lanes may reach a hook in
// several groups although the program is uniform; that alone is no finding. The record of each lane that has reached an incomplete point
// names the point, and the last group clears these records. A divergence is proven when
//   - two lanes are recorded at different points, and each is a member of the other's point: the ISA lets neither continue; or
//   - one lane is at a point, and another at a join of it: a place that every path from the point reaches and that never leads back; or
//   - a point that needs the whole warp finds that some of its lanes have exited (ISA "mma", "ldmatrix", "stmatrix").
// After a divergent .aligned instruction the behaviour of the CTA is undefined, so nothing is reported for it afterwards (report.cuh).
// Lanes that exited without passing a join of the point are not waited for (ISA "bar", "exit").
//
#pragma once

#include "access.cuh"


DEVICE u64 split_at(u64 slot, u32 me) { return FIELD(slot, Slot, split) + 4 * (me >> 5); }
DEVICE u64 point_at(u64 slot, u32 me, u32 lane) { return FIELD(slot, Slot, points) + 8 * ((me & ~31u) + lane); }

DEVICE bool same_point(u64 a, u64 b) {
    return point_what(a) == point_what(b) && low_word(a) == low_word(b) && (point_what(a) > WHOLE || point_site(a) == point_site(b));
}

DEVICE bool is_among(u32 joins, u64 point) { return point_join(point) && joins >> (point_join(point) - 1) & 1; }

// Lanes `here` of the caller's warp reached `point`; lanes `others` did not, and are at `site`.
COLD void report_split(u64 slot, u64 state, u32 me, u64 point, u32 here, u32 site, u32 others, u32 how) {
    u32 exited = load32(FIELD(slot, Slot, exited) + 4 * (me >> 5));
    u32 own = point_site(point), base = me & ~31u;
    if (!how && site < own) {  // side (1) of the report is the earlier one in the text
        u32 swapped = own; own = site; site = swapped;
        swapped = here; here = others; others = swapped;
    }
    Caller c = {slot, state, base + __ffs(here) - 1, own, 0, 0, 0};
    Finding f = make_finding(c, KIND_DIVERGENCE, REASON_DIVERGENT, site);
    f.divergence.other_thread = base + __ffs(others) - 1; f.divergence.came = here; f.divergence.others = others;
    f.divergence.exited = others & exited; f.divergence.how = how;
    report(slot, f);
    if (point_what(point) == ALIGNED) raise32(FIELD(slot, Slot, lanes_left), AFTER_DIVERGENCE);
}

// A lane that continues past a point has completed it. So have the other lanes that are recorded there.
DEVICE void settle(u64 slot, u32 me) {
    u64 own = load64(point_at(slot, me, me & 31));
    u32 there = 0;
    if (point_what(own) == JOINED) return;
    for (u32 split = load32(split_at(slot, me)); split; split &= split - 1) {
        u32 lane = __ffs(split) - 1;
        if (same_point(load64(point_at(slot, me, lane)), own)) there |= 1u << lane;
    }
    clear_bits(split_at(slot, me), there);
}

// Lanes `here` are now recorded at `point`: finds which other members are too, and which can no longer come.
DEVICE void look_at_point(u64 slot, u64 state, u32 me, u64 point, u32 here) {
    u32 wanted = low_word(point) & existing_lanes(slot, me), exited = load32(FIELD(slot, Slot, exited) + 4 * (me >> 5));
    u32 there = here, odd = 0, past = 0, odd_site = 0, past_site = 0;
    for (u32 rest = wanted & load32(split_at(slot, me)) & ~here; rest; rest &= rest - 1) {
        u32 lane = __ffs(rest) - 1;
        u64 other = load64(point_at(slot, me, lane));
        if (point_what(other) == JOINED) {
            if (is_among(low_word(other), point)) past |= 1u << lane, past_site = point_site(other);
        } else if (same_point(other, point)) {
            there |= 1u << lane;
        } else if (low_word(other) & here) {
            odd |= 1u << lane, odd_site = point_site(other);
        }
    }
    if (odd) report_split(slot, state, me, point, there, odd_site, odd, PARTED_ELSEWHERE);
    if (past) report_split(slot, state, me, point, there, past_site, past, PARTED_PAST);
    if (point_what(point) == WHOLE && wanted & exited & ~past) report_split(slot, state, me, point, there, 0, wanted & exited, PARTED_EXITED);
    if (!(wanted & ~exited & ~there)) clear_bits(split_at(slot, me), there);
}

// Lanes `here` have passed the points of `joins`: finds lanes that are recorded at one of these points, which `here` did not reach.
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
        if (point_what(point) != JOINED && is_among(joins, point) && others) report_split(slot, state, me, point, there, site, others, PARTED_PAST);
    }
}

DEVICE bool first_of(u32 lanes) { return lane_id() == __ffs(lanes) - 1; }

// Records the caller's lanes at a point; returns those that came together.
DEVICE u32 note_point(u64 slot, u32 me, u64 point) {
    u32 here = __match_any_sync(active_mask(), point);
    if (load32(split_at(slot, me)) >> (me & 31) & 1) settle(slot, me);
    __syncwarp(here);
    store64(point_at(slot, me, me & 31), point);
    raise32(FIELD(slot, Slot, lanes_left), 1);
    __syncwarp(here);
    if (first_of(here)) set_bits(split_at(slot, me), here);
    record_fence();  // of two groups, the later one sees the earlier one's record
    __syncwarp(here);
    return here;
}

// Before a point: not all of its members are active. `code`: the upper half of the word `point`.
HOOK void __consan_split(u64 slot, u64 state, u32 me, u32 members, u32 code) {
    if (!slot) return;
    u64 point = pack(members, code);
    u32 here = note_point(slot, me, point);
    if (first_of(here)) look_at_point(slot, state, me, point, here);
    __syncwarp(here);
}

// At a place past the points of `joins`. A lane recorded at one of these points keeps its record: the other lanes may come here later.
HOOK void __consan_joined(u64 slot, u64 state, u32 me, u32 site, u32 joins) {
    if (!slot) return;
    u32 here = active_mask(), split = load32(split_at(slot, me));
    if (here == ~0u && !split) return;
    here = __match_any_sync(here, site);
    bool noted = split >> (me & 31) & 1;
    if (first_of(here)) look_back(slot, state, me, joins, site, here);
    u64 before = noted ? load64(point_at(slot, me, me & 31)) : 0;
    bool keeps = noted && point_what(before) != JOINED && is_among(joins, before);
    here = __ballot_sync(here, !keeps);
    if (keeps || here == ~0u) return;
    u32 passed = joins | (noted && point_what(before) == JOINED ? low_word(before) : 0);
    here = note_point(slot, me, pack(passed, site | JOINED << POINT_WHAT_SHIFT));
    if (first_of(here)) look_back(slot, state, me, joins, site, here);
    __syncwarp(here);
}
