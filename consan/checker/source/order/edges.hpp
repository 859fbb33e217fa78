// What orders threads through memory (ISA "Release and Acquire Patterns", "Causality Order"; SEMANTICS 12).
//
// A write to a flag carries moments: of the release (the operation itself, or a fence before it), of what is behind a fence.sc that the
// thread knows of, and, to tell what a race lacks, of the write itself. Read-modify-writes hand them on. A read takes those whose release and
// whose own acquire (the operation, or a fence after it) include each other in their scopes.
#pragma once

#include "passed_flags.hpp"
#include "views.hpp"

// Why an observation is no synchronisation; the sites of the write and of the read.
enum class Lack : u32 { NONE, RELEASE, ACQUIRE, RELEASE_SCOPE, ACQUIRE_SCOPE, FLAG_SCOPE };
struct Deficit {
    Lack lack = Lack::NONE;
    u32 write_site = 0, read_site = 0, fence_site = 0;
    Moment release = {};   // what the write has released; number 0 if nothing
    Moment behind = {};    // what is behind a fence.sc at the write; number 0 if nothing
    u32 carried_site = 0;  // of the write of the thread that has not released
    bool ticket = false;   // the flag was read by a read-modify-write
    bool relaxed = false;  // the read acquires nothing by itself
    bool both = false;     // neither side is there
    u32 reader = 0, reader_thread = 0;  // who has read the flag
    bool handed_over = false;  // one side is there, or the read is one that may wait: a load, or an exchange

    bool released() const { return lack == Lack::ACQUIRE || lack == Lack::ACQUIRE_SCOPE; }
    // R-MO1: whether the flag itself is wrong, or is a ticket (D28).
    bool is_other() const { return lack == Lack::FLAG_SCOPE || (released() && ticket); }
};

class Edges {
  public:
    // `strict`: no fence and no acquire stands for a fence.sc (D17).
    Edges(Views &views, const Flags &flags, bool strict) : views_(views), flags_(flags), strict_(strict) {}

    // After the strong accesses have been read.
    void start(u32 clusters, u32 threads) {
        carried_.resize(flags_.size()), observers_.resize(flags_.size()), done_.resize(flags_.size(), false);
        threads_.assign(clusters, std::vector<Thread>(threads)), observed_.resize(clusters), waiting_.resize(flags_.size());
    }

    // A write that an access has read from, and that has not been replayed; NOTHING if there is none.
    u32 awaited(u32 number) const {
        for (u32 part = number; part < number + flags_[number].parts; ++part)
            if (flags_[part].from >= 0 && !done_[flags_[part].from]) return (u32)flags_[part].from;
        return NOTHING;
    }
    bool is_done(u32 write) const { return done_[write]; }
    // A cluster has a thread that waits for a write.
    void waits(u32 write, u32 cluster) { waiting_[write].push_back(cluster); }
    // Clusters that have waited for writes that have come since.
    std::vector<u32> &woken() { return woken_; }

    // A fence.
    void fence(u32 cluster, u32 thread, const effects::Fence &fence) {
        u32 order = fence.order() & 7;
        Scope scope = views_.scope(fence.order());
        Thread &own = threads_[cluster][thread];
        bool of_puts = decided<Edge::FENCE_OF_PUTS>(std::exchange(own.of_puts, false));
        if (scope < views_.all()) note_narrow(cluster, thread, own, fence);
        if (decided<Edge::FENCE_SC>(order & IS_ACQUIRE && (!strict_ || order & IS_SC))) take_behind_sc(cluster, thread, scope);
        if (decided<Edge::GLOBAL_ACQUIRE_FENCE>(order & IS_ACQUIRE)) acquire(cluster, thread, own, scope, 0, false);
        if (order & IS_ACQUIRE) own.relaxed.clear();
        bool sc = order & (strict_ ? IS_SC : IS_RELEASE) && scope >= views_.sc() && !of_puts;
        if (sc) views_.clocks(cluster).fence(thread, 1u << views_.clocks(cluster).sc_fence());
        if (!decided<Edge::GLOBAL_RELEASE_FENCE>(order & IS_RELEASE)) return;
        Past past = views_.clocks(cluster).release(thread);
        if (of_puts) return (void)((own.begin ? own.signal : own.puts) = PutsFence{past, fence.site(), own.begin});
        Moment made = views_.publish(cluster, thread, KNOWN, past, fence.site(), sc);
        own.fences[width(scope)] = {made, scope, fence.site()};
        if (scope >= views_.all()) views_.complete(cluster, past);
    }
    // R-RK4: the next fence of a thread orders what it has put to a rank, for signals to that rank; of a put with a signal, from its begin on.
    void fence_of_puts(u32 cluster, u32 thread, const effects::Fence &fence) {
        Thread &own = threads_[cluster][thread];
        own.of_puts = fence.of_puts() && !fence.own_puts(), own.signal.site = NOTHING;
        if (fence.own_puts()) own.begin.reset();
        if (decided<Edge::OWN_PUTS>(fence.of_puts() && fence.own_puts())) own.begin = std::make_shared<const Past>(views_.clocks(cluster).release(thread));
    }

