// CUB's block-wide and warp-wide collectives behind one interface: each has a `Storage`, and `use(storage, items, memory)`.
//
// Included once for each size, in a namespace of its own: THREADS and ITEMS are set before.

using Item = unsigned;
using Items = Item[ITEMS];

struct Less {
    __device__ bool operator()(Item a, Item b) const { return a < b; }
};
struct Minus {
    __device__ Item operator()(Item a, Item b) const { return a - b; }
};
struct Differ {
    __device__ bool operator()(Item a, Item b) const { return a != b; }
};
struct Max {
    __device__ Item operator()(Item a, Item b) const { return a > b ? a : b; }
};

// -- block-wide --------------------------------------------------------------------------------------------------------------------

template <cub::BlockReduceAlgorithm algorithm>
struct Reduce {
    using Block = cub::BlockReduce<Item, THREADS, algorithm>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*)
    {
        Item total = Block(storage).Sum(items);
        if (threadIdx.x == 0) items[0] = total;
    }
};

template <cub::BlockReduceAlgorithm algorithm>
struct ReduceMaxOfSome {
    using Block = cub::BlockReduce<Item, THREADS, algorithm>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*)
    {
        Item total = Block(storage).Reduce(items[0], Max{}, THREADS - 3);
        if (threadIdx.x == 0) items[0] = total;
    }
};

template <cub::BlockScanAlgorithm algorithm>
struct Scan {
    using Block = cub::BlockScan<Item, THREADS, algorithm>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*)
    {
        Item total;
        Block(storage).ExclusiveSum(items, items, total);
        items[0] += total;
    }
};

template <cub::BlockScanAlgorithm algorithm>
struct ScanMax {
    using Block = cub::BlockScan<Item, THREADS, algorithm>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*) { Block(storage).InclusiveScan(items, items, Max{}); }
};

template <bool memoize, cub::BlockScanAlgorithm algorithm>
struct RadixSort {
    using Block = cub::BlockRadixSort<Item, THREADS, ITEMS, cub::NullType, 4, memoize, algorithm>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*) { Block(storage).Sort(items, 0, 8); }
};

struct RadixSortPairsToStriped {
    using Block = cub::BlockRadixSort<Item, THREADS, ITEMS, Item>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*)
    {
        Items values;
        for (int i = 0; i < ITEMS; ++i) values[i] = threadIdx.x;
        Block(storage).SortDescendingBlockedToStriped(items, values, 4, 12);
        for (int i = 0; i < ITEMS; ++i) items[i] += values[i];
    }
};

template <typename Block>
struct RankOf {
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*)
    {
        int ranks[ITEMS];
        Block(storage).RankKeys(items, ranks, cub::BFEDigitExtractor<Item>(0, 4));
        for (int i = 0; i < ITEMS; ++i) items[i] += ranks[i];
    }
};
struct RadixRank : RankOf<cub::BlockRadixRank<THREADS, 4, false>> {};
struct RadixRankMatch : RankOf<cub::BlockRadixRankMatch<THREADS, 4, false>> {};

#if (THREADS & (THREADS - 1)) == 0  // it sorts no other numbers
struct MergeSort {
    using Block = cub::BlockMergeSort<Item, THREADS, ITEMS>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*) { Block(storage).Sort(items, Less{}); }
};

struct MergeSortSome {
    using Block = cub::BlockMergeSort<Item, THREADS, ITEMS>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*)
    {
        Block(storage).StableSort(items, Less{}, THREADS * ITEMS - 5, 0xFFFFFFFFu);
    }
};
#endif

template <bool timeslice>
struct Exchange {
    using Block = cub::BlockExchange<Item, THREADS, ITEMS, timeslice>;
    using Storage = typename Block::TempStorage;
};
template <bool timeslice>
struct BlockedToStriped : Exchange<timeslice> {
    using typename Exchange<timeslice>::Block;
    static __device__ void use(typename Block::TempStorage& s, Items& items, Item*) { Block(s).BlockedToStriped(items, items); }
};
template <bool timeslice>
struct StripedToBlocked : Exchange<timeslice> {
    using typename Exchange<timeslice>::Block;
    static __device__ void use(typename Block::TempStorage& s, Items& items, Item*) { Block(s).StripedToBlocked(items, items); }
};
template <bool timeslice>
struct BlockedToWarpStriped : Exchange<timeslice> {
    using typename Exchange<timeslice>::Block;
    static __device__ void use(typename Block::TempStorage& s, Items& items, Item*) { Block(s).BlockedToWarpStriped(items, items); }
};
template <bool timeslice>
struct WarpStripedToBlocked : Exchange<timeslice> {
    using typename Exchange<timeslice>::Block;
    static __device__ void use(typename Block::TempStorage& s, Items& items, Item*) { Block(s).WarpStripedToBlocked(items, items); }
};
template <bool timeslice>
struct ScatterToBlocked : Exchange<timeslice> {
    using typename Exchange<timeslice>::Block;
    static __device__ void use(typename Block::TempStorage& s, Items& items, Item*)
    {
        int ranks[ITEMS];
        for (int i = 0; i < ITEMS; ++i) ranks[i] = THREADS * ITEMS - 1 - (threadIdx.x * ITEMS + i);
        Block(s).ScatterToBlocked(items, items, ranks);
    }
};
template <bool timeslice>
struct ScatterToStriped : Exchange<timeslice> {
    using typename Exchange<timeslice>::Block;
    static __device__ void use(typename Block::TempStorage& s, Items& items, Item*)
    {
        int ranks[ITEMS];
        for (int i = 0; i < ITEMS; ++i) ranks[i] = THREADS * ITEMS - 1 - (threadIdx.x * ITEMS + i);
        Block(s).ScatterToStriped(items, items, ranks);
    }
};

