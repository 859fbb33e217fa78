// Asynchronous operations on shared memory (SEMANTICS 4.2, R-B1 to R-B6, and 4.3, R-G1 to R-G3): bulk and tensor copies, operands of wgmma.
//
// An operation is ordered behind what its thread did before, and before nothing until its completion is known: a phase of an mbarrier, or a
// group. It covers whole chunks of 16 bytes (ISA "cp.async.bulk": size and addresses are multiples of 16). Of the operations of one site
// that complete in order, the latest is enough: it is complete only where the earlier ones are.
#pragma once

#include <array>
#include <map>

#include "groups.hpp"
#include "issuers.hpp"
#include "initialised.hpp"
#include "proxies.hpp"

constexpr u32 CHUNK = 16, WHOLE_CHUNK = (1u << CHUNK) - 1;

// Its `thread`: of a product, the first one of the warpgroup. Strong: a reduction.
struct Operation : Side {
    Operation(u32 kind, u32 site, u32 thread) : kind(kind) {
        this->site = site, this->thread = thread;
        writes = kind & 1, reads = !writes;
        proxy = kind == STORE_ASYNC_OPERATION ? GENERIC_PROXY : ASYNC_PROXY;
    }

    u32 kind, issued = 0, group = 0, low = 0, high = 0;  // issued: the moment of its thread; low, high: its bytes
    Mbarriers::Phase phase{};
    Ticket ticket{};
    u32 target = 0, signal = 0;             // the CTAs of its bytes and of its mbarrier
    u32 chosen = WHOLE_CHUNK;               // the bytes of each chunk that it accesses
    Vector seen{};                          // of a load in a cluster: what its thread knew
    u32 reader = NOTHING;                   // of rows of a product: the warp that reads them; NOTHING: all warps of the warpgroup
    LastWaits::Wait freed{};                // the last wait of its thread before it
    bool informed = false, refill = false;  // the issuer knew of all earlier phases; the bytes had been brought before

    // It adds to elements of so many bytes.
    void add(u8 bytes) { strong = reads = true, element = bytes, scope = GPU_SCOPE; }
    // The side of a copy that reads.
    Operation source(u32 cta) const {
        Operation made = *this;
        made.kind = BULK_SOURCE_OPERATION, made.reads = true, made.writes = made.strong = false, made.element = 0, made.target = cta;
        return made;
    }
    bool loads() const { return kind == BULK_LOAD_OPERATION || kind == LAUNCH_REQUEST_OPERATION; }
    bool brings() const { return loads() || kind == STORE_ASYNC_OPERATION; }
    bool by_phase() const { return brings() || kind == BULK_SOURCE_OPERATION; }
    bool by_commit() const { return kind == TCGEN05_MMA_OPERATION || kind == TCGEN05_CP_OPERATION; }
    bool generic() const { return proxy == GENERIC_PROXY; }
};

class Operations {
  public:
    Operations(const Shape &shape, Clocks &clocks, Races &races, Copies &copies, Initialised &initialised, Proxies &proxies, Groups &groups, Issuers &issuers,
               Mbarriers &mbarriers, Findings &findings, bool isa)
        : isa_(isa), shape_(shape), clocks_(clocks), races_(races), copies_(copies), initialised_(initialised), proxies_(proxies), groups_(groups),
          issuers_(issuers), mbarriers_(mbarriers), findings_(findings), heads_((shape.bytes() + CHUNK - 1) / CHUNK, 0), nodes_(1) {}

