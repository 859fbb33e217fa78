// What a thread knows of the chains of all clusters (views.hpp): a map from a cluster, and the slot of a chain in it, to numbers that only grow.
//
// It is a tree over the clusters. Equal trees are one: a node is made once, and so is the join of two nodes, as long as it is among the last ones. All CTAs of
// a launch come to know much the same of the others, so a join costs what differs between the two, and not what is known.
#pragma once

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "types.hpp"

// What is known of a chain: the last moment, and up to which it is behind a fence.sc, and behind a proxy fence for global memory.
struct Known {
    u32 slot, number, behind = 0, fenced = 0;

    bool operator==(const Known &other) const { return slot == other.slot && number == other.number && behind == other.behind && fenced == other.fenced; }
    void raise(const Known &more) { number = std::max(number, more.number), behind = std::max(behind, more.behind), fenced = std::max(fenced, more.fenced); }
};

enum KnownFences : u32 { FENCE_SC = 1, FENCE_PROXY = 2 };

// The nodes of one launch. It outlives them. A replay runs on one thread.
class KnowledgePool {
  public:
    static constexpr u32 BITS = 4, WIDTH = 1 << BITS;
    enum Change : u32 { BEHIND = 3, NOT_BEHIND = 4, CHANGES = 5 };  // 0 to 2: behind fences, a set of KnownFences less one
    struct Node;

    // Counts who refers to a node.
    class Ref {
      public:
        Ref() = default;
        explicit Ref(Node *node) : node_(node) { hold(); }
        Ref(const Ref &other) : node_(other.node_) { hold(); }
        Ref(Ref &&other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
        Ref &operator=(Ref other) noexcept { return std::swap(node_, other.node_), *this; }
        ~Ref() {
            if (node_ && !--node_->references) node_->pool.drop(node_);
        }
        bool operator==(const Ref &other) const { return node_ == other.node_; }
        explicit operator bool() const { return node_ != nullptr; }
        Node *operator->() const { return node_; }
        Node *get() const { return node_; }

      private:
        void hold() {
            if (node_) ++node_->references;
        }
        Node *node_ = nullptr;
    };

    struct Node {
        KnowledgePool &pool;
        u32 level;
        u32 references = 0, unchanged = 0;  // unchanged: a bit for each Change that makes no other node of it
        u64 hash = 0;
        std::vector<Known> known = {};      // of a leaf: of one cluster, by slot
        std::vector<Ref> below = {};        // of others
        std::array<Ref, CHANGES> changed = {};

        bool operator==(const Node &other) const { return level == other.level && known == other.known && below == other.below; }
    };

    KnowledgePool() = default;
    KnowledgePool(const KnowledgePool &) = delete;
    ~KnowledgePool() { joins_.clear(); }

    // For so many clusters.
    void resize(u32 clusters) {
        for (levels_ = 0; clusters > 1u << BITS * levels_;) ++levels_;
        joins_.resize(JOINS);
    }

    // The knowledge of one chain.
    Ref of(u32 cluster, const Known &known) {
        Node leaf{*this, 0};
        leaf.known = {known};
        Ref root = only(std::move(leaf));
        for (u32 level = 1; level <= levels_; ++level) {
            Node above{*this, level};
            above.below.resize(WIDTH);
            above.below[digit(cluster, level)] = std::move(root);
            root = only(std::move(above));
        }
        return root;
    }
    // Which node below one of a level leads to a cluster.
    static u32 digit(u32 cluster, u32 level) { return cluster >> BITS * (level - 1) & (WIDTH - 1); }

    Ref join(const Ref &one, const Ref &other) {
        if (one == other || !other) return one;
        if (!one) return other;
        size_t at = mixed(mixed((u64)one.get()) ^ (u64)other.get()) % JOINS;
        if (joins_[at].one == one && joins_[at].other == other) return joins_[at].joined;
        Node made{*this, one->level};
        for (u32 i = 0; i < one->below.size(); ++i) made.below.push_back(join(one->below[i], other->below[i]));
        if (!one->level) join_known(made.known, one->known, other->known);
        Ref joined = only(std::move(made));
        joins_[at] = {one, other, joined};
        return joined;
    }

