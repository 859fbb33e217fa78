// Looks at many clusters, one after the other, and says in which of them a replay finds nothing: the log of each is computed (expansion.hpp) where that of
// the one before was, and nobody keeps it. The host looks at the others by itself. Included by replay.cpp, which has Replay.

class Sweep {
  public:
    explicit Sweep(const SweepInput &given) : given_(given), logs_(given.one.ctas * given.expansion.warps), used_(logs_, 0) { make_room(LEAST_ROOM); }

    void run() {
        for (u32 cluster = 0; cluster < given_.count && !is_halted(given_.one); ++cluster) given_.events[cluster] = computed(cluster) ? replayed() : 0;
    }

  private:
    // Zeros, so many lines and those that follow each log.
    void make_room(u64 lines) { room_ = lines + given_.words, log_.assign(logs_ * room_ * LANES, 0); }

    // Compute the logs of a cluster, once more with more room if one is longer than the room. Lines of zeros follow each.
    bool computed(u32 cluster) {
        for (;;) {
            u64 longest = 0;
            u64 budget = given_.expansion.most_steps;
            for (u32 number = 0; number < logs_; ++number) {
                u32 cta = cluster * given_.one.ctas + number / given_.expansion.warps, warp = number % given_.expansion.warps;
                u32 *log = log_.data() + number * room_ * LANES;
                std::fill_n(log, std::min<u64>(used_[number], room_) * LANES, 0);
                ExpansionWarp each(given_.expansion, cta, warp, log, room_);
                bool whole = each.run(budget) == EXPANSION_EXPANDED;
                longest = std::max<u64>(longest, used_[number] = each.lines());
                if (!whole || longest > MOST_ROOM / logs_) return false;
            }
            if (longest + given_.words <= room_) return true;
            make_room(longest);
        }
    }

    // The lane events of the replays that decide; 0: something was found, or a replay did not end as it should.
    u64 replayed() {
        u64 events = 0;
        for (u32 descending = 0; descending <= given_.both; ++descending) {
            Input one = given_.one;
            one.log = log_.data(), one.lines = room_, one.descending = descending, one.records = &found_, one.capacity = 1;
            Output output{};
            Replay(one, output).run();
            if (output.status != OK || output.records || output.by_address || output.overtaken) return 0;
            events += output.lane_events;
        }
        return events;
    }

    static constexpr u64 LEAST_ROOM = 64, MOST_ROOM = 1 << 23;  // lines, of all logs of a cluster: 1 GiB
    const SweepInput &given_;
    const u64 logs_;
    u64 room_ = 0;
    std::vector<u32> log_, used_;  // words; lines of each log
    Record found_{};
};