    // A strong read, before the access.
    void observe(u32 number) {
        for (u32 part = number; part < number + flags_[number].parts; ++part) observe_part(part);
    }

    // A strong write, after the access.
    void publish(u32 number) {
        for (u32 part = number; part < number + flags_[number].parts; ++part) publish_part(part);
    }

    // R-GM8: what a strong write, or a part of one, has stored was observed, by a thread that knows of itself what a thread does now.
    bool observed(i32 number, u32 cluster, u32 thread) {
        for (; number >= 0; number = continued((u32)number)) {
            for (const Observer &each : observers_[(u32)number])
                if (same(each, cluster, thread) || views_.before(each.cluster, each.thread, each.time, cluster, thread)) return true;
        }
        return false;
    }

    // What lacks between a moment of a thread and what another does now; NONE if no observation leads from one to the other.
    Deficit lacks(u32 other_cluster, u32 other, u32 time, u32 cluster, u32 thread) {
        Moment first = views_.covering(other_cluster, other, time, cluster, thread);
        if (!first.number) return {};
        Deficit lacks = deficit(cluster, thread, first);
        return lacks.lack == Lack::NONE || is_of_another(lacks, other, time, cluster, thread) ? Deficit{} : seen_from(lacks, other, time);
    }

    // The same where a third thread has read the one's flag and set another one, which the thread has read: what lacks at the first of the two flags
    // at which something does.
    Deficit lacks_behind(u32 other_cluster, u32 other, u32 time, u32 cluster, u32 thread) {
        Moment first = views_.covering(other_cluster, other, time, cluster, thread);
        u32 looked = 0;
        for (u32 third = 0; first.number && third < observed_.size(); ++third)
            for (u32 number : observed_[third]) {
                if (third == cluster || third == other_cluster || ++looked > MOST_LOOKED) break;
                const Carried *carried = loose_of(carried_[flags_[number].from], first.chain);
                const Observer *read = carried && carried->moment.number >= first.number ? observer(flags_[number]) : nullptr;
                if (!read || !views_.covering(third, read->thread, read->time, cluster, thread).number) continue;
                Deficit found = deficit(number, *carried);
                bool whole = found.lack == Lack::RELEASE && !found.relaxed && views_.covers(found.release, other, time);
                found = whole ? lacks(third, read->thread, read->time, cluster, thread) : seen_from(found, other, time);
                if (found.lack != Lack::NONE && found.handed_over) return found;
            }
        return {};
    }

    // The last flag of a thread that another one has waited for; without sites, if there is none. `first`: of what the other's CTA has observed.
    Deficit waited_for(u32 other_cluster, u32 other, u32 cluster, u32 thread, size_t first = 0) const {
        Deficit last{};
        for (size_t i = first; i < observed_[cluster].size(); ++i) {
            const FlagAccess &read = flags_[observed_[cluster][i]], &write = flags_[read.from];
            bool waits = read.thread == thread && read.polls && Flags::looks(read) && !Flags::looks(write);
            if (waits && write.cluster == other_cluster && write.thread == other) last.write_site = write.site, last.read_site = read.site;
        }
        return last;
    }

