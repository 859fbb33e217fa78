// Replays all CTAs of a launch for what they do in global memory. Nothing orders the CTAs of a module whose threads cannot observe each other: they come
// one after the other, and each is forgotten; those without a log are left out. In other modules they go on together, each thread up to a strong read
// whose write has not come yet. Included by replay.cpp, which has Replay.

class LaunchReplay {
  public:
    LaunchReplay(const GridInput &input, GridOutput &output) : input_(input), output_(output), grid_(input), buffer_(1) {}

    void run() {
        grid_.views.resize(input_.count, input_.one.cta_threads, input_.one.level >= SCOPES, input_.rank_clusters);
        grid_.views.lay_out(input_.rank_memory, input_.rank_stride);
        read();
        output_.texture = grid_.textures.asked();
        if (output_.texture) return;
        if (input_.synced) together();
        else one_by_one();
        if (output_.status == OK && grid_.cut) output_.status = FULL;
        output_.records = grid_.findings.count();
        if (output_.status == OK && grid_.findings.overflow()) output_.status = TOO_MANY;
        output_.contradictions += grid_.flags.contradictions();
        output_.of_clusters = of_clusters_;
        output_.full = grid_.global_races.full(), output_.unknown = grid_.global_races.unknown();
        output_.compared = grid_.global_races.compared();
        output_.aliased = surfaces_.aliased();
        output_.fetched = grid_.textures.covered(grid_.footprints.any(), surfaces_.written(),
                                                 [&](const TextureMemory &each) { return grid_.footprints.written(each.address, each.bytes); });
        output_.retained = grid_.retained.count(), output_.retained_full = grid_.retained.full() || grid_.textures.unnamed(),
        output_.waited = grid_.retained.waited();
        output_.peer_flags = grid_.retained.peers().count(), output_.peer_flags_full = grid_.retained.peers().full();
        output_.peer_sets = grid_.retained.peers().words();
    }

  private:
    struct Cluster {
        Input input;
        Output output{};
        std::unique_ptr<Replay> replay;
        std::unique_ptr<Record[]> records;
    };

    Input of(u32 cluster) {
        Input made = input_.one;
        made.log = input_.clusters[cluster].log, made.lines = input_.clusters[cluster].lines;
        made.records = buffer_.data(), made.capacity = (u32)buffer_.size();
        made.positions = input_.positions ? input_.positions + (size_t)cluster * made.ctas * made.cta_threads : nullptr;
        return made;
    }

    // What must be known beforehand: the bytes that several threads touch, the strong accesses.
    void read() {
        grid_.footprints.resize(input_.count);
        grid_.threads = input_.one.ctas * input_.one.cta_threads;
        grid_.stored.assign((size_t)input_.count * grid_.threads, 0);
        auto writes = [](const Event &event) {
            return event.kind == GLOBAL_WRITE || global_operands::writes(event.kind) || event.kind == OBSERVE || event.kind == FENCE || event.kind == UNSEEN ||
                   is_narrow_signal(event);
        };
        each_lane(
            [&](u32) { grid_.first.push_back(grid_.flags.size()); }, writes,
            [&](const LaneLog &log, u32 cluster, u32 thread) { effects::dispatch(log, [&](const auto &effect) { note_write(effect, cluster, thread); }); });
        if (!grid_.sc && (rank_sc_ || cta_sc_)) grid_.sc = true, grid_.views.count_near(rank_sc_ ? GPU_SCOPE : CTA_SCOPE);
        bool shared = grid_.flags.in_shared_memory();
        auto reads = [&](const Event &event) {
            return event.kind == GLOBAL_READ || global_operands::reads(event.kind) || event.flags & MAP || (shared && is_plain_store(event));
        };
        each_lane(
            [](u32) {}, reads,
            [&](const LaneLog &log, u32 cluster, u32 thread) { effects::dispatch(log, [&](const auto &effect) { note_read(effect, cluster, thread); }); });
        grid_.flags.order(input_);
        grid_.edges.start(input_.count, input_.one.ctas * input_.one.cta_threads);
    }

    // begin(thread) for each number of a thread, f(log, cluster, thread) at each event that is wanted.
    template <typename Begin, typename Wanted, typename F> void each_lane(Begin begin, Wanted wanted, F f) {
        for (u32 cluster = 0; cluster < input_.count; ++cluster) {
            Input made = of(cluster);
            Shape shape(made);
            for (u32 thread = 0; thread < shape.threads(); ++thread) {
                begin(thread);
                if (!made.lines || !shape.exists(thread) || halts()) continue;
                LaneLog log(made, thread);
                LaneLog::State state;
                while ((state = log.next(wanted)) == LaneLog::EVENT) f(log, cluster, thread);
                grid_.cut |= state == LaneLog::CUT;
                if (state == LaneLog::BROKEN) output_.status = CORRUPT;
            }
        }
    }