    // Thread `issuer` (of a product: the first of its warp) issues an operation on some chunks.
    void issue(Operation made, u32 issuer, const std::vector<u32> &chunks) {
        made.issued = clocks_.time(issuer);
        if (made.kind == WGMMA_OPERATION) product_issues_[{made.thread, made.group}][(issuer - made.thread) / LANES] = made.issued;
        if (!chunks.empty()) made.low = *std::min_element(chunks.begin(), chunks.end()) * CHUNK + (u32)__builtin_ctz(made.chosen);
        if (!chunks.empty()) made.high = *std::max_element(chunks.begin(), chunks.end()) * CHUNK + LANES - (u32)__builtin_clz(made.chosen);
        if (made.loads() && shape_.ctas() > 1) made.seen = clocks_.seen(issuer);
        if (made.by_phase()) made.informed = mbarriers_.phases_known(issuer, made.phase) >= made.phase.phase;
        if (made.by_phase()) made.freed = mbarriers_.waits().last(issuer);
        u32 number = (u32)operations_.size();
        for (u32 chunk : chunks) made.refill |= made.brings() && brought(chunk, made);
        operations_.push_back(made);
        Access use{made};
        use.thread = issuer, use.operation = (u8)made.kind;
        use.bytes = use.element = (u8)(made.element ? made.element : made.chosen == WHOLE_CHUNK ? CHUNK : 1);
        for (u32 chunk : chunks) {
            for (u32 at = 0; at < CHUNK; at += use.bytes) {
                use.offset = chunk * CHUNK + at;
                if (made.chosen >> at & 1 && shape_.holds(use.offset, use.bytes)) start(made, use);  // chunks of a misaligned copy end behind it
            }
            keep(heads_[chunk], number, made.chosen);
        }
    }

    // An access, or a chunk of an operation, meets operations whose completion its thread does not know.
    void meet(const Access &access) {
        if (!operations_.empty()) meet_each(access);
    }
    void meet_each(const Access &access) {
        for (u32 chunk = access.offset / CHUNK; chunk * CHUNK < access.offset + access.bytes; ++chunk)
            for (u32 at = heads_[chunk]; at; at = nodes_[at].next) {
                const Operation &other = operations_[nodes_[at].operation];
                if (!(nodes_[at].mask & mask_of(access, chunk)) || !(access.writes || other.writes)) continue;
                race_rule::meet(other, access, Facts{{}, *this, heads_[chunk], nodes_[at].operation, access},
                                [&](const Record &found) { findings_.add(found); });
            }
    }

    // The site and thread of a copy that will signal an mbarrier, if a thread does not know that the copy is over (R-M12).
    std::pair<u32, u32> signalling(u32 place, u32 thread) const {
        Mbarriers::Phase now;
        if (mbarriers_.current(place, now))
            for (const Operation &each : operations_)
                if (each.by_phase() && each.phase.object == now.object && !observed(each, thread)) return {each.site, each.thread};
        return {0, 0};
    }

    // Products, as numbers, by chunk. `witness` knows what everybody knows.
    void state(std::vector<u32> &found, u32 witness) const {
        for (u32 chunk = 0; chunk < heads_.size(); ++chunk) {
            if (!heads_[chunk]) continue;
            found.push_back(chunk);
            for (u32 at = heads_[chunk]; at; at = nodes_[at].next) {
                const Operation &each = operations_[nodes_[at].operation];
                for (u32 value : {each.kind, each.site, each.thread, each.reader, nodes_[at].mask}) found.push_back(value);
                groups_.distances(found, each.thread, each.group, witness);
            }
        }
    }
    // The groups of products have so many more numbers, by thread.
    void move(const std::vector<u32> &more) {
        for (Operation &each : operations_) each.group += more[each.thread];
        ProductIssues moved;
        for (const auto &[key, times] : product_issues_) moved[{key.first, key.second + more[key.first]}] = times;
        product_issues_ = std::move(moved);
    }

    // The CTA has ended: nobody knows that these are complete (R-CP5, R-M12).
    void finish() {
        for (const Operation &each : operations_) {
            bool over = each.by_phase()    ? seen_by(each.target, each) && seen_by(each.signal, each)
                        : each.by_commit() ? issuers_.known_to_any(each.ticket)
                                           : owner(each).read > each.group;
            if (over) continue;
            Record found{};
            found.kind = LIFETIME;
            found.reason = EXIT;
            found.site = each.site;
            found.thread = each.thread;
            found.own_operation = each.kind;
            found.offset = each.low;
            found.bytes = each.high - each.low;
            describe(found, each, each.thread);
            findings_.add(found);
        }
    }

  private:
    // By the first thread of a warpgroup, and the group of products: when each warp has issued the last one of the group; 0: it has not.
    typedef std::map<std::pair<u32, u32>, std::array<u32, 4>> ProductIssues;
    struct Node {
        u32 next, operation, mask;  // mask: bytes of the chunk
        std::vector<u32> behind;    // of a tcgen05 operation: those whose completion its thread knew when it issued it
    };

