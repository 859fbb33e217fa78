// What the replays of a launch's clusters share, and what one of them asks of it. A cluster that is replayed by itself has no grid.
#pragma once

#include "announced.hpp"
#include "retained.hpp"
#include "asynchronous.hpp"
#include "races.hpp"
#include "textures.hpp"
#include "global_operands.hpp"

struct Grid {
    Grid(const GridInput &given)
        : input(given), textures(given), edges(views, flags, given.one.isa == STRICT), findings(given.one.records, given.capacity), retained(given, views),
          map_fences(views),
          global_races(given.one.ctas * given.one.cta_threads, given.most, given.one.isa != 0, views, edges, footprints, map_fences, findings, retained),
          announced(given.one.isa == 1, given.one.ctas * given.one.cta_threads, views, footprints, findings) {}

    const GridInput &input;
    Textures textures;
    Views views;
    Flags flags;
    Edges edges;
    Footprints footprints;
    Findings findings;
    Retained retained;
    MapFences map_fences;
    GlobalRaces global_races;
    Announced announced;
    std::vector<u32> first;  // the number of each thread's first strong access, cluster by cluster
    bool sc = false;         // the module has a fence.sc
    bool cut = false;        // some log ran out of room
    std::vector<u32> stored;  // the stores that each thread executes, as bits of the text (instrument/record/uses.py), cluster by cluster
    u32 threads = 0;          // of a cluster

    // D26: whether the value of a load goes into stores only, and the thread executes none of them.
    bool unused(const effects::GlobalRead &load, u32 cluster, u32 thread) const {
        return load.stores() && !(stored[cluster * threads + thread] & load.stores());
    }
};

class Part {
  public:
    Part(Grid *grid, u32 cluster, const Shape &shape) : grid_(grid), cluster_(cluster), shape_(shape) {}

    void begin(Clocks &clocks) {
        if (!grid_) return;
        grid_->views.set(cluster_, &clocks);
        if (!grid_->input.synced) return;
        for (u32 thread = 0; thread < shape_.threads(); ++thread) next_.push_back(grid_->first[cluster_ * shape_.threads() + thread]);
        current_ = next_;
        begun_.assign(next_.size(), false);
    }

    // Whether the clocks keep what is behind a fence.sc.
    bool fences() const { return grid_ && grid_->sc; }
    // Whether the replay is for global memory only: then others check shared memory.
    bool alone() const { return grid_ && !grid_->input.of_clusters; }

    bool fence(u32 thread, const effects::Fence &fence) {
        if (!synced()) return true;
        grid_->edges.fence(cluster_, thread, fence);
        grid_->retained.peers().fence(cluster_, thread, fence.order() & 7, grid_->views.scope(fence.order()));
        return true;
    }

    // The next fence of a thread is one of puts, or a put with a signal begins or ends.
    bool fence_of_puts(u32 thread, const effects::Fence &fence) {
        if (synced()) grid_->edges.fence_of_puts(cluster_, thread, fence);
        return true;
    }

    bool grid_wait(u32 thread) {
        if (grid_) grid_->retained.wait(cluster_, thread);
        return true;
    }

    // Whether some thread of a launch whose threads may synchronise through memory has no whole log. What the others have read may come
    // from what is missing, so they go no further than their first strong access. Nothing behind it orders what comes before.
    bool is_cut() const { return synced() && grid_->cut; }

    // A strong access begins. Returns whether the write that it has read from has come.
    // `look`: compare it, where it gives data, before it observes (R-MO1). `early`: compare it, where it acquires, with weak accesses (R-RACE); it says if.
    // `cross`: it sees a store of shared memory that crosses one of its thread (R-MO2).
    template <typename Look, typename Early, typename Cross> bool observe(u32 thread, Look look, Early early, Cross cross) {
        if (!synced()) return true;
        if (is_cut()) return false;
        u32 awaited = grid_->edges.awaited(next_[thread]);
        if (awaited != NOTHING && forced_ != thread) {
            wait(thread, awaited, waiting_);
            return false;
        }
        forced_ = NOTHING;
        begun_[thread] = true;
        current_[thread] = next_[thread];
        next_[thread] += grid_->flags[current_[thread]].parts;
        const FlagAccess &access = grid_->flags[current_[thread]];
        if (access.data) look(), each_part(current_[thread], [&](const FlagAccess &part) { grid_->global_races.look(part); });
        if (access.order & IS_ACQUIRE && access.observes && early())
            each_part(current_[thread], [&](const FlagAccess &part) { grid_->global_races.early(part); });
        if (grid_->flags.crosses(current_[thread])) {
            if (access.address >> 62 != 2) grid_->global_races.cross(access);
            else if (!grid_->edges.observed(access.from, cluster_, thread)) cross(access.from);
        }
        grid_->edges.observe(current_[thread]);
        grid_->announced.poll(access);
        return true;
    }

