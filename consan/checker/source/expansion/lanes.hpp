// Arithmetic of the expansion (expansion.hpp): what an instruction computes of the registers of the lanes of a warp. PTX ISA "Integer Arithmetic",
// "Comparison and Selection", "Logic and Shift", "Data Movement and Conversion" instructions. The virtual machine computes the same in Python
// (consan/backends/cpu/semantics), and a test compares them.
//
// A register has 64 bits for each lane. Those beyond its width are zero.
#pragma once

#include <cstring>
#include <type_traits>

#include "types.hpp"

using i64 = int64_t;

inline u64 low_bits(u32 count) { return count < 64 ? (1ull << count) - 1 : ~0ull; }

template <typename T> struct Of {
    using Unsigned = std::make_unsigned_t<T>;
    static constexpr u32 BITS = 8 * sizeof(T);
    static constexpr bool IS_SIGNED = std::is_signed_v<T>;

    static u64 divided(u64 a, u64 b) {
        if (!(T)b) return ~0ull;
        if (IS_SIGNED && (T)b == (T)-1) return 0 - a;
        return (u64)((T)a / (T)b);
    }
    static u64 rest(u64 a, u64 b) {
        if (!(T)b) return ~0ull;
        return IS_SIGNED && (T)b == (T)-1 ? 0 : (u64)((T)a % (T)b);
    }
    // The product of two numbers, twice as wide, from a bit on.
    static u64 product(u64 a, u64 b, u32 from) {
        if constexpr (IS_SIGNED) return (u64)((__int128)(T)a * (T)b >> from);
        else return (u64)((unsigned __int128)(T)a * (T)b >> from);
    }
    static u64 left(u64 a, u64 count) { return (u32)count < BITS ? a << (u32)count : 0; }
    static u64 right(u64 a, u64 count) {
        u32 by = (u32)count < BITS ? (u32)count : BITS;
        if (by == BITS) return IS_SIGNED && (T)a < 0 ? ~0ull : 0;
        return (u64)(T)((T)a >> by);
    }
    // bfe: `count` bits from `from` on; signed ones are extended by the last of them, or by the last bit of the word.
    static u64 field(u64 a, u64 from, u64 count) {
        u32 first = from & 255, bits = count & 255, end = first + bits < BITS ? first + bits : BITS;
        if (!bits) return 0;
        u64 word = first < BITS ? (u64)(Unsigned)a >> first : 0;
        u64 found = first < end ? word & low_bits(end - first) : 0;
        bool negative = IS_SIGNED && (a >> (end - 1) & 1);
        return negative ? found | ~low_bits(first < end ? end - first : 0) : found;
    }
    // bfi: the same bits of `base` replaced by the lowest of `a`.
    static u64 inserted(u64 a, u64 base, u64 from, u64 count) {
        u32 first = from & 255, bits = count & 255;
        if (first >= BITS) return base;
        u64 there = low_bits(bits) << first;
        return (base & ~there) | (a << first & there);
    }
    static u64 ones(u64 a) { return (u64)__builtin_popcountll((Unsigned)a); }
    static u64 leading_zeros(u64 a) { return (Unsigned)a ? (u64)__builtin_clzll((Unsigned)a) - (64 - BITS) : BITS; }
    static u64 reversed(u64 a) {
        u64 found = 0;
        for (u32 bit = 0; bit < BITS; ++bit) found |= (a >> bit & 1) << (BITS - 1 - bit);
        return found;
    }
};

// lop3: a truth table for each bit.
inline u64 looked_up(u64 a, u64 b, u64 c, u64 table) {
    u64 found = 0;
    for (u32 row = 0; row < 8; ++row)
        if (table >> row & 1) found |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
    return found;
}

// prmt: four bytes out of eight; the highest bit of a selector repeats the sign of its byte.
inline u64 permuted(u64 a, u64 b, u64 selectors) {
    u64 bytes = (u32)a | b << 32, found = 0;
    for (u32 i = 0; i < 4; ++i) {
        u32 selector = selectors >> (4 * i) & 15;
        u64 byte = bytes >> (8 * (selector & 7)) & 255;
        if (selector & 8) byte = byte & 128 ? 255 : 0;
        found |= byte << (8 * i);
    }
    return found;
}

// shf: one word of two that are shifted together.
inline u64 funnel(u64 low, u64 high, u64 count, bool left, bool wraps) {
    u64 both = (u32)low | high << 32;
    u32 by = wraps ? (u32)count & 31 : ((u32)count < 32 ? (u32)count : 32);
    return left ? both << by >> 32 : both >> by;
}
