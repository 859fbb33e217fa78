// Elements that fetches read (instrument/textures.py): their names stand where addresses in global memory do.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "types.hpp"

inline bool is_texture(u64 name) { return name >> 62 == 2; }

// The texture objects that a launch fetches from. The host gives the bytes of each, once it has seen its handle.
class Textures {
  public:
    struct Bytes {
        u64 address;
        u32 count;
    };

    explicit Textures(const GridInput &input) : memories_(input.textures, input.textures + input.texture_count) {}

    void note(u64 name) {
        const TextureMemory *memory = of(name);
        if (!memory) asked_ = ASKED | handle_of(name);
        else if (!memory->known) unknown_ = true;
        else if (!memory->bytes) arrays_ = true;
        else if (!numbers(*memory, name)) any_.try_emplace(memory->handle, *memory);  // many fetches, few textures
    }
    // The handle of a texture whose bytes the host has not given, with a bit that is always set; 0: there is none.
    u64 asked() const { return asked_; }

    // The bytes of the element that a fetch names; none, if it is outside of them, has no address, or if the fetch names no element.
    Bytes bytes(u64 name) const {
        const TextureMemory *memory = of(name);
        if (!memory || !memory->known || !memory->bytes || !numbers(*memory, name)) return {};
        u64 first = (index_of(name) - 1) * memory->element;
        return first < memory->bytes ? Bytes{memory->address + first, memory->element} : Bytes{};
    }

    // Whether a fetch has read elements that have no names here: other launches may write them.
    bool unnamed() const { return unknown_ || arrays_ || !any_.empty(); }
    // Whether what a launch writes may be among the elements of fetches that name none. `written(memory)`: whether it writes some of these bytes.
    template <typename Written> bool covered(bool writes, bool surfaces, Written written) const {
        return (unknown_ && writes) || (arrays_ && surfaces) || std::any_of(any_.begin(), any_.end(), [&](const auto &each) { return written(each.second); });
    }

  private:
    static constexpr u64 ASKED = 1ull << 32;
    static u64 handle_of(u64 name) { return name >> TEXTURE_HANDLE & 0xffffffffull; }
    static u64 index_of(u64 name) { return name & ((1ull << TEXTURE_HANDLE) - 1); }
    static bool numbers(const TextureMemory &memory, u64 name) { return memory.numbered && index_of(name); }

    const TextureMemory *of(u64 name) const {
        auto same = [&](const TextureMemory &each) { return each.handle == handle_of(name); };
        auto found = std::find_if(memories_.begin(), memories_.end(), same);
        return found == memories_.end() ? nullptr : &*found;
    }

    std::vector<TextureMemory> memories_;
    std::unordered_map<u64, TextureMemory> any_;  // by handle: some fetch names no element of it
    u64 asked_ = 0;
    bool unknown_ = false, arrays_ = false;
};
