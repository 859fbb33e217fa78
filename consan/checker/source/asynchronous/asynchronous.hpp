// Events of the asynchronous proxies: proxy fences, bulk and tensor copies, matrix products, and what other accesses meet of them.
#pragma once

#include "bounds.hpp"
#include "completions.hpp"
#include "launch_control.hpp"
#include "lifetimes.hpp"
#include "matrix.hpp"
#include "operations.hpp"
#include "tensors.hpp"

constexpr u32 RESPONSE_BYTES = 16;  // ISA "clusterlaunchcontrol.try_cancel"

class Asynchronous {
  public:
    Asynchronous(const Shape &shape, bool enabled, bool isa, Clocks &clocks, Scopes &scopes, Races &races, Copies &copies, Initialised &initialised,
                 Bounds &bounds, Mbarriers &mbarriers, Lifetimes &lifetimes, Issuers &issuers, Findings &findings)
        : shape_(shape), clocks_(clocks), bounds_(bounds), mbarriers_(mbarriers), lifetimes_(lifetimes), groups_(shape, clocks, scopes),
          proxies_(shape, enabled, isa, clocks, races, copies, mbarriers, findings),
          operations_(shape, clocks, races, copies, initialised, proxies_, groups_, issuers, mbarriers, findings, isa),
          completions_(groups_, mbarriers, copies), copies_(copies), launches_(shape, clocks, findings) {}

    // Whether a module has such events at all.
    static bool has(const Input &input) {
        for (u32 block = 1; block <= input.block_count; ++block)
            for (i32 i = 0; i < input.blocks[block].events; ++i)
                if (effects::has(input.events[input.blocks[block].first + i], effects::Trait::asynchronous)) return true;
        return false;
    }

    Operations &operations() { return operations_; }

    const Completions &completions() const { return completions_; }
    // By what the parts of a copy that is about to be issued are known to be over.
    std::vector<Completion> ends(u32 thread, const effects::CopyIssue &) const {
        return {{Completion::COPY_GROUP, 0, thread, copies_.group(thread), copies_.next(thread)}};
    }
    std::vector<Completion> ends(u32 thread, const effects::BulkStore &) const { return {of_group(Completion::RESULTS, thread)}; }
    std::vector<Completion> ends(u32 thread, const effects::TensorStore &) const { return {of_group(Completion::RESULTS, thread)}; }
    std::vector<Completion> ends(u32 thread, const effects::ToShared &copy) const {
        std::vector<Completion> parts;
        for (const Receiver &each : receivers(thread, copy)) parts.push_back(phase_of(thread, each));
        return parts;
    }
    // A number of the stores that an instruction makes, alike for lanes of a warp that execute it together with one source (SEMANTICS 2).
    // `times`: how often the thread has executed it. Its groups do not count: one lane may have more of them.
    u32 content(u32, const effects::Effect &, u32) const { return 0; }
    u32 content(u32 thread, const effects::BulkStore &copy, u32 times) const { return content_of(thread, copy, times); }
    u32 content(u32 thread, const effects::TensorStore &copy, u32 times) const { return content_of(thread, copy, times); }

    // By what a copy is known to have read its tensor map: of a load, the part of the own CTA; it may know of no other.
    Completion end_of_map(u32, const effects::Effect &) const { return {}; }
    Completion end_of_map(u32 thread, const effects::TensorStore &) const { return of_group(Completion::SOURCES, thread); }
    Completion end_of_map(u32 thread, const effects::TensorLoad &load) const {
        std::vector<Receiver> to = receivers(thread, load);
        auto own = [&](const Receiver &each) { return shape_.owner(each.mbarrier) == shape_.home(thread); };
        auto found = std::find_if(to.begin(), to.end(), own);
        return found == to.end() ? Completion{} : phase_of(thread, *found);
    }

    // For repeats.hpp: of modules in which products are the only operations.
    void state(std::vector<u32> &found, u32 witness) const {
        groups_.state(found, witness);
        operations_.state(found, witness);
        proxies_.state(found, witness);
    }
    std::vector<u32> commits() const { return groups_.commits(); }
    // The groups since then have come so many times more.
    void repeat(const std::vector<u32> &since, u64 times, const std::vector<bool> &gone, u32 witness) {
        std::vector<u32> more = groups_.commits();
        for (size_t thread = 0; thread < more.size(); ++thread) more[thread] = (u32)((more[thread] - since[thread]) * times);
        groups_.move(more, gone, witness);
        operations_.move(more);
    }

    // An access to shared memory, or (`copy`) a cp.async about to be issued.
    void access(const Access &access, bool copy = false) {
        operations_.meet(access);
        if (access.reads && !access.writes) proxies_.read(access);
        if (access.writes && !access.allocation) proxies_.write(access, copy);  // SEMANTICS, T5: that word needs no proxy fence
    }
    // An mbarrier takes bytes.
    void meet(const Access &access) { operations_.meet(access); }

    std::pair<u32, u32> signalling(u32 place, u32 thread) const { return operations_.signalling(place, thread); }

    void finish() { operations_.finish(); }