    // A flag that the second thread has read and acquired before the first one releases it behind its access, if the first one knows nothing of
    // the second one. `time`, `own`: of the two accesses, or 0 for the one that comes now. A read behind the second access holds nothing back.
    Deficit passed(u32 first_cluster, u32 first, u32 time, u32 cluster, u32 thread, u32 own) {
        if (!flags_.size() || views_.last_of(cluster, thread, first_cluster, first).made) return {};
        auto released = [&](u32 number, u32 by, u32 at, Layer layer) {
            auto covers = [&](const Carried &each) { return each.layer == layer && at && views_.covers(each.moment, by, at); };
            return std::any_of(carried_[number].own.begin(), carried_[number].own.end(), covers);
        };
        auto acquires = [&](u32 number) {
            const FlagAccess &read = flags_[number];
            return done_[number] && !released(number, thread, own, LOOSE) && (read.order & IS_ACQUIRE || fenced_behind(cluster, read.thread, read.site));
        };
        auto behind = [&](u32 number) {
            const FlagAccess &write = flags_[number];
            if (!done_[number]) return write.order & IS_RELEASE || (number && write.fences.releases > flags_[number - 1].fences.releases);
            return released(number, first, time, KNOWN);
        };
        PassedFlags::Passed found = passed_.find(first_cluster, cluster, thread, acquires, behind);
        Deficit made{};
        if (found.read != NOTHING) made.write_site = flags_[found.write].site, made.read_site = flags_[found.read].site;
        return made;
    }

    size_t observations(u32 cluster) const { return observed_[cluster].size(); }

    // A fence whose scope may be too narrow between two threads: the first one after what the one did, the last one of the other, or of others.
    u32 narrow_fence(u32 other_cluster, u32 other, u32 time, u32 cluster, u32 thread) const {
        const auto &made = threads_[other_cluster][other].narrow;
        auto after = std::lower_bound(made.begin(), made.end(), std::make_pair(time, 0u));
        if (after != made.end()) return after->second;
        return threads_[cluster][thread].narrow.empty() ? narrow_ : threads_[cluster][thread].narrow.back().second;
    }

    // R-MO1: whether timing decides what a strong load gives, of two accesses in no order: a load of data and a store. `store`: the number of
    // the store; `observable`: it comes first.
    bool by_timing(i32 store, bool observable, u32 cluster, u32 thread) {
        if (store < 0) return true;
        const FlagAccess &write = flags_[(u32)store];
        return write.changes && !(write.order & IS_RELEASE) && !(observable && observed(store, cluster, thread));
    }
    const Flags &flags() const { return flags_; }
    i32 number(const FlagAccess &access) const { return flags_.number(access); }
    // For a strong access, if it may synchronise (a number): whether it is a read-modify-write of a lock; its site.
    bool swaps(i32 number) const { return number >= 0 && flags_.swaps((u32)number); }
    u32 site(i32 number) const { return number >= 0 ? flags_[(u32)number].site : 0; }

  private:
    static constexpr u32 MOST_LOOKED = 1 << 16;  // observations of other CTAs

    struct Observer {
        u32 cluster, thread, time;
    };
    struct Release {
        Moment moment;
        Scope scope;
        u32 site;
    };
    // A moment that a write hands on: the write's site, that of the release. For LOOSE ones: `release`, the widest that the write has; `behind`,
    // what is behind a fence.sc.
    struct Carried {
        Layer layer;
        Moment moment;
        Scope scope;
        u32 site;
        u32 release_site;
        Scope release_scope;
        Moment release = {}, behind = {};
    };
    // What a write hands on. A read-modify-write adds to what the write before it has; all writes in such a row have one root.
    struct Handed {
        std::vector<Carried> own;
        Knowledge wide, sc, loose;  // together: KNOWN moments of wide scope, those behind a fence.sc, LOOSE ones
        i32 before = -1;            // the write whose moments of all layers are handed on, too
        u32 root = 0, loose_root = 0, depth = 0;
        bool narrow = false;        // some moment has a narrow scope
    };
    // A fence of puts: the clock that a signal behind it publishes.
    struct PutsFence {
        Past past{};
        u32 site = NOTHING;
        std::shared_ptr<const Past> begin = nullptr;  // of the put, if it has its own signal
    };
    // A write that a strong read has observed, and whose moments are not acquired.
    struct Pending {
        u64 address;
        u32 write;
    };
    struct Thread {
        Release fences[4] = {};  // the last one of .cta, of .cluster, of .gpu and of .sys; of one GPU those of the last two are alike
        std::unordered_map<u64, Release> releases;
        std::vector<Pending> pending;  // of each address and root the last
        std::vector<u32> relaxed;      // sites of strong reads after which the thread has not acquired
        std::vector<Knowledge> sc;     // what is behind a fence.sc of what was observed so far
        u32 sc_actor = NOTHING;
        std::vector<std::pair<u32, u32>> narrow;  // fences of narrow scope: the thread's time, the site
        PutsFence puts, signal;  // signal: of a put with a signal
        std::shared_ptr<const Past> begin;
        bool of_puts = false;  // the next fence is one of puts
    };