    static u32 mask_of(const Access &access, u32 chunk) {
        u32 low = access.offset > chunk * CHUNK ? access.offset - chunk * CHUNK : 0, high = std::min(access.offset + access.bytes - chunk * CHUNK, CHUNK);
        return (1u << high) - (1u << low);
    }

    // An operation meets what came before it.
    void start(const Operation &made, const Access &use) {
        mbarriers_.data(use);
        meet(use);
        copies_.meet(use);
        races_.meet(use, Actor{*this, made, use});
        if (!made.generic()) proxies_.meet(use);
        if (made.loads()) proxies_.load(use, made.phase);
        if (made.by_phase() && made.writes) proxies_.store(use, made.phase, !made.generic());
        initialised_.add(use, [this, number = operations_.size() - 1](u32 thread) { return observed(operations_[number], thread); });
    }

    // Whether a load has replaced what an access touched, behind that access, and is known to be complete: who is behind the load is behind the
    // access. That matters where the threads themselves need not be ordered: between CTAs.
    bool replaced(const Operation &made, const Access &use, const Access &old, u32 time) const {
        for (u32 at = heads_[use.offset / CHUNK]; at; at = nodes_[at].next) {
            const Operation &load = operations_[nodes_[at].operation];
            if (!load.seen || !observed(load, made.thread)) continue;
            if (old.thread == load.thread ? time <= load.issued : clocks_.in(load.seen, old.thread) >= time) return true;
        }
        return false;
    }

    // Whether somebody in a CTA knows that an operation is complete. For that the order of execution is enough.
    bool seen_by(u32 cta, const Operation &of) {
        if (shape_.ctas() == 1) return mbarriers_.waited(of.phase);
        auto known = seen_.find({cta, of.phase.object});
        if (known == seen_.end()) known = seen_.emplace(std::make_pair(cta, of.phase.object), mbarriers_.phases_seen(shape_, cta, of.phase.object)).first;
        return known->second > of.phase.phase;
    }

    const Groups::Owner &owner(const Operation &of) const { return of.kind == WGMMA_OPERATION ? groups_.products(of.thread) : groups_.bulk(of.thread); }

    // Whether a thread is behind the issue of an operation; of a product, behind that of a warp: all four execute it.
    bool issued_before(const Operation &of, u32 thread) const {
        if (of.kind != WGMMA_OPERATION) return of.thread == thread || clocks_.before(of.thread, of.issued, thread);
        const std::array<u32, 4> &times = product_issues_.at({of.thread, of.group});
        for (u32 warp = 0; warp < times.size(); ++warp) {
            u32 first = of.thread + warp * LANES;
            if (times[warp] && (thread / LANES == first / LANES || clocks_.before(first, times[warp], thread))) return true;
        }
        return false;
    }

    bool observed(const Operation &of, u32 thread) const {
        if (of.by_phase()) return mbarriers_.knows(thread, of.phase);
        if (of.by_commit()) return issuers_.known(of.ticket, thread);
        if (of.kind == WGMMA_OPERATION) return groups_.products_over(of.thread, of.group, thread, of.reader);
        return groups_.sources_read(of.thread, of.group, thread);
    }

    // Whether a tcgen05 operation on the same chunk came behind an operation, and a thread knows that it is complete. Its completion then tells
    // of both, also where the scope of the wait keeps back the rest of what its thread knew (T18).
    bool covered(u32 head, u32 number, u32 thread) const {
        for (u32 at = head; at; at = nodes_[at].next) {
            const Node &node = nodes_[at];
            if (std::find(node.behind.begin(), node.behind.end(), number) != node.behind.end() && observed(operations_[node.operation], thread)) return true;
        }
        return false;
    }

    // The operations on a chunk that an operation comes behind.
    std::vector<u32> behind(u32 head, const Operation &made) const {
        std::vector<u32> found;
        for (u32 at = head; at; at = nodes_[at].next)
            if (operations_[nodes_[at].operation].by_phase() && observed(operations_[nodes_[at].operation], made.thread)) found.push_back(nodes_[at].operation);
        return found;
    }