    // Whether the mbarriers that an operation will signal have been initialised.
    bool ready(u32, const effects::Effect &) const { return true; }
    bool ready(u32 thread, const effects::ToShared &copy) const { return are_there(receivers(thread, copy)); }
    bool ready(u32 thread, const effects::BulkPush &push) const { return are_there({receiver(thread, push)}); }
    bool ready(u32 thread, const effects::StoreAsync &store) const { return are_there({receiver(thread, store)}); }

    // Whether a thread may let others go on: the products that its warp has committed have been issued by the whole warpgroup (SEMANTICS 4.3).
    bool together(u32 thread) const { return groups_.together(thread); }

    // An event of a thread; returns which words that are not hashed decide what is found.
    template <typename E> u32 handle(u32 thread, const E &effect, std::vector<u32> &released) { return on(thread, effect, released), 0; }
    // A box in part outside of its tensor reads less: what it meets is also met by one that lies inside.
    u32 handle(u32 thread, const effects::TensorStore &copy, std::vector<u32> &) {
        Tensor tensor(copy);
        store(thread, copy, stored(thread, copy), tensor.bytes(), tensor.inside(place(thread, copy), shape_));
        return tensor.whole() ? 0 : BY_CLIP;
    }

  private:
    typedef std::vector<u32> Released;

    template <typename E> u32 place(u32 thread, const E &effect) const { return shape_.place(effect.at(), thread, effect.ranked()); }

    // D3: a fence for shared::cta is for that of the own CTA.
    void on(u32 thread, const effects::ProxyFence &fence, Released &) {
        u32 global = 1u << clocks_.global_memory(), shared = fence.narrow() ? 1u << clocks_.shared_memory(shape_.home(thread)) : global - 1;
        clocks_.fence(thread, (fence.memories() & 1 ? shared : 0) | (fence.memories() & 2 ? global : 0));
    }
    void on(u32 thread, const effects::BulkCommit &, Released &) { groups_.commit(thread); }
    void on(u32 thread, const effects::BulkWait &wait, Released &) { groups_.wait(thread, wait.pending(), wait.read_only()); }
    void on(u32 thread, const effects::ProductCommit &, Released &) { groups_.commit_products(thread); }
    void on(u32 thread, const effects::ProductWait &wait, Released &) { groups_.wait_for_products(thread, wait.pending()); }
    void on(u32 thread, const effects::LaunchAnswer &answer, Released &) { launches_.answer(thread, answer.site(), answer.cancelled() != 0, answer.query()); }
    void on(u32 thread, const effects::LaunchUse &use, Released &) { launches_.use(thread, use.site(), use.query()); }
    void on(u32 thread, const effects::BulkLoad &load, Released &released) { respond(thread, load, load.size(), BULK_LOAD_OPERATION, released); }
    void on(u32 thread, const effects::TensorLoad &load, Released &released) { respond(thread, load, Tensor(load).bytes(), BULK_LOAD_OPERATION, released); }
    // clusterlaunchcontrol.try_cancel: 16 bytes come to the own CTA, or to each of the cluster.
    void on(u32 thread, const effects::LaunchRequest &request, Released &released) {
        launches_.request(thread, &request.event(), place(thread, request));
        respond(thread, request, RESPONSE_BYTES, LAUNCH_REQUEST_OPERATION, released);
    }
    void on(u32 thread, const effects::BulkStore &copy, Released &) {
        Operation made = stored(thread, copy);
        if (copy.masked()) made.chosen = copy.chosen() & WHOLE_CHUNK;
        store(thread, copy, made, copy.size(), Tensor::chunks_of(place(thread, copy), copy.size()));
    }

    // Bytes come to one CTA or to several.
    void respond(u32 thread, const effects::ToShared &copy, u32 bytes, u32 kind, Released &released) {
        std::vector<Receiver> to = receivers(thread, copy);
        for (const Receiver &each : to) {
            Operation made = signalled(kind, thread, copy.site(), each, bytes);
            if (!mbarriers_.current(each.mbarrier, made.phase)) continue;
            if (bytes && bounds_.holds(thread, made.site, each.place, bytes)) operations_.issue(made, thread, Tensor::chunks_of(each.place, bytes));
        }
        for (const Receiver &each : to) mbarriers_.transact(thread, copy.site(), each.mbarrier, -(i32)bytes, released);
    }

    // A copy from the own shared memory to that of a CTA.
    void on(u32 thread, const effects::BulkPush &push, Released &released) {
        Receiver to = receiver(thread, push);
        u32 bytes = push.size(), from = shape_.place(push.source(), thread, false);
        Operation made = signalled(BULK_LOAD_OPERATION, thread, push.site(), to, bytes);
        if (push.adds()) made.add((u8)push.element());
        if (mbarriers_.current(to.mbarrier, made.phase) && bytes) {
            if (bounds_.holds(thread, made.site, from, bytes)) operations_.issue(made.source(shape_.home(thread)), thread, Tensor::chunks_of(from, bytes));
            if (bounds_.holds(thread, made.site, to.place, bytes)) operations_.issue(made, thread, Tensor::chunks_of(to.place, bytes));
        }
        mbarriers_.transact(thread, made.site, to.mbarrier, -(i32)bytes, released);
    }