    void observe_part(u32 number) {
        const FlagAccess &access = flags_[number];
        if (!learns(access)) return;
        Thread &own = threads_[access.cluster][access.thread];
        if (done_[access.from]) receive(number, own, hops(access));
        if (decided<Edge::GLOBAL_ACQUIRE>(access.order & IS_ACQUIRE)) acquire(access.cluster, access.thread, own, access.scope, access.address, true);
        else if (std::find(own.relaxed.begin(), own.relaxed.end(), access.site) == own.relaxed.end()) own.relaxed.push_back(access.site);
    }

    // What an access has observed is before what follows it, not before the access itself (R-GM8). So it is noted here.
    void publish_part(u32 number) {
        const FlagAccess &access = flags_[number];
        if (learns(access) && hops(access)) note_observer(access);
        done_[number] = true;
        if (!access.writes) return;
        wake(number);
        Thread &own = threads_[access.cluster][access.thread];
        Handed &handed = carried_[number];
        handed.root = handed.loose_root = number;
        if (access.updates && access.from >= 0 && done_[access.from]) hand_on(handed, carried_[access.from], access);
        Clocks &clocks = views_.clocks(access.cluster);
        Past past = clocks.release(access.thread);
        auto published = [&](Layer layer) { return views_.publish(access.cluster, access.thread, layer, past, access.site); };
        if (decided<Edge::GLOBAL_RELEASE>(access.order & IS_RELEASE)) own.releases[access.address] = {published(KNOWN), access.scope, access.site};
        auto released = own.releases.find(access.address);
        if (released != own.releases.end()) carry(handed, access, KNOWN, released->second);
        for (const Release &fence : own.fences)
            if (fence.moment.number) carry(handed, access, KNOWN, fence);
        for (const PutsFence *fence : {&own.puts, &own.signal})
            if (fence->site != NOTHING)
                carry(handed, access, KNOWN,
                      {views_.publish_puts(access.cluster, access.thread, fence->past, fence->site, access.address, fence->begin), SYS_SCOPE, fence->site});
        if (clocks.keeps_sc()) carry(handed, access, BEHIND_SC, {published(BEHIND_SC), SYS_SCOPE, access.site});
        carry(handed, access, LOOSE, {published(LOOSE), access.scope, access.site});
        unite(handed);
    }

    // A thread has observed what a write hands on.
    void receive(u32 number, Thread &own, bool hop) {
        const FlagAccess &access = flags_[number];
        const Handed &handed = carried_[access.from];
        views_.take_loose(access.cluster, access.thread, handed.loose);
        observed_[access.cluster].push_back(number);
        if (!hop) return;
        expect(own, access);
        if (decided<Edge::FENCE_SC_ACQUIRE>(!strict_ && access.order & IS_ACQUIRE && access.scope >= views_.sc()))
            views_.take(access.cluster, access.thread, behind_sc(access));
        else if (views_.clocks(access.cluster).keeps_sc()) note_sc(access, behind_sc(access));
    }

    // What is behind a fence.sc of what an access has read from. What counts for one rank or CTA only does not leave it.
    Knowledge behind_sc(const FlagAccess &access) const {
        return views_.near() && !views_.is_near(flags_[access.from].cluster, access.cluster) ? Knowledge() : carried_[access.from].sc;
    }

    // Whoever waits for a write can go on.
    void wake(u32 write) {
        woken_.insert(woken_.end(), waiting_[write].begin(), waiting_[write].end());
        std::vector<u32>().swap(waiting_[write]);
    }

