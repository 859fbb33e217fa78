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

    void handle(u32 thread, const effects::TensorCommit &commit, std::vector<u32> &released) {
        group(thread, commit);
        this->commit(thread, commit, released);
    }
    template <typename E> void handle(u32 thread, const E &effect, std::vector<u32> &) {
        group(thread, effect);
        handle(thread, effect);
    }

    // Whether an operation can have been executed: the mbarrier of a commit has been initialised, and the other CTA of a pair has asked for an
    // allocation too.
    bool ready(u32 thread, const effects::TensorMemoryEffect &) const { return (void)thread, true; }
    bool ready(u32 thread, const effects::TensorCommit &commit) const { return mbarriers_.exists(place(thread, commit)); }
    bool ready(u32 thread, const effects::TensorAlloc &alloc) {
        if (!in_pair(thread, alloc)) return true;
        const Team &team = teams_[{&alloc.event(), thread / LANES}];
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

    // The operands that all lanes of a warp must have alike.
    struct Operands {
        u32 words[3];
    };
    static Operands operands_of(const effects::TensorAllocRequest &request) { return {{0, request.columns(), 0}}; }
    static Operands operands_of(const effects::TensorAlloc &alloc) { return {{0, alloc.columns(), alloc.cells()}}; }
    static Operands operands_of(const effects::TensorDealloc &dealloc) { return {{0, dealloc.columns(), dealloc.cells()}}; }
    static Operands operands_of(const effects::TensorRelinquish &) { return {}; }
    static Operands operands_of(const effects::TensorMove &move) { return {{move.at(), 0, 0}}; }

    // Whether a lane is the first of its warp to execute an instruction this time.
    template <typename E> bool first_of_warp(u32 thread, const E &effect) {
        Team &team = teams_[{&effect.event(), thread / LANES}];
        Operands given = operands_of(effect);
        if (++team.counts[thread % LANES] > team.done) {
            team.done = team.counts[thread % LANES];
            std::copy(given.words, given.words + 3, team.words);
            team.leader = thread;
            return true;
        }
        if (E::kind == TENSOR_ALLOC) clocks_.take(thread, team.published.seen), clocks_.take_executed(thread, team.published.executed);
        else if (!std::equal(given.words, given.words + 3, team.words)) memory(thread).misuse(NOT_UNIFORM, thread, effect.site(), 0, 0, team.leader);
        return false;
    }

    void group(u32 thread, const effects::TensorMemoryEffect &effect) {
        if (effect.pair() || effect.single()) memory(thread).group(thread, effect.site(), effect.pair() ? 2 : 1);
    }

    void handle(u32 thread, const effects::TensorWait &wait) {
        if (wait.what() == 3) issuers_.consume(thread, wait.load());
        else issuers_.wait(thread, wait.what() == 1 ? BY_WAIT_LD : BY_WAIT_ST);
    }
    void handle(u32 thread, const effects::TensorFence &fence) {
        if (fence.after()) issuers_.fence_after(thread);
        else issuers_.fence_before(thread);
    }
    void handle(u32 thread, const effects::TensorAllocRequest &request) {
        if (!first_of_warp(thread, request)) return;
        if (request.pair()) lifetimes_.start(thread, request.site(), shape_.home(thread) ^ 1);
        memory(thread).request(thread, request.site(), request.columns());
        if (in_pair(thread, request)) ++asked_[shape_.home(thread)];
    }
    void handle(u32 thread, const effects::TensorDealloc &dealloc) {
        if (!first_of_warp(thread, dealloc)) return;
        u32 cells = dealloc.cells(), columns = dealloc.columns(), peer = shape_.home(thread) ^ 1;
        if (isa_ && dealloc.pair() && peer < shape_.ctas())
            memories_[peer]->freed_by_peer(thread, dealloc.site(), cells, columns, memory(thread).number(cells));
        memory(thread).free(thread, dealloc.site(), cells, columns);
    }
    void handle(u32 thread, const effects::TensorRelinquish &relinquish) {
        if (first_of_warp(thread, relinquish)) memory(thread).relinquish(thread, relinquish.site());
    }

    // The word with the address is a weak generic store. Its warp has it without more (ISA: "same-address ordering").
    void handle(u32 thread, const effects::TensorAlloc &alloc) {
        if (!first_of_warp(thread, alloc)) return;
        Access word{};
        word.thread = thread;
        word.site = alloc.site();
        word.offset = place(thread, alloc);
        word.bytes = word.element = 4;
        word.writes = word.allocation = true;
        store_(word);
        if (in_pair(thread, alloc)) allocate_pair(thread, word, alloc.cells(), alloc.columns());
        else memory(thread).allocate(thread, word.site, alloc.cells(), alloc.columns());
        teams_[{&alloc.event(), thread / LANES}].published = clocks_.join({clocks_.release(thread)});
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

    bool in_pair(u32 thread, const effects::TensorMemoryEffect &effect) const { return effect.pair() && (shape_.home(thread) ^ 1) < shape_.ctas(); }

    TensorAccess access_of(u32 kind, u32 thread, u32 site, bool reads, bool writes) {
        TensorAccess made{kind, site, thread, reads, writes};
        made.ticket = issuers_.issue(thread, kind == TCGEN05_LD_OPERATION ? BY_WAIT_LD : kind == TCGEN05_ST_OPERATION ? BY_WAIT_ST : BY_COMMIT);
        return made;
    }

    void handle(u32 thread, const effects::TensorLd &load) {
        if (first_of_warp(thread, load)) move(thread, load, true);
    }
    void handle(u32 thread, const effects::TensorSt &store) {
        if (first_of_warp(thread, store)) move(thread, store, false);
    }

    // A lane below 32 is one of the warp's quarter (T4).
    void move(u32 thread, const effects::TensorMove &move, bool loads) {
        u32 lane = lane_of(move.at()), quarter = thread / LANES % 4 * QUARTER, rows = move.lanes(), begin = column_of(move.at()), wide = move.columns();
        if (lane >= QUARTER && (lane < quarter || lane + rows > quarter + QUARTER)) return memory(thread).misuse(OTHER_QUARTER, thread, move.site(), lane);
        if (isa_ && lane < QUARTER && quarter) memory(thread).misuse(LANE_OF_THE_WARP, thread, move.site(), lane);
        LaneSet lanes = LaneSet::range(lane < QUARTER ? quarter + lane : lane, rows);
        Pieces pieces{{lanes, begin, begin + wide}};
        u32 distance = move.distance();
        if (distance) pieces.push_back({lanes, begin + distance - 1, begin + distance - 1 + wide});
        TensorAccess made = access_of(loads ? TCGEN05_LD_OPERATION : TCGEN05_ST_OPERATION, thread, move.site(), loads, !loads);
        if (loads) issuers_.name(made.ticket, move.load());
        memory(thread).use(made, pieces);
    }

    // Its operands: instruction descriptor, enable-input-d, A and B, the addresses of scale factors and metadata, disabled lanes.
    void handle(u32 thread, const effects::TensorMma &mma) {
        u32 form = mma.form(), at = 6;
        if (mma.pair()) form |= PAIRED;
        TensorProduct product(mma.factors(), form, mma.operands(0));
        TensorAccess d = access_of(TCGEN05_MMA_OPERATION, thread, mma.site(), mma.operands(1) != 0, true), operand = d;
        d.accumulator = mma.at(), d.shape = mma.operands(0) >> 17;
        operand.reads = true, operand.writes = false, operand.layout = PACKED;
        TensorAccess left = operand;
        left.layout = product.left_layout(mma.operands(2)), left.writes = form & SHIFTED;  // the rows of A move behind the product
        d.layout = product.layout(mma.at());
        u32 how = (form & (A_IN_TENSOR_MEMORY | PAIRED)) << 3 | mma.factors();
        collectors_.use(thread, mma, {form & WEIGHT_STATIONARY ? wide(mma, 4) : wide(mma, 2), product.stationary(), how});
        Pieces read, of_left;
        std::vector<u32> chunks = product.right_chunks(wide(mma, 4));
        if (form & A_IN_TENSOR_MEMORY) of_left.push_back(product.left(mma.operands(2)));
        else
            for (u32 chunk : product.left_chunks(wide(mma, 2))) chunks.push_back(chunk);
        if (form & SCALED) {
            for (const Piece &piece : product.left_factors(mma.operands(at++))) read.push_back(piece);
            for (const Piece &piece : product.right_factors(mma.operands(at++))) read.push_back(piece);
        }
        if (form & SPARSE) read.push_back(product.metadata(mma.operands(at++)));
        for (u32 cta : taking_part(thread, mma)) {
            Piece written = product.accumulator(mma.at());
            if (mma.disabled()) written.lanes = written.lanes.without(masked(mma, at + (mma.disabled() == 8 && cta & 1 ? 4 : 0)));
            operands(TCGEN05_MMA_OPERATION, d, cta, chunks);
            if (!of_left.empty()) memories_[cta]->use(left, of_left);
            if (!read.empty()) memories_[cta]->use(operand, read);
            if (!written.lanes.empty()) memories_[cta]->use(d, {written});
        }
    }

    // The CTAs whose memories an operation touches: the own one, or both of the pair.
    std::vector<u32> taking_part(u32 thread, const effects::TensorMemoryEffect &effect) const {
        u32 own = shape_.home(thread);
        if (in_pair(thread, effect)) return {own, own ^ 1};
        return {own};
    }

    static LaneSet masked(const effects::TensorMma &mma, u32 at) { return {{wide(mma, at), wide(mma, at + 2)}}; }

    template <typename E> u32 place(u32 thread, const E &effect) const { return shape_.place(effect.at(), thread, is_ranked(effect)); }
    static bool is_ranked(const effects::TensorAlloc &) { return false; }
    static bool is_ranked(const effects::TensorCommit &commit) { return commit.ranked(); }

    template <typename E> static u64 wide(const E &effect, u32 at) { return (u64)effect.operands(at + 1) << 32 | effect.operands(at); }

    void handle(u32 thread, const effects::TensorCp &copy) {
        TensorAccess made = access_of(TCGEN05_CP_OPERATION, thread, copy.site(), false, true);
        made.rows_of_4 = copy.rows() == 4;
        std::vector<u32> chunks = Descriptor::of_tcgen05(wide(copy, 0)).chunks(copy.rows(), copy.row_bytes() / CHUNK, false);
        LaneSet lanes = made.rows_of_4 ? LaneSet::quarters(1u << lane_of(copy.at()) % QUARTER) : LaneSet::range(0, TENSOR_LANES);
        u32 begin = column_of(copy.at());
        for (u32 cta : taking_part(thread, copy)) {
            operands(TCGEN05_CP_OPERATION, made, cta, chunks);
            memories_[cta]->use(made, {{lanes, begin, begin + copy.columns()}});
        }
    }

    void handle(u32 thread, const effects::TensorShift &shift) {
        u32 begin = column_of(shift.at());
        TensorAccess made = access_of(TCGEN05_SHIFT_OPERATION, thread, shift.site(), true, true);
        for (u32 cta : taking_part(thread, shift)) memories_[cta]->use(made, {{LaneSet::range(lane_of(shift.at()), QUARTER), begin, begin + 8}});
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

    void commit(u32 thread, const effects::TensorCommit &commit, std::vector<u32> &released) {
        u32 at = place(thread, commit), site = commit.site();
        if (!bounds_.holds(thread, site, at, 8)) return;
        auto ticket = issuers_.commit(thread, at);
        if (!commit.multicast()) return signal(thread, site, at, ticket, released);
        for (u32 cta = 0; cta < 16; ++cta) {
            if (!(commit.ctas() >> cta & 1)) continue;
            if (cta < shape_.ctas()) signal(thread, site, shape_.at(cta, at), ticket, released);
            else memory(thread).misuse(MASK_OUTSIDE, thread, site, cta);
        }
    }

    void signal(u32 thread, u32 site, u32 at, const std::pair<u32, u32> &ticket, std::vector<u32> &released) {
        lifetimes_.use(thread, site, at, 8);
        mbarriers_.signal(thread, site, at, ticket.first, ticket.second, released);
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