template <cub::BlockLoadAlgorithm algorithm>
struct Load {
    using Block = cub::BlockLoad<Item, THREADS, ITEMS, algorithm>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item* memory)
    {
        Items loaded;
        Block(storage).Load(memory, loaded);
        for (int i = 0; i < ITEMS; ++i) items[i] += loaded[i];  // used, or the compiler leaves the first of two loads out
    }
};

template <cub::BlockStoreAlgorithm algorithm>
struct Store {
    using Block = cub::BlockStore<Item, THREADS, ITEMS, algorithm>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item* memory)
    {
        Block(storage).Store(memory, items);
        items[0] += 1;
    }
};

template <cub::BlockHistogramAlgorithm algorithm>
struct Histogram {
    using Block = cub::BlockHistogram<unsigned char, THREADS, ITEMS, 64, algorithm>;
    struct Storage {
        typename Block::TempStorage temporary;
        Item bins[64];
    };
    static __device__ void use(Storage& storage, Items& items, Item*)
    {
        unsigned char samples[ITEMS];
        for (int i = 0; i < ITEMS; ++i) samples[i] = items[i] % 64;
        Block(storage.temporary).Histogram(samples, storage.bins);
    }
};

struct FlagHeads {
    using Block = cub::BlockDiscontinuity<Item, THREADS>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*)
    {
        int flags[ITEMS];
        Block(storage).FlagHeads(flags, items, Differ{});
        for (int i = 0; i < ITEMS; ++i) items[i] += flags[i];
    }
};
struct FlagTails {
    using Block = cub::BlockDiscontinuity<Item, THREADS>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*)
    {
        int flags[ITEMS];
        Block(storage).FlagTails(flags, items, Differ{});
        for (int i = 0; i < ITEMS; ++i) items[i] += flags[i];
    }
};
struct FlagHeadsAndTails {
    using Block = cub::BlockDiscontinuity<Item, THREADS>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*)
    {
        int heads[ITEMS], tails[ITEMS];
        Block(storage).FlagHeadsAndTails(heads, tails, items, Differ{});
        for (int i = 0; i < ITEMS; ++i) items[i] += heads[i] + tails[i];
    }
};

struct SubtractLeft {
    using Block = cub::BlockAdjacentDifference<Item, THREADS>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*) { Block(storage).SubtractLeft(items, items, Minus{}); }
};
struct SubtractRight {
    using Block = cub::BlockAdjacentDifference<Item, THREADS>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*) { Block(storage).SubtractRight(items, items, Minus{}); }
};

struct Shuffle {
    using Block = cub::BlockShuffle<Item, THREADS>;
    using Storage = typename Block::TempStorage;
};
struct ShuffleOffset : Shuffle {
    static __device__ void use(Storage& storage, Items& items, Item*) { Block(storage).Offset(items[0], items[0], 3); }
};
struct ShuffleRotate : Shuffle {
    static __device__ void use(Storage& storage, Items& items, Item*) { Block(storage).Rotate(items[0], items[0], 5); }
};
struct ShuffleUp : Shuffle {
    static __device__ void use(Storage& storage, Items& items, Item*) { Block(storage).Up(items, items); }
};
struct ShuffleDown : Shuffle {
    static __device__ void use(Storage& storage, Items& items, Item*) { Block(storage).Down(items, items); }
};

struct RunLengthDecode {
    using Block = cub::BlockRunLengthDecode<Item, THREADS, ITEMS, ITEMS>;
    using Storage = typename Block::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*)
    {
        Item lengths[ITEMS], total = 0;
        for (int i = 0; i < ITEMS; ++i) lengths[i] = 1 + (threadIdx.x + i) % 3;
        Block block(storage, items, lengths, total);
        block.RunLengthDecode(items, 0);
    }
};

// -- warp-wide: one storage for each warp ------------------------------------------------------------------------------------------

template <int lanes>
struct WarpReduce {
    using Warp = cub::WarpReduce<Item, lanes>;
    using Storage = typename Warp::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*) { items[0] = Warp(storage).Sum(items[0]); }
};
template <int lanes>
struct WarpScan {
    using Warp = cub::WarpScan<Item, lanes>;
    using Storage = typename Warp::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*) { Warp(storage).ExclusiveSum(items[0], items[0]); }
};
struct WarpBlockedToStriped {
    using Warp = cub::WarpExchange<Item, ITEMS>;
    using Storage = typename Warp::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*) { Warp(storage).BlockedToStriped(items, items); }
};
struct WarpStriped {
    using Warp = cub::WarpExchange<Item, ITEMS>;
    using Storage = typename Warp::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*) { Warp(storage).StripedToBlocked(items, items); }
};
struct WarpMergeSort {
    using Warp = cub::WarpMergeSort<Item, ITEMS>;
    using Storage = typename Warp::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item*) { Warp(storage).Sort(items, Less{}); }
};
struct WarpLoad {
    using Warp = cub::WarpLoad<Item, ITEMS, cub::WARP_LOAD_TRANSPOSE>;
    using Storage = typename Warp::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item* memory)
    {
        Items loaded;
        Warp(storage).Load(memory + threadIdx.x / 32 * 32 * ITEMS, loaded);
        for (int i = 0; i < ITEMS; ++i) items[i] += loaded[i];
    }
};
struct WarpStore {
    using Warp = cub::WarpStore<Item, ITEMS, cub::WARP_STORE_TRANSPOSE>;
    using Storage = typename Warp::TempStorage;
    static __device__ void use(Storage& storage, Items& items, Item* memory)
    {
        Warp(storage).Store(memory + threadIdx.x / 32 * 32 * ITEMS, items);
        items[0] += 1;
    }
};