    void hand_on(Handed &to, const Handed &from, const FlagAccess &access) {
        to.loose = from.loose, to.loose_root = from.loose_root, to.depth = from.depth + 1;
        if (!in_sequence(flags_[access.from], access) || !decided<Edge::READ_MODIFY_WRITE>()) return;
        to.before = access.from, to.root = from.root, to.narrow = from.narrow;
        to.wide = from.wide, to.sc = behind_sc(access);
    }

    // Add what a write has of its own to what it hands on.
    void unite(Handed &handed) {
        for (const Carried &each : handed.own) {
            const Knowledge &given = views_.given(each.moment);
            if (each.layer == LOOSE) handed.loose.join(given), loose_[{handed.loose_root, each.moment.chain}].push_back({handed.depth, each});
            else if (each.layer == BEHIND_SC) handed.sc.join(given);
            else if (each.scope >= views_.all() && !views_.near()) handed.wide.join(given);
            else handed.narrow = true;
        }
    }

    // The first observation by a thread counts.
    void note_observer(const FlagAccess &access) {
        std::vector<Observer> &all = observers_[(u32)access.from];
        bool again = !all.empty() && same(all.back(), access.cluster, access.thread);
        if (!again) all.push_back({access.cluster, access.thread, views_.clocks(access.cluster).time(access.thread)});
    }

    void note_narrow(u32 cluster, u32 thread, Thread &own, const effects::Fence &fence) {
        own.narrow.push_back({views_.clocks(cluster).time(thread), fence.site()});
        narrow_ = fence.site();
    }

    static bool same(const Observer &each, u32 cluster, u32 thread) { return each.cluster == cluster && each.thread == thread; }
    u32 width(Scope scope) const { return std::min<u32>(scope, views_.all()); }
    // Whether a write and what reads it are morally strong.
    bool meet(const FlagAccess &write, const FlagAccess &read) const {
        return includes(write.scope, write.cluster, write.thread, read) && includes(read.scope, write.cluster, write.thread, read);
    }
    // Whether an access gives its thread what another one has written, in a way that counts.
    bool learns(const FlagAccess &access) const { return access.observes && decided<Edge::VALUE_IS_USED>(!access.unused) && access.from >= 0; }
    bool hops(const FlagAccess &access) const { return decided<Inclusion::GLOBAL_FLAG>(meet(flags_[(u32)access.from], access)); }
    // Whether who observes a read-modify-write observes the write before it, too.
    bool in_sequence(const FlagAccess &write, const FlagAccess &update) const { return decided<Inclusion::GLOBAL_SEQUENCE>(meet(write, update)); }
    // The read-modify-write whose observers observe a write, too; -1 if there is none.
    i32 continued(u32 write) const {
        i32 next = flags_[write].next;
        return next >= 0 && in_sequence(flags_[write], flags_[(u32)next]) ? next : -1;
    }
    bool includes(Scope scope, u32 cluster, u32 thread, const FlagAccess &other) const {
        return views_.includes(scope, cluster, thread, other.cluster, other.thread);
    }

    void carry(Handed &handed, const FlagAccess &access, Layer layer, const Release &release) const {
        Carried made{layer, release.moment, release.scope, access.site, release.site, CTA_SCOPE};
        for (const Carried &each : handed.own) {
            if (layer != LOOSE) break;
            if (each.layer == BEHIND_SC) made.behind = each.moment;
            if (each.layer == KNOWN && (!made.release.number || each.scope > made.release_scope))
                made.release_scope = each.scope, made.release_site = each.release_site, made.release = each.moment;
        }
        for (Carried &each : handed.own)
            if (each.moment.chain == made.moment.chain && width(each.scope) == width(made.scope)) {
                if (made.moment.number >= each.moment.number) each = made;
                return;
            }
        handed.own.push_back(made);
    }

    // A strong read has observed a write. Behind a row of read-modify-writes the last one has what those before it have.
    void expect(Thread &own, const FlagAccess &access) const {
        u32 root = carried_[access.from].root;
        for (Pending &each : own.pending)
            if (each.address == access.address && carried_[each.write].root == root) return (void)(each.write = (u32)access.from);
        own.pending.push_back({access.address, (u32)access.from});
    }

