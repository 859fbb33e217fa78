// Events of the asynchronous proxies: proxy fences, bulk and tensor copies, matrix products, and what other accesses meet of them.
#pragma once

#include "bounds.hpp"
#include "globals.hpp"
#include "matrix.hpp"
#include "tensors.hpp"

class Asynchronous {
  public:
    Asynchronous(const Input &input, bool enabled, Clocks &clocks, Races &races, Copies &copies, Initialised &initialised, Bounds &bounds, Mbarriers &mbarriers, Findings &findings)
        : window_(input.window), clocks_(clocks), bounds_(bounds), mbarriers_(mbarriers), groups_(input.threads, clocks),
          proxies_(input.shared_bytes, enabled, clocks, races, copies, mbarriers, findings),
          operations_(input, clocks, races, copies, initialised, proxies_, groups_, mbarriers, findings), globals_(clocks, groups_, mbarriers, findings) {
        if (enabled) globals_.keep_stores();
    }

    // Whether a module has such events at all.
    static bool has(const Input &input) {
        for (u32 block = 1; block <= input.block_count; ++block)
            for (i32 i = 0; i < input.blocks[block].events; ++i)
                if (input.events[input.blocks[block].first + i].kind >= PROXY_FENCE) return true;
        return false;
    }

    // An access to shared memory, or (`copy`) a cp.async about to be issued.
    void access(const Access &access, bool copy = false) {
        operations_.meet(access);
        if (access.writes) proxies_.write(access, copy);
    }
    // An mbarrier takes bytes.
    void meet(const Access &access) { operations_.meet(access); }

    std::pair<u32, u32> signalling(u32 place, u32 thread) const { return operations_.signalling(place, thread); }

    void finish() { operations_.finish(); }

    // An event of a thread; returns whether words that are not hashed decide what is found.
    bool handle(u32 thread, const LaneLog &log, std::vector<u32> &released) {
        const Event &event = log.event();
        switch (event.kind) {
        case PROXY_FENCE: clocks_.fence(thread, (u32)event.a); break;
        case BULK_COMMIT: groups_.commit(thread); break;
        case BULK_WAIT: groups_.wait(thread, log.a(), event.flags & READ_ONLY); break;
        case PRODUCT_COMMIT: groups_.commit_products(thread); break;
        case PRODUCT_WAIT: groups_.wait_for_products(thread, log.a()); break;
        case PRODUCT: product(thread, log); break;
        case BULK_LOAD: return load(thread, log, log.a(), Region::of(log.wide_value(), log.a()), true, released);
        case TENSOR_LOAD: return tensor_load(thread, log, released);
        case BULK_STORE: store(thread, log, log.a(), Tensor::chunks_of(place(log), log.a())); result(thread, log, Region::of(log.wide_value(), log.a())); break;
        case TENSOR_STORE: tensor_store(thread, log); return true;
        default: break;
        }
        return false;
    }

    // The same for an access to global memory.
    bool global_access(u32 thread, const LaneLog &log) {
        const Event &event = log.event();
        Access access{};
        access.thread = thread;
        access.site = (u32)event.site;
        access.bytes = (u32)event.bytes;
        access.writes = event.kind == GLOBAL_WRITE;
        access.strong = event.flags & ADDS;
        return globals_.access(access, log.wide_value());
    }

  private:
    u32 place(const LaneLog &log) const { return log.address() - window_; }

    bool load(u32 thread, const LaneLog &log, u32 bytes, const Region &region, bool known, std::vector<u32> &released) {
        Operation made{BULK_LOAD_OPERATION, (u32)log.event().site, thread};
        u32 mbarrier = log.b_address() - window_;
        bool any = false;
        if (mbarriers_.current(mbarrier, made.phase)) {
            if (known) any = globals_.fetch(made, region);
            if (bytes && bounds_.holds(thread, made.site, place(log), bytes)) operations_.issue(made, thread, Tensor::chunks_of(place(log), bytes));
        }
        mbarriers_.transact(thread, made.site, mbarrier, -(i32)bytes, released);
        return any;
    }

    bool tensor_load(u32 thread, const LaneLog &log, std::vector<u32> &released) {
        Tensor tensor(log);
        Region region;
        bool known = tensor.region(region);
        return load(thread, log, tensor.bytes(), region, known, released);
    }

    Operation stored(u32 thread, const LaneLog &log) const {
        Operation made{BULK_STORE_OPERATION, (u32)log.event().site, thread};
        made.group = groups_.bulk(thread).commits;
        return made;
    }

    void store(u32 thread, const LaneLog &log, u32 bytes, const std::vector<u32> &chunks) {
        Operation made = stored(thread, log);
        if (bytes && bounds_.holds(thread, made.site, place(log), bytes)) operations_.issue(made, thread, chunks);
    }

    void result(u32 thread, const LaneLog &log, const Region &region) { globals_.result(stored(thread, log), region, log.event().flags & ADDS); }

    void tensor_store(u32 thread, const LaneLog &log) {
        Tensor tensor(log);
        Region region;
        if (tensor.region(region)) result(thread, log, region);
        store(thread, log, tensor.bytes(), tensor.inside(place(log), window_));
    }

    // One operand of a product, by a warp: its first lane speaks for all, since they execute it together.
    void product(u32 thread, const LaneLog &log) {
        if (thread % LANES) return;
        const Event &event = log.event();
        std::vector<u32> chunks = Descriptor((u64)log.b() << 32 | log.a()).chunks((u32)event.bytes, (u32)event.offset, event.flags & MAJOR);
        Operation made{WGMMA_OPERATION, (u32)event.site, thread & ~127u};
        made.group = groups_.products(thread).commits;
        u32 low = *std::min_element(chunks.begin(), chunks.end()), high = *std::max_element(chunks.begin(), chunks.end()) + CHUNK;
        if (!bounds_.holds(thread, made.site, low - window_, high - low)) return;
        for (u32 &chunk : chunks) chunk = (chunk - window_) / CHUNK;
        operations_.issue(made, thread, chunks);
    }

    u32 window_;
    Clocks &clocks_;
    Bounds &bounds_;
    Mbarriers &mbarriers_;
    Groups groups_;
    Proxies proxies_;
    Operations operations_;
    Globals globals_;
};