    static bool is_plain_store(const Event &event) { return event.kind == WRITE && !(event.flags & STRONG); }
    static bool is_narrow_signal(const Event &event) { return (event.kind == MBARRIER_ARRIVE || event.kind == MBARRIER_WAIT) && event.flags & NARROW; }

    void note_write(const effects::Effect &, u32, u32) {}
    void note_write(const effects::MbarrierEffect &, u32, u32) { output_.narrow = true; }  // of narrow signals only
    void note_write(const effects::Unseen &, u32, u32) { output_.unseen = true; }
    void note_write(const effects::Observe &access, u32 cluster, u32 thread) {
        output_.narrow |= scope_of(access.order()) < grid_.views.all();
        if (input_.synced) grid_.flags.add(access, cluster, thread, grid_.views.scope(access.order()));
    }
    void note_write(const effects::Fence &fence, u32, u32) {
        if (fence.of_puts() || fence.own_puts()) return grid_.views.count_puts();
        output_.narrow |= scope_of(fence.order()) < grid_.views.all();
        bool wide = grid_.views.scope(fence.order()) >= grid_.views.all();
        grid_.flags.fence(fence.order(), wide);
        grid_.sc |= fence.order() & IS_RELEASE && wide;
        bool near = fence.order() & IS_RELEASE && !wide, whole = grid_.views.scope(fence.order()) >= GPU_SCOPE;
        rank_sc_ |= near && whole;
        cta_sc_ |= near && !whole && input_.one.ctas == 1;
    }
    void note_write(const effects::GlobalWrite &store, u32 cluster, u32 thread) {
        ++output_.accesses;
        surfaces_.note(store.address(), true);
        grid_.stored[cluster * grid_.threads + thread] |= store.stores();
        grid_.footprints.write(store.address(), store.bytes(), cluster, thread);
        if (input_.synced && !store.strong()) grid_.flags.add_plain(store.address(), store.bytes());
    }
    void note_write(const effects::BulkStore &copy, u32 cluster, u32 thread) { note_written(copy, cluster, thread); }
    void note_write(const effects::TensorStore &copy, u32 cluster, u32 thread) { note_written(copy, cluster, thread); }
    template <typename Copy> void note_written(const Copy &copy, u32 cluster, u32 thread) {
        global_operands::each_row(copy, [&](u64 address, u32 bytes) { ++output_.accesses, grid_.footprints.write(address, bytes, cluster, thread, true); });
    }

    void note_read(const effects::Effect &, u32, u32) {}
    void note_read(const effects::Write &store, u32 cluster, u32) { grid_.flags.add_plain_shared(cluster, store.at(), store.bytes()); }
    void note_read(const effects::GlobalRead &load, u32 cluster, u32 thread) {
        ++output_.accesses;
        if (is_texture(load.address())) return note_fetch(load, cluster, thread);
        surfaces_.note(load.address(), false);
        if (!grid_.unused(load, cluster, thread)) grid_.footprints.read(load.address(), load.bytes(), cluster, thread, load.nc());
    }
    void note_fetch(const effects::GlobalRead &fetch, u32 cluster, u32 thread) {
        grid_.textures.note(fetch.address());
        Textures::Bytes read = grid_.textures.bytes(fetch.address());
        grid_.footprints.read(read.address, read.count, cluster, thread, true);
    }
    void note_read(const effects::CopyIssue &copy, u32 cluster, u32 thread) { note_rows(copy, cluster, thread); }
    void note_read(const effects::BulkLoad &copy, u32 cluster, u32 thread) { note_rows(copy, cluster, thread); }
    void note_read(const effects::TensorLoad &copy, u32 cluster, u32 thread) {
        note_map(copy, cluster, thread);
        note_rows(copy, cluster, thread);
    }
    void note_read(const effects::TensorStore &copy, u32 cluster, u32 thread) { note_map(copy, cluster, thread); }
    template <typename Copy> void note_map(const Copy &copy, u32 cluster, u32 thread) {
        if (u64 map = global_operands::map_of(copy)) ++output_.accesses, grid_.footprints.read(map, MAP_BYTES, cluster, thread, true);
    }
    template <typename Copy> void note_rows(const Copy &copy, u32 cluster, u32 thread) {
        global_operands::each_row(copy, [&](u64 address, u32 bytes) { ++output_.accesses, grid_.footprints.read(address, bytes, cluster, thread, true); });
    }