    // The number of the strong access to shared memory that a thread is at, if it is one that may synchronise; of a vector, that of its part.
    i32 strong_at(u32 thread, u32 address) const {
        if (!synced() || current_[thread] >= grid_->flags.size()) return -1;
        const FlagAccess &first = grid_->flags[current_[thread]];
        u32 part = (address - (u32)first.address) / std::max(1u, first.bytes);
        return first.address >> 62 == 2 && first.cluster == cluster_ && first.thread == thread && part < first.parts ? (i32)(current_[thread] + part) : -1;
    }

    // R-MO1, of accesses to shared memory.
    bool lacks_order(const Access &old, u32 time, const Access &now, Record &found) {
        bool again = (old.writes ? now : old).again;
        if (!synced()) return !again;
        Edges &edges = grid_->edges;
        if (!edges.by_timing(old.writes ? old.flag : now.flag, old.writes, cluster_, now.thread)) return false;
        Deficit deficit = edges.lacks(cluster_, old.thread, time, cluster_, now.thread);
        if (found.reason == NO_BARRIER) GlobalRaces::name_lack(deficit, found);
        return !deficit.is_other() && !(again && deficit.lack == Lack::NONE);
    }

    bool publish(u32 thread) {
        if (!synced()) return true;
        grid_->edges.publish(current_[thread]), begun_[thread] = false;
        grid_->retained.peers().note(grid_->flags, current_[thread]);
        return true;
    }
    // Whether a thread is in the midst of a strong access; whether the one that it is to begin is of shared memory.
    bool begun(u32 thread) const { return synced() && begun_[thread]; }
    bool in_shared_memory(u32 thread) const { return synced() && next_[thread] < grid_->flags.size() && grid_->flags[next_[thread]].address >> 62 == 2; }

    void access(u32 thread, const effects::GlobalRead &load) {
        if (grid_ && !grid_->unused(load, cluster_, thread)) access(thread, load, true, false);
    }
    void access(u32 thread, const effects::GlobalWrite &store) {
        if (grid_) access(thread, store, store.adds(), true);
    }

    // An asynchronous operation is issued.
    template <typename Copy> void copy(u32 thread, const Copy &copy, const Asynchronous &asynchronous) {
        if (!grid_) return;
        grid_->global_races.begin(cluster_, asynchronous.completions());
        u32 content = asynchronous.content(thread, copy, ++issued_[(u64)thread << 32 | copy.site()]);
        global_operands::add(grid_->global_races, cluster_, thread, copy, content, asynchronous.ends(thread, copy));
        grid_->announced.copy(cluster_, thread, copy);
        if (global_operands::map_of(copy)) global_operands::add_map(grid_->global_races, cluster_, thread, copy, asynchronous.end_of_map(thread, copy));
    }

    void acquire_map(u32 thread, u64 map) {
        if (grid_) grid_->map_fences.acquire(cluster_, thread, map);
    }
    void release_maps(u32 thread) {
        if (grid_) grid_->map_fences.release(cluster_, thread);
    }

    // A race in shared memory: what is missing between a moment of a thread and what another one does now. Only the first accesses of a pair
    // of sites are asked.
    void explain(Record &found, u32 other, u32 time, u32 thread) {
        if (!synced() || (found.reason != NO_BARRIER && found.reason != NO_WARP_SYNC) || shape_.home(thread) != shape_.home(other)) return;
        if (explained_[(u64)found.other_site << 32 | found.site]++ >= WALK) return;
        GlobalRaces::tell_side(grid_->edges.lacks(cluster_, other, time, cluster_, thread), found);
        Views::Published last = grid_->views.last_of(cluster_, other, cluster_, thread);
        if (found.reason == NO_BARRIER && decided<RELEASED_BEFORE>(last.made > at_barrier_)) found.reason = RELEASED_BEFORE, found.fence = last.site;
        if (found.reason != NO_BARRIER || found.hazard != RAW) return;
        GlobalRaces::name_early_flag(grid_->edges.waited_for(cluster_, other, cluster_, thread, observed_at_barrier_), found);
    }