    // Whether the bytes had been brought before. Many asynchronous stores bring those of one phase, and reductions add to them.
    bool brought(u32 chunk, const Operation &made) const {
        for (u32 at = heads_[chunk]; at; at = nodes_[at].next) {
            const Operation &old = operations_[nodes_[at].operation];
            if (!(nodes_[at].mask & made.chosen)) continue;
            if (made.loads() ? old.loads() : old.brings() && old.phase.object == made.phase.object && old.phase.phase < made.phase.phase) return true;
        }
        return false;
    }

    void keep(u32 &head, u32 number, u32 mask) {
        const Operation &made = operations_[number];
        std::vector<u32> earlier;
        if (made.by_commit()) earlier = behind(head, made);
        for (u32 at = head; at; at = nodes_[at].next) {
            const Operation &old = operations_[nodes_[at].operation];
            if (old.kind != made.kind || old.site != made.site || old.reader != made.reader || nodes_[at].mask != mask) continue;
            if (made.by_phase() ? old.phase.object != made.phase.object : old.thread != made.thread) continue;
            nodes_[at].operation = number, nodes_[at].behind = std::move(earlier);
            return;
        }
        nodes_.push_back({head, number, mask, std::move(earlier)});
        head = (u32)nodes_.size() - 1;
    }

    // A refill that overtakes accesses of an earlier fill is a race, not a missing wait: its issuer did not wait until the stage was free. That
    // is so if the accessing thread had waited for an earlier phase and released nothing since, or if it had seen some, and the issuer not all.
    bool overtakes(const Operation &load, u32 thread, u32 time) const {
        if (!load.by_phase() || !load.refill || load.phase.phase == 0) return false;
        if (!load.informed && mbarriers_.phases_known(thread, load.phase)) return true;
        return mbarriers_.nothing_since(thread, load.phase, time);
    }

    // What is known of an operation that comes behind an access of a thread.
    struct Actor {
        const Operations &all;
        const Operation &made;
        const Access &use;

        bool replaced(const Access &old, u32 time) const { return all.replaced(made, use, old, time); }
        // A load behind an unordered read: a wait lacks, and the read is of what the load brings, as it is where the read comes second.
        bool awaited(const Access &old, u32 time) const { return made.by_phase() && use.writes && !old.writes && !all.overtakes(made, old.thread, time); }
        void wait(Record &found, const Access &old) const {
            found.hazard = RAW;
            found.reason = all.why(made, old.thread, false);
            all.describe(found, made, old.thread);
        }
    };

    // Compares an operation with a later access, of a thread or of another operation. `head`: of the operations on the chunk.
    struct Facts : race_rule::PlainFacts {
        const Operations &all;
        u32 head, number;
        const Access &now;

        const Operation &old() const { return all.operations_[number]; }
        Scope narrowest() const { return all.shape_.home(old().thread) == all.shape_.home(now.thread) ? CTA_SCOPE : CLUSTER_SCOPE; }
        bool complete() const { return all.observed(old(), now.thread) || all.covered(head, number, now.thread); }
        bool asynchronous() const { return true; }
        // R-C9: requests of one place are in order by nothing but their completion. An issuer that is to see the last fill has issued too early.
        bool issued() const {
            bool requests = old().kind == LAUNCH_REQUEST_OPERATION && now.operation == LAUNCH_REQUEST_OPERATION;
            return !requests && is_behind() && !(old().thread == now.thread && early());
        }
        // A read is of what the operation brings. R-T5: a thread waits at the mbarrier of the commit, for another phase.
        bool awaited() const { return !now.writes || (old().by_commit() && all.issuers_.informed(old().ticket, now.thread)); }
        bool early() const { return !(now.operation && now.writes) && all.overtakes(old(), now.thread, all.clocks_.time(now.thread)); }
        bool is_behind() const { return all.issued_before(old(), now.thread); }

        // T13: a generic write behind the wait for a commit, and no proxy fence between. D5: complete_tx is a release at .cluster scope, of an issuer
        // in another CTA, and all acquires that bring it are of .cta scope.
        template <typename Add> void bridge(Add add) const {
            if (all.isa_) bridge_by_the_isa(add);
        }
        template <typename Add> void bridge_by_the_isa(Add add) const {
            u32 memory = all.clocks_.shared_memory(all.shape_.owner(now.offset));
            if (old().by_commit() && !now.operation && all.issuers_.unbridged(old().ticket, now.thread, memory))
                add(lenient(MISSING_PROXY_FENCE, NO_FENCE_BEHIND_COMMIT));
            bool narrow = old().by_phase() && narrowest() != CTA_SCOPE && !all.mbarriers_.knows_widely(now.thread, old().phase);
            if (all.observed(old(), now.thread) && decided<COMPLETION_SCOPE>(narrow)) add(lenient(SCOPE, COMPLETION_SCOPE));
        }
        Record lenient(Kind kind, Reason reason) const {
            Record found = race_rule::pair(old(), now, *this);
            found.kind = kind, found.reason = reason;
            return found;
        }