    // Take what is pending, of one address or of all.
    void acquire(u32 cluster, u32 thread, Thread &own, Scope scope, u64 address, bool one) {
        auto taken = [&](const Pending &each) { return (!one || each.address == address) && take(cluster, thread, scope, carried_[each.write]); };
        own.pending.erase(std::remove_if(own.pending.begin(), own.pending.end(), taken), own.pending.end());
    }

    // A thread takes what its scope and that of each release allow. Returns whether no other acquire can bring more.
    bool take(u32 cluster, u32 thread, Scope scope, const Handed &handed) {
        bool wide = scope >= views_.all(), all = true;
        if (wide) views_.take(cluster, thread, handed.wide);
        for (const Handed *at = wide && !handed.narrow ? nullptr : &handed; at; at = at->before < 0 ? nullptr : &carried_[at->before])
            for (const Carried &each : at->own) {
                if (each.layer != KNOWN || (wide && !views_.near() && each.scope >= views_.all())) continue;
                const Views::Chain &from = views_.chain(each.moment.chain);
                auto includes = [&](Scope of) { return views_.includes(of, from.cluster, from.thread, cluster, thread); };
                bool included = decided<Inclusion::GLOBAL_RELEASE>(includes(each.scope)) && decided<Inclusion::GLOBAL_ACQUIRE>(includes(scope));
                const Knowledge &given = views_.given(each.moment);
                bool leaves = views_.near() && !views_.is_near(from.cluster, cluster);
                if (included) views_.take(cluster, thread, leaves ? given.not_behind_sc() : given);
                all = all && (included || wide);
            }
        return all;
    }

    // R-GM6: a fence.sc before a write, an observation of it, and a fence.sc after that are in this order. Weaker fences and an acquire count as
    // well, but for a strict replay (D17).
    void note_sc(const FlagAccess &access, const Knowledge &behind) {
        Thread &own = threads_[access.cluster][access.thread];
        if (own.sc_actor == NOTHING) {
            own.sc_actor = views_.clocks(access.cluster).new_actor();
            sc_threads_.resize(threads_.size());
            sc_threads_[access.cluster].push_back(access.thread);
        }
        Knowledge now = own.sc.empty() ? behind : own.sc.back().with(behind);
        if (!own.sc.empty() && now == own.sc.back()) return;
        own.sc.push_back(now);
        views_.clocks(access.cluster).take(access.thread, {}, own.sc_actor, (u32)own.sc.size());
    }

    void take_behind_sc(u32 cluster, u32 thread, Scope scope) {
        if (cluster >= sc_threads_.size() || scope < views_.sc()) return;
        for (u32 each : sc_threads_[cluster]) {
            const Thread &other = threads_[cluster][each];
            if (u32 known = views_.clocks(cluster).known(thread, other.sc_actor)) views_.take(cluster, thread, other.sc[known - 1]);
        }
    }

    // Whether both sides of the flag are there, and another thread has acquired it.
    bool is_of_another(const Deficit &deficit, u32 other, u32 time, u32 cluster, u32 thread) const {
        bool elsewhere = deficit.reader != cluster || deficit.reader_thread != thread;
        return elsewhere && deficit.lack == Lack::RELEASE && !deficit.relaxed && views_.covers(deficit.release, other, time);
    }

    // What lacks at the last observation by a cluster of a chain's first moment, from a given one on, that it has observed. If the thread has
    // observed one itself, those of others do not count: they may not have come to their fences yet. Where one side of a flag is there, the
    // other one is all that lacks: such a flag comes first.
    Deficit deficit(u32 cluster, u32 thread, const Moment &from) const {
        const Carried *first = nullptr;
        const Views::Chain &own = views_.chain(from.chain);
        u32 observation = 0;
        bool own_one = false, one_side = false;
        for (u32 number : observed_[cluster]) {
            if (flags_[number].cluster == own.cluster && flags_[number].thread == own.thread) continue;  // it has read what it wrote itself
            if (flags_[number].again) continue;  // data that a loop may throw away (R-MO1): no flag
            const Handed &handed = carried_[flags_[number].from];
            const Carried *carried = loose_of(handed, from.chain);
            if (!carried || carried->moment.number < from.number) continue;
            bool is_own = flags_[number].thread == thread, has_side = one_side_of(number, *carried);
            if (first && (is_own != own_one ? own_one : has_side != one_side ? one_side : carried->moment.number > first->moment.number)) continue;
            first = carried, observation = number, own_one = is_own, one_side = has_side;
        }
        return first ? deficit(observation, *first) : Deficit{};
    }

