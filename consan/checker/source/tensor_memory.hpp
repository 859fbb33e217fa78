// Events of tcgen05 (SEMANTICS 4.4): allocation, loads, stores, copies, products, commits and waits. Which cells and bytes an event touches.
//
// Instructions of a warp are in the log of each of its lanes. The first lane that comes speaks for all; the others must say the same (R-T13).
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "asynchronous.hpp"
#include "lifetimes.hpp"
#include "tensor_allocations.hpp"
#include "tensor_collectors.hpp"
#include "tensor_shapes.hpp"

class TensorMemory {
  public:
    using Store = std::function<void(const Access &)>;

    TensorMemory(const Shape &shape, Clocks &clocks, Bounds &bounds, Mbarriers &mbarriers, Issuers &issuers, Asynchronous &asynchronous, Lifetimes &lifetimes,
                 Findings &findings, bool isa, Store store)
        : shape_(shape), clocks_(clocks), bounds_(bounds), mbarriers_(mbarriers), issuers_(issuers), asynchronous_(asynchronous), lifetimes_(lifetimes),
          store_(std::move(store)), collectors_(shape, findings), asked_(shape.ctas(), 0), words_(shape.ctas()), isa_(isa) {
        for (u32 cta = 0; cta < shape.ctas(); ++cta) memories_.push_back(std::make_unique<TensorAllocations>(clocks, issuers, findings, isa));
    }

    static bool takes(const Event &event) { return event.kind >= TENSOR_ALLOC_REQUEST && event.kind <= TENSOR_FENCE; }

    void handle(u32 thread, const LaneLog &log, std::vector<u32> &released) {
        const Event &event = log.event();
        u32 site = (u32)event.site;
        if (event.flags & (PAIR | SINGLE)) memory(thread).group(thread, site, event.flags & PAIR ? 2 : 1);
        switch (event.kind) {
        case TENSOR_COMMIT: commit(thread, log, released); return;
        case TENSOR_WAIT:
            if (event.a == 3) issuers_.consume(thread, (u32)event.b);
            else issuers_.wait(thread, event.a == 1 ? BY_WAIT_LD : BY_WAIT_ST);
            return;
        case TENSOR_MMA: product(thread, log); return;
        case TENSOR_CP: copy(thread, log); return;
        case TENSOR_SHIFT: shift(thread, log); return;
        case TENSOR_FENCE:
            if (event.a) issuers_.fence_after(thread);
            else issuers_.fence_before(thread);
            return;
        default: break;
        }
        if (!first_of_warp(thread, log)) return;
        switch (event.kind) {
        case TENSOR_ALLOC_REQUEST:
            if (event.flags & PAIR) lifetimes_.start(thread, site, shape_.home(thread) ^ 1);
            memory(thread).request(thread, site, log.a());
            if (in_pair(thread, event)) ++asked_[shape_.home(thread)];
            break;
        case TENSOR_ALLOC: allocate(thread, log); break;
        case TENSOR_DEALLOC:
            if (isa_ && event.flags & PAIR && (shape_.home(thread) ^ 1) < shape_.ctas())
                memories_[shape_.home(thread) ^ 1]->freed_by_peer(thread, site, log.b(), log.a(), memory(thread).number(log.b()));
            memory(thread).free(thread, site, log.b(), log.a());
            break;
        case TENSOR_RELINQUISH: memory(thread).relinquish(thread, site); break;
        default: move(thread, log); break;
        }
    }

    // Whether an allocation can have been served: the other CTA of its pair must have asked too.
    bool ready(u32 thread, const Event &event) {
        if (event.kind != TENSOR_ALLOC || !in_pair(thread, event)) return true;
        const Team &team = teams_[{&event, thread / LANES}];
        if (team.counts[thread % LANES] < team.done) return true;  // another lane has come through
        return asked_[shape_.home(thread) ^ 1] > words_[shape_.home(thread)].size();
    }

    void finish() {
        for (auto &each : memories_) each->finish();
    }

  private:
    struct Team {
        u32 done = 0, counts[LANES] = {}, words[3] = {};
        u32 leader = 0;
        Joined published{};
    };

    // Whether a lane is the first of its warp to execute an instruction this time. All lanes must have the same operands.
    bool first_of_warp(u32 thread, const LaneLog &log) {
        Team &team = teams_[{&log.event(), thread / LANES}];
        u32 words[3] = {log.event().kind == TENSOR_ALLOC ? 0 : log.address(), log.a(), log.b()};
        if (++team.counts[thread % LANES] > team.done) {
            team.done = team.counts[thread % LANES];
            std::copy(words, words + 3, team.words);
            team.leader = thread;
            return true;
        }
        if (log.event().kind == TENSOR_ALLOC) clocks_.take(thread, team.published.seen), clocks_.take_executed(thread, team.published.executed);
        else if (!std::equal(words, words + 3, team.words)) memory(thread).misuse(NOT_UNIFORM, thread, (u32)log.event().site, 0, 0, team.leader);
        return false;
    }