    // A barrier has ordered all accesses of the CTA before it.
    void pass_barrier() {
        if (synced()) at_barrier_ = grid_->views.made(), observed_at_barrier_ = grid_->edges.observations(cluster_);
    }

    // The strong read that is the last event of a thread's log, if it is one.
    Stopped polled(u32 thread, const Event &last) const {
        if (!synced() || last.kind != PUBLISH || !(last.flags & READS)) return {};
        return grid_->flags.polled(current_[thread]);
    }

    Stopped *stops() const { return grid_ && grid_->input.stops ? grid_->input.stops + (size_t)cluster_ * grid_->threads : nullptr; }

    // Threads that wait no longer.
    std::vector<u32> awake() {
        std::vector<u32> found;
        std::vector<Waiting> left;
        for (const Waiting &each : waiting_) {
            u32 awaited = grid_->edges.is_done(each.write) ? grid_->edges.awaited(next_[each.thread]) : each.write;
            if (awaited == NOTHING) found.push_back(each.thread);
            else if (awaited == each.write) left.push_back(each);
            else wait(each.thread, awaited, left);
        }
        waiting_.swap(left);
        return found;
    }

    // One that waits, to go on without the write.
    u32 forced() {
        if (waiting_.empty()) return NOTHING;
        forced_ = waiting_.back().thread;
        waiting_.pop_back();
        return forced_;
    }

  private:
    struct Waiting {
        u32 thread, write;
    };

    void access(u32 thread, const effects::GlobalAccess &given, bool reads, bool writes) {
        RacingAccess made{};
        made.address = given.address(), made.bytes = given.bytes(), made.element = (u8)given.element();
        if (is_texture(made.address)) {
            Textures::Bytes fetched = grid_->textures.bytes(made.address);
            if (!fetched.count) return;
            made.address = fetched.address, made.bytes = fetched.count, made.element = (u8)fetched.count;
        }
        made.cluster = cluster_, made.thread = thread, made.site = given.site();
        made.writes = writes, made.reads = reads;
        made.strong = given.strong(), made.constant = given.nc(), made.scope = (u8)grid_->views.scope(given.order()),
        made.order = (u8)(given.order() & (IS_RELEASE | IS_ACQUIRE));
        made.data = given.data(), made.again = given.again();
        made.has_value = given.has_value(), made.value = made.has_value ? given.value() : 0;
        made.flag = synced() && made.strong && made.writes ? flag_of(thread, made.address) : -1;
        made.look = synced() && made.again ? flag_of(thread, made.address) : -1;
        grid_->views.note_access(cluster_, thread, writes ? made.address : 0);
        grid_->global_races.add(made);
    }

    void wait(u32 thread, u32 write, std::vector<Waiting> &waiting) {
        waiting.push_back({thread, write});
        grid_->edges.waits(write, cluster_);
    }

    bool synced() const { return grid_ && grid_->input.synced; }

    template <typename F> void each_part(u32 number, F f) {
        for (u32 part = 0; part < grid_->flags[number].parts; ++part) f(grid_->flags[number + part]);
    }

    i32 flag_of(u32 thread, u64 address) const {
        u32 number = current_[thread];
        return number < grid_->flags.size() && grid_->flags[number].address == address && grid_->flags[number].thread == thread ? (i32)number : -1;
    }

    static constexpr u32 WALK = 64;

    Grid *grid_;
    std::unordered_map<u64, u32> explained_;  // by pair of sites
    std::unordered_map<u64, u32> issued_;     // asynchronous operations, by thread and site
    u32 cluster_, forced_ = NOTHING, at_barrier_ = 0;  // at_barrier: moments of the launch before the last one that all threads have passed
    size_t observed_at_barrier_ = 0;  // the same of strong reads
    std::vector<bool> begun_;  // by thread
    const Shape &shape_;
    std::vector<u32> next_, current_;  // the numbers of each thread's next strong access, and of the one it is at
    std::vector<Waiting> waiting_;
};