    // The missing part at a flag, of all that comes before it at a time of the thread that sets it.
    Deficit seen_from(Deficit lacks, u32 other, u32 time) const {
        bool released = lacks.lack != Lack::RELEASE && lacks.lack != Lack::FLAG_SCOPE;
        if (released && !views_.covers(lacks.release, other, time)) {
            lacks.both = lacks.relaxed && !fenced_behind(lacks.reader, lacks.reader_thread, lacks.read_site);
            lacks.lack = Lack::RELEASE, lacks.write_site = lacks.carried_site;
        }
        // R-GM6: each thread has a fence.sc, then a barrier comes, then one sets the flag. A fence.sc behind the flag is all that lacks.
        if (lacks.lack == Lack::RELEASE && views_.covers(lacks.behind, other, time)) lacks.lack = Lack::ACQUIRE;
        return lacks;
    }

    // The first observation of a write by a thread, for one of that thread; null: it does not count.
    const Observer *observer(const FlagAccess &access) const {
        for (const Observer &each : observers_[(u32)access.from])
            if (same(each, access.cluster, access.thread)) return &each;
        return nullptr;
    }

    // Whether the thread of a relaxed read has acquired since, by a fence.
    bool fenced_behind(u32 cluster, u32 thread, u32 read) const {
        const std::vector<u32> &relaxed = threads_[cluster][thread].relaxed;
        return std::find(relaxed.begin(), relaxed.end(), read) == relaxed.end();
    }

    // Whether a flag has a release or an acquire.
    bool one_side_of(u32 number, const Carried &each) const {
        const FlagAccess &access = flags_[number];
        return each.release.number || access.order & IS_ACQUIRE || fenced_behind(access.cluster, access.thread, access.site);
    }

    // The last moment of a LOOSE chain that a write hands on; null if it hands on none.
    const Carried *loose_of(const Handed &handed, u32 chain) const {
        auto row = loose_.find({handed.loose_root, chain});
        if (row == loose_.end()) return nullptr;
        auto after = std::upper_bound(row->second.begin(), row->second.end(), handed.depth, [](u32 depth, const auto &each) { return depth < each.first; });
        return after == row->second.begin() ? nullptr : &(after - 1)->second;
    }

    Deficit deficit(u32 number, const Carried &each) const {
        const FlagAccess &access = flags_[number], &write = flags_[access.from];
        const Views::Chain &from = views_.chain(each.moment.chain);
        Deficit made{
            Lack::NONE, write.site,     access.site,  each.release_site, each.release, each.behind, each.site, access.updates, !(access.order & IS_ACQUIRE),
            false,      access.cluster, access.thread};
        bool acquires = access.order & IS_ACQUIRE;
        made.handed_over = one_side_of(number, each) || !access.updates || flags_.swaps(number);
        if (!meet(write, access)) made.lack = Lack::FLAG_SCOPE;
        else if (!includes(each.release_scope, from.cluster, from.thread, access)) made.lack = Lack::RELEASE_SCOPE;
        else if (acquires && !includes(access.scope, from.cluster, from.thread, access)) made.lack = Lack::ACQUIRE_SCOPE;
        else made.lack = acquires ? Lack::RELEASE : Lack::ACQUIRE;
        return made;
    }

    Views &views_;
    const Flags &flags_;
    PassedFlags passed_{flags_};
    const bool strict_;
    std::vector<Handed> carried_;                     // by write
    std::vector<std::vector<Observer>> observers_;    // by write
    std::vector<bool> done_;
    std::vector<std::vector<Thread>> threads_;       // by CTA
    std::vector<std::vector<u32>> sc_threads_;       // by CTA: threads that have observed writes behind a fence.sc
    std::vector<std::vector<u32>> observed_;         // by CTA: strong reads that have observed a write
    std::map<std::pair<u32, u32>, std::vector<std::pair<u32, Carried>>> loose_;  // by root and chain: LOOSE moments with the depths of their writes
    std::vector<std::vector<u32>> waiting_;          // by write: clusters with threads that wait for it
    std::vector<u32> woken_;
    u32 narrow_ = 0;  // the site of the last fence of narrow scope
};