    void on(u32 thread, const effects::StoreAsync &store, Released &released) {
        Receiver to = receiver(thread, store);
        u32 bytes = store.bytes();
        Operation made = signalled(STORE_ASYNC_OPERATION, thread, store.site(), to, bytes);
        if (store.strong()) made.add((u8)store.element());
        made.element = (u8)store.element(), made.chosen = ((1u << bytes) - 1) << to.place % CHUNK;
        if (mbarriers_.current(to.mbarrier, made.phase) && bounds_.holds(thread, made.site, to.place, bytes))
            operations_.issue(made, thread, {to.place / CHUNK});
        mbarriers_.transact(thread, made.site, to.mbarrier, -(i32)bytes, released);
    }

    // The bytes of one CTA that an operation writes, and the mbarrier that it signals then.
    struct Receiver {
        u32 place, mbarrier;
    };

    template <typename E> Receiver receiver(u32 thread, const E &effect) const {
        return {place(thread, effect), shape_.place(effect.mbarrier_at(), thread, effect.ranked())};
    }

    // A multicast writes the same bytes of each CTA of its mask, and signals that CTA's mbarrier (D13: the mask is of ranks). With PAIR that is
    // the one of the even or the odd CTA of each pair, as that of the operand is.
    std::vector<Receiver> receivers(u32 thread, const effects::ToShared &copy) const {
        Receiver to = receiver(thread, copy);
        u32 odd = shape_.owner(to.mbarrier) & 1;
        if (!copy.multicast()) return {to};
        std::vector<Receiver> found;
        for (u32 cta = 0; cta < shape_.ctas(); ++cta)
            if (copy.ctas() >> cta & 1) found.push_back({shape_.there(to.place, cta), shape_.there(to.mbarrier, copy.pair() ? (cta & ~1u) | odd : cta)});
        return found;
    }

    bool are_there(const std::vector<Receiver> &to) const {
        return std::all_of(to.begin(), to.end(), [&](const Receiver &each) { return mbarriers_.exists(each.mbarrier); });
    }

    template <typename E> u32 content_of(u32 thread, const E &copy, u32 times) const { return place(thread, copy) / CHUNK << 14 | (times & 16383); }

    Completion of_group(Completion::How how, u32 thread) const { return {how, BULK_STORE_OPERATION, thread, groups_.bulk(thread).commits}; }

    Completion phase_of(u32 thread, const Receiver &to) const {
        Completion made{Completion::NEVER, BULK_LOAD_OPERATION, thread};
        if (mbarriers_.current(to.mbarrier, made.phase)) made.how = Completion::PHASE;
        return made;
    }

    Operation signalled(u32 kind, u32 thread, u32 site, const Receiver &to, u32 bytes) {
        Operation made{kind, site, thread};
        made.target = shape_.owner(to.place), made.signal = shape_.owner(to.mbarrier);
        lifetimes_.start(thread, made.site, to.place, bytes);
        lifetimes_.start(thread, made.site, to.mbarrier, 8);
        return made;
    }

    Operation stored(u32 thread, const effects::Effect &copy) const {
        Operation made{BULK_STORE_OPERATION, copy.site(), thread};
        made.group = groups_.bulk(thread).commits;
        return made;
    }

    template <typename E> void store(u32 thread, const E &copy, const Operation &made, u32 bytes, const std::vector<u32> &chunks) {
        if (bytes && bounds_.holds(thread, made.site, place(thread, copy), bytes)) operations_.issue(made, thread, chunks);
    }

    // One operand of a product, by a warp: its first lane speaks for all, since they execute it together. A quarter of the rows is a quarter
    // of the chunks, whatever the major dimension (D25).
    void on(u32 thread, const effects::ProductOperand &product, Released &) {
        if (thread % LANES) return;
        std::vector<u32> chunks = Descriptor((u64)product.high() << 32 | product.low()).chunks(product.rows(), product.depth(), product.major());
        Operation made{WGMMA_OPERATION, product.site(), thread & ~127u};
        made.group = groups_.products(thread).commits;
        if (product.own_rows()) {
            size_t quarter = chunks.size() / 4, first = thread / LANES % 4 * quarter;
            chunks = {chunks.begin() + first, chunks.begin() + first + quarter};
            made.reader = thread / LANES;
        }
        u32 low = *std::min_element(chunks.begin(), chunks.end()), high = *std::max_element(chunks.begin(), chunks.end()) + CHUNK;
        if (!bounds_.holds(thread, made.site, shape_.place(low, thread, false), high - low)) return;
        for (u32 &chunk : chunks) chunk = shape_.place(chunk, thread, false) / CHUNK;
        operations_.issue(made, thread, chunks);
    }

    const Shape &shape_;
    Clocks &clocks_;
    Bounds &bounds_;
    Mbarriers &mbarriers_;
    Lifetimes &lifetimes_;
    Groups groups_;
    Proxies proxies_;
    Operations operations_;
    Completions completions_;
    const Copies &copies_;
    LaunchControl launches_;
};
