// What somebody knows of the actors of a cluster: for each the same few numbers, which only grow.
//
// Many know the same. Blocks of entries are shared by all who know the same of these actors, and so is the row of the blocks: a copy costs nothing, a change
// what it changes, and a join what differs between the two. A block or a row that somebody else has, too, never changes.
#pragma once

#include <algorithm>
#include <new>
#include <utility>

#include "types.hpp"

// An array whose length is set once, with who refers to it counted. A replay runs on one thread.
template <typename T, typename Extra> class SharedArray {
  public:
    SharedArray() = default;
    SharedArray(const SharedArray &other) : head_(other.head_) { hold(); }
    SharedArray(SharedArray &&other) noexcept : head_(std::exchange(other.head_, nullptr)) {}
    SharedArray &operator=(SharedArray other) noexcept { return std::swap(head_, other.head_), *this; }
    ~SharedArray() {
        if (!head_ || --head_->references) return;
        std::destroy_n(data(), head_->size);
        head_->~Head();
        ::operator delete(head_);
    }

    static SharedArray of(u32 size) {
        SharedArray made;
        made.head_ = new (::operator new(sizeof(Head) + size * sizeof(T))) Head{1, size, {}};
        std::uninitialized_value_construct_n(made.data(), size);
        return made;
    }
    // The same values, of which nobody else has this array; longer if that is wanted.
    SharedArray copy(u32 size = 0) const {
        SharedArray made = of(std::max(size, head_->size));
        made.head_->extra = head_->extra;
        std::copy_n(data(), head_->size, made.data());
        return made;
    }

    bool operator==(const SharedArray &other) const { return head_ == other.head_; }
    explicit operator bool() const { return head_ != nullptr; }
    bool alone() const { return head_->references == 1; }
    u32 size() const { return head_->size; }
    T *data() const { return reinterpret_cast<T *>(head_ + 1); }
    Extra &extra() const { return head_->extra; }

  private:
    struct alignas(void *) Head {
        u32 references, size;
        Extra extra;
    };

    void hold() {
        if (head_) ++head_->references;
    }
    Head *head_ = nullptr;
};

class Entries {
  public:
    Entries() = default;
    // Nothing is known. `stride`: the numbers of an entry.
    explicit Entries(u32 stride) : row_(Row::of(0)) { row_.extra().stride = stride; }

    // The same object, or none: others may know the same.
    bool operator==(const Entries &other) const { return row_ == other.row_; }
    bool operator!=(const Entries &other) const { return !(*this == other); }
    explicit operator bool() const { return (bool)row_; }

    u32 at(u32 actor, u32 place = 0) const {
        if (actor / ACTORS >= row_.size()) return 0;
        const Block &block = row_.data()[actor / ACTORS];
        return block ? block.data()[actor % ACTORS * stride() + place] : 0;
    }

    void raise(u32 actor, u32 place, u32 number) {
        if (at(actor, place) < number) own(actor / ACTORS).data()[actor % ACTORS * stride() + place] = number;
    }

    void raise(const Entries &more) {
        if (*this == more || row_.extra().joined == number(more.row_)) return;
        for (u32 i = 0; i < more.row_.size(); ++i) {
            const Block &other = more.row_.data()[i];
            if (!other || (i < row_.size() && row_.data()[i] == other)) continue;
            Side side = i < row_.size() && row_.data()[i] ? larger(row_.data()[i], other) : OTHER;
            if (side == OTHER) own_row(i).data()[i] = other;
            else if (side == NEITHER) raise(own(i).data(), other.data(), other.size());
        }
        row_.extra().joined = number(more.row_);
    }

    // All of it is behind a fence: the numbers at some places (a bit each, from the second on) are the first of their entry, or larger.
    Entries fenced(u32 places) const {
        Entries made = *this;
        for (u32 i = 0; i < row_.size(); ++i)
            if (Block behind = fenced(row_.data()[i], places); !(behind == row_.data()[i])) made.own_row(i).data()[i] = behind;
        return made;
    }

    // Entries whose first number is the one at a place, and which have no other.
    Entries only(u32 place) const {
        Entries made(stride());
        for (u32 actor = 0; actor < row_.size() * ACTORS; ++actor) made.raise(actor, 0, at(actor, place));
        return made;
    }

  private:
    static constexpr u32 ACTORS = 32;  // of a block: the lanes of a warp
    struct Memo;
    using Block = SharedArray<u32, Memo>;
    struct Memo {
        u32 unchanged = 0, places = 0;  // fences that change nothing; a fence
        Block behind = {};              // what that one makes of the block
    };
    struct Known {
        u32 stride = 0;
        u64 number = 0, joined = 0;  // of this row, once it is asked for; of one that has nothing that this one lacks
    };
    using Row = SharedArray<Block, Known>;
    enum Side { NEITHER, OWN, OTHER };

    u32 stride() const { return row_.extra().stride; }

    static u64 number(const Row &row) {
        static thread_local u64 last = 0;
        u64 &number = row.extra().number;
        return number ? number : number = ++last;
    }

    // Which of two blocks has all that the other one has.
    static Side larger(const Block &one, const Block &other) {
        bool less = false, more = false;
        for (u32 i = 0; i < one.size(); ++i) less |= one.data()[i]<other.data()[i], more |= one.data()[i]> other.data()[i];
        return !less ? OWN : !more ? OTHER : NEITHER;
    }

    static void raise(u32 *to, const u32 *more, u32 size) {
        for (u32 i = 0; i < size; ++i) to[i] = std::max(to[i], more[i]);
    }

    // The row and a block, to be changed.
    Row &own_row(u32 block) {
        if (block >= row_.size() || !row_.alone()) row_ = row_.copy(block + 1);
        row_.extra().number = 0;
        return row_;
    }
    Block &own(u32 block) {
        Block &own = own_row(block).data()[block];
        if (!own) own = Block::of(ACTORS * stride());
        else if (!own.alone()) own = own.copy();
        own.extra() = {};
        return own;
    }

    Block fenced(const Block &from, u32 places) const {
        if (!from || from.extra().unchanged == places) return from;
        Memo &memo = from.extra();
        if (memo.behind && memo.places == places) return memo.behind;
        Block made = from.copy();
        made.extra() = {};
        for (u32 i = 0; i < made.size(); i += stride())
            for (u32 rest = places; rest; rest &= rest - 1) {
                u32 &number = made.data()[i + 1 + (u32)__builtin_ctz(rest)];
                number = std::max(number, made.data()[i]);
            }
        if (std::equal(made.data(), made.data() + made.size(), from.data())) return memo.unchanged = places, from;
        made.extra().unchanged = places;
        memo.places = places, memo.behind = made;
        return made;
    }

    Row row_;
};