    // The word with the address is a weak generic store. Its warp has it without more (ISA: "same-address ordering").
    void allocate(u32 thread, const LaneLog &log) {
        Access word{};
        word.thread = thread;
        word.site = (u32)log.event().site;
        word.offset = place(thread, log);
        word.bytes = word.element = 4;
        word.writes = word.allocation = true;
        store_(word);
        if (in_pair(thread, log.event())) allocate_pair(thread, word, log.b(), log.a());
        else memory(thread).allocate(thread, word.site, log.b(), log.a());
        teams_[{&log.event(), thread / LANES}].published = clocks_.join({clocks_.release(thread)});
    }

    // An allocation for a pair is one for both CTAs, made when the first of them has it; it has asked the other for that. T22: the two should have
    // the address stored at the same offset.
    void allocate_pair(u32 thread, const Access &word, u32 address, u32 columns) {
        u32 own = shape_.home(thread), peer = own ^ 1, number = (u32)words_[own].size();
        words_[own].push_back(shape_.inside(word.offset));
        bool second = number < words_[peer].size();
        for (u32 cta : {own, peer}) {
            if (second) memories_[cta]->join(thread, word.site, address, cta == own);
            else memories_[cta]->allocate(thread, word.site, address, columns);
        }
        if (second && words_[peer][number] != words_[own][number]) memory(thread).misuse(WORDS_APART, thread, word.site, words_[own][number]);
    }

    bool in_pair(u32 thread, const Event &event) const { return event.flags & PAIR && (shape_.home(thread) ^ 1) < shape_.ctas(); }

    TensorAccess access_of(u32 kind, u32 thread, const LaneLog &log, bool reads, bool writes) {
        TensorAccess made{kind, (u32)log.event().site, thread, reads, writes};
        made.ticket = issuers_.issue(thread, kind == TCGEN05_LD_OPERATION ? BY_WAIT_LD : kind == TCGEN05_ST_OPERATION ? BY_WAIT_ST : BY_COMMIT);
        return made;
    }

    // ld and st: `bytes` columns of `a` lanes; behind the lower bits of `b`, less 1, as many again (16x32bx2). A lane below 32 is one of the
    // warp's quarter (T4).
    void move(u32 thread, const LaneLog &log) {
        const Event &event = log.event();
        u32 lane = lane_of(log.address()), quarter = thread / LANES % 4 * QUARTER, rows = (u32)event.a, begin = column_of(log.address()),
            wide = (u32)event.bytes;
        if (lane >= QUARTER && (lane < quarter || lane + rows > quarter + QUARTER)) return memory(thread).misuse(OTHER_QUARTER, thread, (u32)event.site, lane);
        if (isa_ && lane < QUARTER && quarter) memory(thread).misuse(LANE_OF_THE_WARP, thread, (u32)event.site, lane);
        LaneSet lanes = LaneSet::range(lane < QUARTER ? quarter + lane : lane, rows);
        Pieces pieces{{lanes, begin, begin + wide}};
        u32 apart = (u32)event.b & 1023;
        if (apart) pieces.push_back({lanes, begin + apart - 1, begin + apart - 1 + wide});
        bool loads = event.kind == TENSOR_LD;
        TensorAccess made = access_of(loads ? TCGEN05_LD_OPERATION : TCGEN05_ST_OPERATION, thread, log, loads, !loads);
        if (loads) issuers_.name(made.ticket, (u32)event.b >> 10);
        memory(thread).use(made, pieces);
    }

    // The words behind the value: instruction descriptor, enable-input-d, A and B, the addresses of scale factors and metadata, disabled lanes.
    void product(u32 thread, const LaneLog &log) {
        const Event &event = log.event();
        u32 form = (u32)event.a, at = 6;
        if (event.flags & PAIR) form |= PAIRED;
        TensorProduct product((u32)event.bytes, form, log.value_at(0));
        TensorAccess d = access_of(TCGEN05_MMA_OPERATION, thread, log, log.value_at(1) != 0, true), operand = d;
        d.accumulator = log.address(), d.shape = log.value_at(0) >> 17;
        operand.reads = true, operand.writes = false, operand.layout = PACKED;
        TensorAccess left = operand;
        left.layout = product.left_layout(log.value_at(2));
        d.layout = product.layout(log.address());
        collectors_.use(
            thread, event,
            {form & WEIGHT_STATIONARY ? wide(log, 4) : wide(log, 2), product.stationary(), (form & (A_IN_TENSOR_MEMORY | PAIRED)) << 3 | (u32)event.bytes});
        Pieces read, of_left;
        std::vector<u32> chunks = product.right_chunks(wide(log, 4));
        if (form & A_IN_TENSOR_MEMORY) of_left.push_back(product.left(log.value_at(2)));
        else
            for (u32 chunk : product.left_chunks(wide(log, 2))) chunks.push_back(chunk);
        if (form & SCALED) {
            for (const Piece &piece : product.left_factors(log.value_at(at++))) read.push_back(piece);
            for (const Piece &piece : product.right_factors(log.value_at(at++))) read.push_back(piece);
        }
        if (form & SPARSE) read.push_back(product.metadata(log.value_at(at++)));
        for (u32 cta : taking_part(thread, event)) {
            Piece written = product.accumulator(log.address());
            if (event.b) written.lanes = written.lanes.without(masked(log, at + (event.b == 8 && cta & 1 ? 4 : 0)));
            operands(TCGEN05_MMA_OPERATION, d, cta, chunks);
            if (!of_left.empty()) memories_[cta]->use(left, of_left);
            if (!read.empty()) memories_[cta]->use(operand, read);
            if (!written.lanes.empty()) memories_[cta]->use(d, {written});
        }
    }