    void one_by_one() {
        for (u32 number = 0; number < input_.count && !halts(); ++number) {
            if (!input_.clusters[number].lines || (!grid_.retained.wanted() && !grid_.footprints.shares(number))) continue;
            Cluster cluster{};
            cluster.input = of(number);
            cluster.replay = std::make_unique<Replay>(cluster.input, cluster.output, &grid_, number);
            cluster.replay->run();
            grid_.global_races.over();
            note(cluster);
        }
        grid_.retained.end(input_.begun_before_end);
    }

    void together() {
        std::vector<Cluster> clusters(input_.count);
        for (u32 number = 0; number < input_.count; ++number) {
            clusters[number].input = of(number);
            clusters[number].records.reset(new Record[MOST]);
            clusters[number].input.records = clusters[number].records.get(), clusters[number].input.capacity = MOST;
            clusters[number].replay = std::make_unique<Replay>(clusters[number].input, clusters[number].output, &grid_, number);
        }
        auto place = [&](u32 i) { return input_.one.descending ? input_.count - 1 - i : i; };
        std::set<u32> awake;  // the places, in the order of this replay, of clusters that may go on
        auto wake = [&](u32 cluster) { awake.insert(place(cluster)); };
        auto each = [&](auto step) {
            bool found = false;
            for (u32 i = 0; i < input_.count; ++i)
                if (step(*clusters[place(i)].replay)) found = true, wake(place(i));
            return found;
        };
        auto force = [&] {
            for (u32 number = 0; number < input_.count; ++number)
                if (clusters[number].replay->force()) return wake(number), true;
            return false;
        };
        auto unhold = [&] {
            for (u32 number = 0; number < input_.count; ++number)
                if (clusters[number].replay->unhold()) return wake(number), true;
            return false;
        };
        for (u32 number = 0; number < input_.count; ++number) wake(number);
        for (;;) {
            advance(clusters, awake, place);
            if (unhold()) continue;
            if (each([](Replay &cluster) { return cluster.go_on(); })) continue;
            if (grid_.cut || halts() || !force()) break;
            ++output_.contradictions;
        }
        for (u32 number = 0; number < input_.count; ++number) {
            clusters[number].replay->end();
            note(clusters[number]);
            if (input_.of_clusters) collect(number, clusters[number]);
        }
        grid_.retained.end(input_.begun_before_end);
    }

    // Let clusters go on until none can: those of lower places first, as long as the others have not had their turn.
    template <typename Place> void advance(std::vector<Cluster> &clusters, std::set<u32> &awake, Place place) {
        for (u32 from = 0; !awake.empty();) {
            auto next = awake.lower_bound(from);
            if (next == awake.end()) next = awake.begin();
            u32 at = *next;
            awake.erase(next);
            clusters[place(at)].replay->advance();
            for (u32 each : grid_.edges.woken()) awake.insert(place(each));
            grid_.edges.woken().clear();
            from = at + 1;
        }
    }

    void note(const Cluster &cluster) {
        u32 status = cluster.output.status;
        output_.lane_events += cluster.output.lane_events;
        output_.stuck += status == STUCK;
        if (status == CORRUPT || status == FULL || status == HALTED) output_.status = status;
    }

    bool halts() {
        if (is_halted(input_.one)) output_.status = HALTED;
        return output_.status == HALTED;
    }

    // What a CTA has found in its shared memory.
    void collect(u32 number, const Cluster &cluster) {
        if (cluster.output.status == TOO_MANY) output_.status = TOO_MANY;
        for (u32 i = 0; i < cluster.output.records; ++i) {
            if (of_clusters_ == input_.capacity) {
                output_.status = TOO_MANY;
                return;
            }
            input_.of_clusters[of_clusters_] = cluster.records[i];
            input_.of_clusters[of_clusters_++].cluster = number;
        }
    }

    const GridInput &input_;
    GridOutput &output_;
    u32 of_clusters_ = 0;
    bool rank_sc_ = false, cta_sc_ = false;  // some fence.sc is for one rank of several; for one CTA
    Surfaces surfaces_;
    Grid grid_;
    static constexpr u32 MOST = 512;  // findings of a CTA
    std::vector<Record> buffer_;      // for what CTAs find that others report
};
