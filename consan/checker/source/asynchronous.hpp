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

    static bool is_one(i32 kind) {
        return (kind >= PROXY_FENCE && kind <= PRODUCT_WAIT && kind != GLOBAL_READ) || kind == STORE_ASYNC || (kind >= BULK_PUSH && kind <= LAUNCH_REQUEST) ||
               (kind >= TENSOR_ALLOC_REQUEST && kind <= TENSOR_FENCE);
    }

    // Whether a module has such events at all.
    static bool has(const Input &input) {
        for (u32 block = 1; block <= input.block_count; ++block)
            for (i32 i = 0; i < input.blocks[block].events; ++i)
                if (is_one(input.events[input.blocks[block].first + i].kind)) return true;
        return false;
    }

    Operations &operations() { return operations_; }

    const Completions &completions() const { return completions_; }
    // By what the parts of a copy that is about to be issued are known to be over.
    std::vector<Completion> ends(u32 thread, const LaneLog &log) const {
        u32 kind = log.event().kind;
        if (kind == COPY) return {{Completion::COPY_GROUP, 0, thread, copies_.group(thread), copies_.next(thread)}};
        if (kind == BULK_STORE || kind == TENSOR_STORE) return {{Completion::RESULTS, BULK_STORE_OPERATION, thread, groups_.bulk(thread).commits}};
        std::vector<Completion> parts;
        for (const Receiver &each : receivers(thread, log)) parts.push_back(phase_of(thread, each));
        return parts;
    }
    // By what a tensor copy is known to have read its map: of a load, the part of the own CTA; it may know of no other.
    Completion end_of_map(u32 thread, const LaneLog &log) const {
        if (log.event().kind == TENSOR_STORE) return {Completion::SOURCES, BULK_STORE_OPERATION, thread, groups_.bulk(thread).commits};
        std::vector<Receiver> to = receivers(thread, log);
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

    // Whether the mbarriers that an event's operation will signal have been initialised.
    bool ready(u32 thread, const LaneLog &log) const {
        for (const Receiver &each : receivers(thread, log))
            if (!mbarriers_.exists(each.mbarrier)) return false;
        return true;
    }

    // Whether a thread may let others go on: the products that its warp has committed have been issued by the whole warpgroup (SEMANTICS 4.3).
    bool together(u32 thread) const { return groups_.together(thread); }

    // An event of a thread; returns which words that are not hashed decide what is found.
    u32 handle(u32 thread, const LaneLog &log, std::vector<u32> &released) {
        const Event &event = log.event();
        switch (event.kind) {
        case PROXY_FENCE: clocks_.fence(thread, memories(thread, event)); break;
        case BULK_COMMIT: groups_.commit(thread); break;
        case BULK_WAIT: groups_.wait(thread, log.a(), event.flags & READ_ONLY); break;
        case PRODUCT_COMMIT: groups_.commit_products(thread); break;
        case PRODUCT_WAIT: groups_.wait_for_products(thread, log.a()); break;
        case PRODUCT: product(thread, log); break;
        case BULK_LOAD: respond(thread, log, log.a(), BULK_LOAD_OPERATION, released); break;
        case TENSOR_LOAD: respond(thread, log, Tensor(log).bytes(), BULK_LOAD_OPERATION, released); break;
        case BULK_STORE: store(thread, log, log.a(), Tensor::chunks_of(place(thread, log), log.a())); break;
        case TENSOR_STORE: return tensor_store(thread, log);
        case STORE_ASYNC: store_async(thread, log, released); break;
        case BULK_PUSH: push(thread, log, released); break;
        case LAUNCH_REQUEST: request(thread, log, released); break;
        case LAUNCH_ANSWER: launches_.answer(thread, (u32)event.site, log.a() != 0, (u32)event.b); break;
        case LAUNCH_USE: launches_.use(thread, (u32)event.site, (u32)event.b); break;
        default: break;
        }
        return 0;
    }

  private:
    u32 place(u32 thread, const LaneLog &log) const { return shape_.place(log.address(), thread, log.event().flags & RANKED); }

    // The memories of a proxy fence (D3: one for shared::cta is for that of the own CTA).
    u32 memories(u32 thread, const Event &event) const {
        u32 global = 1u << clocks_.global_memory(), shared = event.flags & NARROW ? 1u << clocks_.shared_memory(shape_.home(thread)) : global - 1;
        return (event.a & 1 ? shared : 0) | (event.a & 2 ? global : 0);
    }

    // Bytes come to one CTA or to several.
    void respond(u32 thread, const LaneLog &log, u32 bytes, u32 kind, std::vector<u32> &released) {
        std::vector<Receiver> to = receivers(thread, log);
        for (const Receiver &each : to) {
            Operation made = signalled(kind, thread, log, each, bytes);
            if (!mbarriers_.current(each.mbarrier, made.phase)) continue;
            if (bytes && bounds_.holds(thread, made.site, each.place, bytes)) operations_.issue(made, thread, Tensor::chunks_of(each.place, bytes));
        }
        for (const Receiver &each : to) mbarriers_.transact(thread, (u32)log.event().site, each.mbarrier, -(i32)bytes, released);
    }

    // clusterlaunchcontrol.try_cancel: 16 bytes come to the own CTA, or to each of the cluster.
    void request(u32 thread, const LaneLog &log, std::vector<u32> &released) {
        launches_.request(thread, &log.event(), place(thread, log));
        respond(thread, log, RESPONSE_BYTES, LAUNCH_REQUEST_OPERATION, released);
    }

    // A copy from the own shared memory to that of a CTA.
    void push(u32 thread, const LaneLog &log, std::vector<u32> &released) {
        Receiver to = receivers(thread, log).front();
        u32 bytes = log.a(), from = shape_.place(log.c(), thread, false);
        Operation made = signalled(BULK_LOAD_OPERATION, thread, log, to, bytes), source = made;
        if (log.event().flags & ADDS) made.strong = true, made.element = (u32)log.event().bytes;
        if (mbarriers_.current(to.mbarrier, made.phase) && bytes) {
            source.kind = BULK_SOURCE_OPERATION, source.target = shape_.home(thread), source.phase = made.phase;
            if (bounds_.holds(thread, made.site, from, bytes)) operations_.issue(source, thread, Tensor::chunks_of(from, bytes));
            if (bounds_.holds(thread, made.site, to.place, bytes)) operations_.issue(made, thread, Tensor::chunks_of(to.place, bytes));
        }
        mbarriers_.transact(thread, made.site, to.mbarrier, -(i32)bytes, released);
    }

    // st.async, and red.async (STRONG).
    void store_async(u32 thread, const LaneLog &log, std::vector<u32> &released) {
        const Event &event = log.event();
        Receiver to = receivers(thread, log).front();
        Operation made = signalled(STORE_ASYNC_OPERATION, thread, log, to, (u32)event.bytes);
        made.element = (u32)event.a, made.strong = event.flags & STRONG, made.chosen = ((1u << event.bytes) - 1) << to.place % CHUNK;
        if (mbarriers_.current(to.mbarrier, made.phase) && bounds_.holds(thread, made.site, to.place, (u32)event.bytes))
            operations_.issue(made, thread, {to.place / CHUNK});
        mbarriers_.transact(thread, made.site, to.mbarrier, -event.bytes, released);
    }

    // The bytes of one CTA that an operation writes, and the mbarrier that it signals then.
    struct Receiver {
        u32 place, mbarrier;
    };

    // A multicast writes the same bytes of each CTA of its mask, and signals that CTA's mbarrier (D13: the mask is of ranks). With PAIR that is
    // the one of the even or the odd CTA of each pair, as that of the operand is.
    std::vector<Receiver> receivers(u32 thread, const LaneLog &log) const {
        i32 flags = log.event().flags;
        u32 to = place(thread, log), signal = shape_.place(log.b(), thread, flags & RANKED), odd = shape_.owner(signal) & 1;
        if (!(flags & MULTICAST)) return {{to, signal}};
        std::vector<Receiver> found;
        for (u32 cta = 0; cta < shape_.ctas(); ++cta)
            if (log.c() >> cta & 1) found.push_back({shape_.there(to, cta), shape_.there(signal, flags & PAIR ? (cta & ~1u) | odd : cta)});
        return found;
    }

    Completion phase_of(u32 thread, const Receiver &to) const {
        Completion made{Completion::NEVER, BULK_LOAD_OPERATION, thread};
        if (mbarriers_.current(to.mbarrier, made.phase)) made.how = Completion::PHASE;
        return made;
    }

    Operation signalled(u32 kind, u32 thread, const LaneLog &log, const Receiver &to, u32 bytes) {
        Operation made{kind, (u32)log.event().site, thread};
        made.target = shape_.owner(to.place), made.signal = shape_.owner(to.mbarrier);
        lifetimes_.start(thread, made.site, to.place, bytes);
        lifetimes_.start(thread, made.site, to.mbarrier, 8);
        return made;
    }

    Operation stored(u32 thread, const LaneLog &log) const {
        Operation made{BULK_STORE_OPERATION, (u32)log.event().site, thread};
        made.group = groups_.bulk(thread).commits;
        if (log.event().flags & MASKED) made.chosen = log.c() & WHOLE_CHUNK;
        return made;
    }

    void store(u32 thread, const LaneLog &log, u32 bytes, const std::vector<u32> &chunks) {
        Operation made = stored(thread, log);
        if (bytes && bounds_.holds(thread, made.site, place(thread, log), bytes)) operations_.issue(made, thread, chunks);
    }

    // A box in part outside of its tensor reads less: what it meets is also met by one that lies inside.
    u32 tensor_store(u32 thread, const LaneLog &log) {
        Tensor tensor(log);
        store(thread, log, tensor.bytes(), tensor.inside(place(thread, log), shape_));
        return tensor.whole() ? 0 : BY_CLIP;
    }

    // One operand of a product, by a warp: its first lane speaks for all, since they execute it together. A quarter of the rows is a quarter
    // of the chunks, whatever the major dimension (D25).
    void product(u32 thread, const LaneLog &log) {
        if (thread % LANES) return;
        const Event &event = log.event();
        std::vector<u32> chunks = Descriptor((u64)log.b() << 32 | log.a()).chunks((u32)event.bytes, (u32)event.offset, event.flags & MAJOR);
        Operation made{WGMMA_OPERATION, (u32)event.site, thread & ~127u};
        made.group = groups_.products(thread).commits;
        if (event.flags & OWN_ROWS) {
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