    // The CTAs whose memories an operation touches: the own one, or both of the pair.
    std::vector<u32> taking_part(u32 thread, const Event &event) const {
        u32 own = shape_.home(thread);
        if (event.flags & PAIR && (own ^ 1) < shape_.ctas()) return {own, own ^ 1};
        return {own};
    }

    static LaneSet masked(const LaneLog &log, u32 at) {
        return {{(u64)log.value_at(at + 1) << 32 | log.value_at(at), (u64)log.value_at(at + 3) << 32 | log.value_at(at + 2)}};
    }

    u32 place(u32 thread, const LaneLog &log) const { return shape_.place(log.address(), thread, log.event().flags & RANKED); }

    static u64 wide(const LaneLog &log, u32 at) { return (u64)log.value_at(at + 1) << 32 | log.value_at(at); }

    // cp: `a` rows of `b` bytes, to `bytes` columns.
    void copy(u32 thread, const LaneLog &log) {
        const Event &event = log.event();
        TensorAccess made = access_of(TCGEN05_CP_OPERATION, thread, log, false, true);
        made.rows_of_4 = event.a == 4;
        std::vector<u32> chunks = Descriptor::of_tcgen05(wide(log, 0)).chunks((u32)event.a, (u32)event.b / CHUNK, false);
        LaneSet lanes = made.rows_of_4 ? LaneSet::quarters(1u << lane_of(log.address()) % QUARTER) : LaneSet::range(0, TENSOR_LANES);
        u32 begin = column_of(log.address());
        for (u32 cta : taking_part(thread, event)) {
            operands(TCGEN05_CP_OPERATION, made, cta, chunks);
            memories_[cta]->use(made, {{lanes, begin, begin + (u32)event.bytes}});
        }
    }

    void shift(u32 thread, const LaneLog &log) {
        u32 begin = column_of(log.address());
        TensorAccess made = access_of(TCGEN05_SHIFT_OPERATION, thread, log, true, true);
        for (u32 cta : taking_part(thread, log.event())) memories_[cta]->use(made, {{LaneSet::range(lane_of(log.address()), QUARTER), begin, begin + 8}});
    }

    // Chunks of shared memory of a CTA that an operation reads. The descriptor has the lower 18 bits of their addresses.
    void operands(u32 kind, const TensorAccess &access, u32 cta, std::vector<u32> chunks) {
        Operation made{kind, access.site, access.thread};
        made.ticket = access.ticket;
        u32 low = *std::min_element(chunks.begin(), chunks.end()), high = *std::max_element(chunks.begin(), chunks.end()) + CHUNK;
        u32 member = shape_.first(cta), place = shape_.place(low, member, false);
        if (!bounds_.holds(access.thread, access.site, place, high - low)) return;
        lifetimes_.use(access.thread, access.site, place, high - low);
        for (u32 &chunk : chunks) chunk = shape_.place(chunk, member, false) / CHUNK;
        asynchronous_.operations().issue(made, access.thread, chunks);
    }

    void commit(u32 thread, const LaneLog &log, std::vector<u32> &released) {
        u32 at = place(thread, log), site = (u32)log.event().site;
        if (!bounds_.holds(thread, site, at, 8)) return;
        auto told = issuers_.commit(thread, at);
        if (!(log.event().flags & MULTICAST)) return signal(thread, site, at, told, released);
        for (u32 cta = 0; cta < 16; ++cta) {
            if (!(log.a() >> cta & 1)) continue;
            if (cta < shape_.ctas()) signal(thread, site, shape_.at(cta, at), told, released);
            else memory(thread).misuse(MASK_OUTSIDE, thread, site, cta);
        }
    }

    void signal(u32 thread, u32 site, u32 at, const std::pair<u32, u32> &told, std::vector<u32> &released) {
        lifetimes_.use(thread, site, at, 8);
        mbarriers_.signal(thread, site, at, told.first, told.second, released);
    }

    TensorAllocations &memory(u32 thread) { return *memories_[shape_.home(thread)]; }

    const Shape &shape_;
    Clocks &clocks_;
    Bounds &bounds_;
    Mbarriers &mbarriers_;
    Issuers &issuers_;
    Asynchronous &asynchronous_;
    Lifetimes &lifetimes_;
    Store store_;
    std::vector<std::unique_ptr<TensorAllocations>> memories_;  // by CTA
    std::map<std::pair<const Event *, u32>, Team> teams_;
    Collectors collectors_;
    std::vector<u32> asked_;               // by CTA: how many allocations for a pair it has asked for
    std::vector<std::vector<u32>> words_;  // by CTA: where the addresses of its allocations for a pair went
    bool isa_;
};
