// Bulk and tensor copies, their groups, st.async and proxy fences (SEMANTICS 2.4 and 2.6).
//
// A load credits its bytes to its mbarrier at once: the wait that follows in the kernel is the chip's business, what it lets the
// waiter see is decided by phases.
#pragma once

#if CONSAN_ENGINE
DEVICE bool bulk_range(Caller &c, Operation &o, u32 address, u32 bytes) {
    c.bytes = bytes;
    if (bytes == 0 || !enter_access(c, head_of(c.slot, c.me), address)) return false;
    o.low = c.offset; o.high = c.offset + bytes;
    return true;
}

DEVICE void issue(Caller &c, Operation &o) {
    u32 place = list_operation(c, o);
    mark_operation(c.slot, o, 0, 1);
    record_fence();
    meet_other_operations(c, o, place);
    if (!(o.kind & OPERATION_WRITES)) check_initialised(c, o, 0, 1);
    check_blocks(c, o, 0, 1);
}

DEVICE Operation new_operation(const Caller &c, u32 kind) {
    Operation o;
    o.kind = kind; o.site = c.site; o.thread = c.me; o.epoch = low_word(c.state); o.barrier = o.phase = o.group = 0; o.shape = o.shape2 = 0;
    return o;
}

// A copy into this CTA's shared memory that an mbarrier counts. `generic`: it does not go through the async proxy (st.async).
HOOK void __consan_bulk_load(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 bytes, u32 mbarrier, u32 kind) {
    if (!slot) return;
    Caller c = {slot, state, me, site, ACCESS_WRITE | ACCESS_ENGINE, 0, bytes};
    u32 index = barrier_in_use(barrier_caller(slot, state, me, mbarrier, site));
    Operation o = new_operation(c, kind);
    bool inside = bulk_range(c, o, address, bytes);
    if (index == NO_BARRIER) return;
    u64 at = mbarrier_at(engine_of(slot), index);
    o.barrier = index; o.phase = state_phase(load64(at));
    if (phases_observed(c, index) >= o.phase) o.kind |= INFORMED;
    if (inside) issue(c, o);
    Caller b = barrier_caller(slot, state, me, mbarrier, site);
    b.offset -= load32(FIELD(slot, Slot, low));
    change_bytes(b, index, -(int)bytes);
}

HOOK void __consan_bulk_store(u64 slot, u64 state, u32 me, u32 address, u32 site, u32 bytes) {
    if (!slot) return;
    Caller c = {slot, state, me, site, ACCESS_READ | ACCESS_ENGINE, 0, bytes};
    u64 thread = thread_record(slot, me);
    Operation o = new_operation(c, OPERATION_BULK_STORE);
    o.group = load32(THREAD_FIELD(thread, bulk_commits));
    store32(THREAD_FIELD(thread, bulk_issued), o.group + 1);
    if (bulk_range(c, o, address, bytes)) issue(c, o);
}

HOOK void __consan_bulk_commit(u64 slot, u64 state, u32 me) {
    if (!slot) return;
    u64 at = THREAD_FIELD(thread_record(slot, me), bulk_commits);
    store32(at, load32(at) + 1);
}

DEVICE void remember_group_wait(u64 thread, u32 history, u32 epoch, u32 retired) {
    u32 oldest = 0;
    u64 least = ~0ull;
    for (u32 i = 0; i < GROUP_WAITS; ++i) {
        u64 wait = load64(thread_word(thread, history + 8 * i));
        if (wait && low_word(wait) == epoch) { oldest = i; break; }
        u64 rank = wait ? pack(low_word(wait), 1) : 0;
        if (rank < least) { least = rank; oldest = i; }
    }
    store64(thread_word(thread, history + 8 * oldest), pack(epoch, retired));
}

// `pending`: groups that may stay in flight. With .read only their sources are done with, which is all that shared memory asks.
HOOK void __consan_bulk_wait(u64 slot, u64 state, u32 me, u32 pending, u32 read_only) {
    if (!slot) return;
    u64 thread = thread_record(slot, me);
    u32 commits = load32(THREAD_FIELD(thread, bulk_commits));
    store32(THREAD_FIELD(thread, waits_on), 1);
    if (commits <= pending) return;
    u32 done = commits - pending;
    if (!read_only && done > load32(THREAD_FIELD(thread, bulk_retired))) store32(THREAD_FIELD(thread, bulk_retired), done);
    if (done <= load32(THREAD_FIELD(thread, bulk_read))) return;
    store32(THREAD_FIELD(thread, bulk_read), done);
    remember_group_wait(thread, offsetof(Thread, bulk_waits), low_word(state), done);
}

// fence.proxy.async: all that this thread sees has passed it, in both directions; what follows is a new epoch.
HOOK u64 __consan_proxy_fence(u64 slot, u64 state, u32 me) {
    if (!slot) return state;
    u32 mask = active_mask();
    state = together(state, mask);
    u64 row = own_vector(slot, me), target = target_row(slot, me, mask);
    bool some = some_acquired(slot, me, mask);
    u32 warps = load32(FIELD(slot, Slot, warp_count));
    for (u32 w = 4 * lanes_below(mask); w < warps; w += 4 * __popc(mask)) {
        u32 now[4], values[4];
        load_entries<4>(target + 4 * (FENCED + w), now);
        published(row, w, me, low_word(state), high_word(state), some, values);
        raise_entries(target + 4 * (FENCED + w), now, values);
    }
    if (lane_id() == __ffs(mask) - 1) raise32(FIELD(engine_of(slot), Engine, fenced) + 4 * (me >> 5), low_word(state));
    __syncwarp(mask);
    return advance(slot, state, me);
}

// ---- the end of a thread, and of the CTA -------------------------------------------------------------------------------------

COLD void report_at_exit(u64 slot, u64 state, u32 me, const Operation &o, u32 bytes) {
    Caller c = {slot, state, me, o.site, ACCESS_WRITE, o.low, bytes};
    Finding f = make_finding(c, KIND_LIFETIME, HAZARD_NONE, 0, o.thread, 0);
    f.me = o.thread; f.flags = 0; f.reason = REASON_AT_EXIT; f.own_operation = kind_of(o);
    describe_operation(c, f, o);
    report(slot, f);
}

// By the last thread of the CTA: operations whose completion nobody has observed.
DEVICE void check_operations_at_exit(u64 slot, u64 state) {
    u64 engine = engine_of(slot);
    if (load32(FIELD(engine, Engine, verdict)) & VERDICT_LEAVE) return;  // stopped in the middle
    u32 count = min(load32(FIELD(engine, Engine, op_count)), OPERATIONS), base = load32(FIELD(engine, Engine, op_base));
    for (u32 i = 0; i < count; ++i) {
        Operation o = load_operation(operation_at(engine, i));
        if (o.sequence <= base) continue;
        u64 thread = thread_record(slot, o.thread);
        bool over;
        if (kind_of(o) == OPERATION_BULK_LOAD || kind_of(o) == OPERATION_STORE_ASYNC) over = load32(FIELD(mbarrier_at(engine, o.barrier), MBarrier, waited)) > o.phase;
        else if (kind_of(o) == OPERATION_WGMMA) over = load32(THREAD_FIELD(thread, matrix_retired)) > o.group;
        else over = load32(THREAD_FIELD(thread, bulk_read)) > o.group;
        if (!over) report_at_exit(slot, state, o.thread, o, o.high - o.low);
    }
}
#endif