    Ref change(const Ref &from, u32 how) {
        if (!from || from->unchanged >> how & 1) return from;
        if (from->changed[how]) return from->changed[how];
        Node made{*this, from->level};
        for (const Known &each : from->known) made.known.push_back(change(each, how));
        for (const Ref &each : from->below) made.below.push_back(change(each, how));
        Ref found = only(std::move(made));
        if (found == from) from->unchanged |= 1u << how;
        else from->changed[how] = found;
        return found;
    }

  private:
    static constexpr size_t JOINS = 1 << 14;
    struct Join {
        Ref one, other, joined;
    };

    // The node that is equal to one.
    Ref only(Node &&made) {
        made.hash = hash(made);
        auto range = nodes_.equal_range(made.hash);
        for (auto each = range.first; each != range.second; ++each)
            if (*each->second == made) return Ref(each->second);
        Node *node = new Node(std::move(made));
        nodes_.emplace(node->hash, node);
        return Ref(node);
    }

    void drop(Node *node) {
        auto range = nodes_.equal_range(node->hash);
        nodes_.erase(std::find_if(range.first, range.second, [&](const auto &each) { return each.second == node; }));
        delete node;
    }

    static void join_known(std::vector<Known> &to, const std::vector<Known> &one, const std::vector<Known> &other) {
        auto a = one.begin(), b = other.begin();
        while (a != one.end() || b != other.end()) {
            bool first = b == other.end() || (a != one.end() && a->slot <= b->slot), second = a == one.end() || (b != other.end() && b->slot <= a->slot);
            to.push_back(first ? *a : *b);
            if (first && second) to.back().raise(*b);
            a += first, b += second;
        }
    }

    static Known change(Known known, u32 how) {
        if (how == BEHIND) return {known.slot, known.behind, known.behind, known.fenced};
        if (how == NOT_BEHIND) return {known.slot, known.number, 0, known.fenced};
        if ((how + 1) & FENCE_SC) known.behind = std::max(known.behind, known.number);
        if ((how + 1) & FENCE_PROXY) known.fenced = std::max(known.fenced, known.number);
        return known;
    }

    // A bijection (SplitMix64).
    static u64 mixed(u64 value) {
        value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
        value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
        return value ^ (value >> 31);
    }
    static u64 hash(const Node &node) {
        u64 hash = node.level + 1;
        for (const Known &each : node.known) hash = mixed(mixed(hash + ((u64)each.slot << 32 | each.number)) + ((u64)each.behind << 32 | each.fenced));
        for (const Ref &each : node.below) hash = mixed(hash + (u64)each.get());
        return hash;
    }

    u32 levels_ = 0;
    std::unordered_multimap<u64, Node *> nodes_;
    std::vector<Join> joins_;  // the last ones
};

class Knowledge {
  public:
    Knowledge() = default;
    explicit Knowledge(KnowledgePool::Ref root) : root_(std::move(root)) {}

    bool operator==(const Knowledge &other) const { return root_ == other.root_; }
    bool operator!=(const Knowledge &other) const { return !(*this == other); }

    Knowledge with(const Knowledge &more) const { return Knowledge(root_ ? root_->pool.join(root_, more.root_) : more.root_); }
    void join(const Knowledge &more) { *this = with(more); }

    // All of it behind fences: a set of KnownFences.
    Knowledge fenced(u32 fences) const { return fences ? changed(fences - 1) : *this; }
    // The part that is behind a fence.sc.
    Knowledge behind_sc() const { return changed(KnowledgePool::BEHIND); }
    // All of it, and nothing behind a fence.sc.
    Knowledge not_behind_sc() const { return changed(KnowledgePool::NOT_BEHIND); }

    // What is known of a cluster's chains, by slot.
    const std::vector<Known> &of(u32 cluster) const {
        static const std::vector<Known> nothing;
        const KnowledgePool::Node *node = root_.get();
        while (node && node->level) node = node->below[KnowledgePool::digit(cluster, node->level)].get();
        return node ? node->known : nothing;
    }
    // The last moment that is known of one.
    u32 of(u32 cluster, u32 slot) const {
        for (const Known &each : of(cluster))
            if (each.slot == slot) return each.number;
        return 0;
    }

  private:
    Knowledge changed(u32 how) const { return root_ ? Knowledge(root_->pool.change(root_, how)) : Knowledge(); }

    KnowledgePool::Ref root_;
};