        void place(Record &found) const {
            found.flags = OTHER_ASYNC | (is_behind() ? 0 : UNORDERED);
            found.operation = old().kind, found.own_operation = now.operation;
            found.offset = now.offset, found.bytes = now.bytes;
            all.describe(found, old(), now.thread);
        }
        void wait(Record &found) const {
            bool operand = now.operation == TCGEN05_MMA_OPERATION || now.operation == TCGEN05_CP_OPERATION;
            found.reason = all.why(old(), now.thread, now.operation && !operand);
            if (!is_behind()) found.signal_thread = NOTHING;
            if (found.reason == REFILLED && operand) all.describe_freeing(found, old());
        }
    };

    // Why a thread does not know that an operation is complete. `engine`: it is about to issue another one.
    Reason why(const Operation &of, u32 thread, bool engine) const {
        if (of.by_phase()) {
            if (decided<OTHER_LANES>(lanes_know(of, thread))) return OTHER_LANES;
            bool refilled = !engine && of.refill && mbarriers_.phases_known(thread, of.phase) == of.phase.phase;
            if (refilled && decided<REFILLED>(mbarriers_.waits(thread, of.phase))) return REFILLED;
            if (decided<WAITED_NO_BARRIER>(mbarriers_.heeded(of.phase))) return WAITED_NO_BARRIER;
            return refilled ? REFILLED : NOT_WAITED;
        }
        if (of.by_commit()) return issuers_.why(of.ticket, thread);
        const Groups::Owner &own = owner(of);
        bool product = of.kind == WGMMA_OPERATION;
        if (decided<OWN_WARP_WAITED>(product && thread / LANES / 4 == of.thread / LANES / 4 && groups_.products(thread).retired > of.group))
            return engine ? WAITED_NO_BARRIER : OWN_WARP_WAITED;
        if (decided<NOT_COMMITTED>(of.group >= own.commits)) return NOT_COMMITTED;
        if (of.group < own.read) return of.thread / LANES == thread / LANES && !product ? OTHER_LANES : WAITED_NO_BARRIER;
        return decided<OTHER_ISSUER>(groups_.bulk(thread).waits && of.thread != thread) ? OTHER_ISSUER : NOT_WAITED;
    }

    // The arrival that has let a refill begin, if the thread that reads has made it.
    void describe_freeing(Record &found, const Operation &of) const {
        Record freed = found;
        freed.signal_thread = 0;
        mbarriers_.waits().describe(freed, of.freed);
        if (freed.signal_site && freed.signal_thread / LANES == found.thread / LANES) found = freed;
    }

    bool lanes_know(const Operation &of, u32 thread) const {
        u32 first = thread / LANES * LANES, end = std::min(first + LANES, clocks_.threads());
        for (u32 lane = first; lane < end; ++lane)
            if (observed(of, lane)) return true;
        return false;
    }

    void describe(Record &found, const Operation &of, u32 thread) const {
        if (of.by_phase()) return mbarriers_.describe(found, of.phase);
        if (of.by_commit()) return issuers_.describe(found, of.ticket, thread, false);
        const Groups::Owner &own = owner(of);
        found.group = of.group, found.commits = own.commits, found.retired = own.read;
    }

    bool isa_;
    const Shape &shape_;
    Clocks &clocks_;
    Races &races_;
    Copies &copies_;
    Initialised &initialised_;
    Proxies &proxies_;
    Groups &groups_;
    Issuers &issuers_;
    Mbarriers &mbarriers_;
    Findings &findings_;
    std::vector<u32> heads_;  // by chunk
    std::vector<Node> nodes_;
    std::vector<Operation> operations_;
    ProductIssues product_issues_;
    std::map<std::pair<u32, u32>, u32> seen_;  // at the end: by CTA and mbarrier
};
