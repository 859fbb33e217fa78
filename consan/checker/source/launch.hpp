// Replays all CTAs of a launch for what they do in global memory. Nothing orders the CTAs of a module whose threads cannot observe each
// other: they come one after the other, and each is forgotten. In other modules they go on together, each thread up to a strong read whose
// write has not come yet. Included by replay.cpp, which has Replay.

class LaunchReplay {
  public:
    LaunchReplay(const GridInput &input, GridOutput &output) : input_(input), output_(output), grid_(input), buffer_(1) {}

    void run() {
        read();
        grid_.views.resize(input_.count, input_.one.cta_threads);
        if (input_.synced) together();
        else one_by_one();
        output_.records = grid_.findings.count();
        if (output_.status == OK && grid_.findings.overflow()) output_.status = TOO_MANY;
        output_.contradictions += grid_.flags.contradictions();
        output_.of_units = of_units_;
        output_.full = grid_.outer.full(), output_.unknown = grid_.outer.unknown();
        output_.kept = grid_.outer.kept(), output_.pruned = grid_.outer.pruned();
    }

  private:
    struct Unit {
        Input input;
        Output output{};
        std::unique_ptr<Replay> replay;
        std::vector<Record> records;
    };

    Input of(u32 unit) {
        Input made = input_.one;
        made.log = input_.units[unit].log, made.lines = input_.units[unit].lines;
        made.records = buffer_.data(), made.capacity = (u32)buffer_.size();
        return made;
    }

    // What must be known beforehand: the lines that are written, the strong accesses.
    void read() {
        for (u32 unit = 0; unit < input_.count; ++unit) {
            Input made = of(unit);
            Shape shape(made);
            for (u32 thread = 0; thread < shape.threads(); ++thread) {
                grid_.first.push_back(grid_.flags.size());
                if (!shape.exists(thread)) continue;
                LaneLog log(made, thread);
                while (log.next() == LaneLog::EVENT) {
                    const Event &event = log.event();
                    if (event.kind == GLOBAL_WRITE) {
                        grid_.outer.will_write(log.wide_value(), (u32)event.bytes);
                        if (!(event.flags & STRONG)) grid_.flags.add_plain(log.wide_value(), (u32)event.bytes);
                    }
                    if (event.kind == BULK_STORE || event.kind == TENSOR_STORE) Sides::each_row(log, [&](u64 address, u32 bytes) { grid_.outer.will_write(address, bytes); });
                    if (event.kind == OBSERVE && input_.synced) grid_.flags.add(log, unit, thread);
                    grid_.sc |= event.kind == FENCE && event.offset & GIVES && scope_of(event) >= GPU_SCOPE;
                }
            }
        }
        grid_.flags.order();
        grid_.edges.start(input_.count, input_.one.ctas * input_.one.cta_threads);
    }

    void one_by_one() {
        for (u32 number = 0; number < input_.count; ++number) {
            Unit unit{};
            unit.input = of(number);
            unit.replay = std::make_unique<Replay>(unit.input, unit.output, &grid_, number);
            unit.replay->run();
            note(unit);
        }
    }

    void together() {
        std::vector<Unit> units(input_.count);
        for (u32 number = 0; number < input_.count; ++number) {
            units[number].input = of(number);
            units[number].records.resize(MOST);
            units[number].input.records = units[number].records.data(), units[number].input.capacity = MOST;
            units[number].replay = std::make_unique<Replay>(units[number].input, units[number].output, &grid_, number);
        }
        auto any = [&](auto step) {
            bool found = false;
            for (u32 i = 0; i < input_.count; ++i) found |= step(*units[input_.one.descending ? input_.count - 1 - i : i].replay);
            return found;
        };
        auto first = [&](auto step) {
            for (Unit &each : units)
                if (step(*each.replay)) return true;
            return false;
        };
        for (;;) {
            if (any([](Replay &each) { return each.advance(); }) || any([](Replay &each) { return each.go_on(); })) continue;
            if (!first([](Replay &each) { return each.force(); })) break;
            ++output_.contradictions;
        }
        for (u32 number = 0; number < input_.count; ++number) {
            units[number].replay->end();
            note(units[number]);
            if (input_.of_units) collect(number, units[number]);
        }
    }

    void note(const Unit &unit) {
        u32 status = unit.output.status;
        output_.lane_events += unit.output.lane_events;
        output_.stuck += status == STUCK;
        if (status == CORRUPT || status == FULL) output_.status = status;
    }

    // What a CTA has found in its shared memory.
    void collect(u32 number, const Unit &unit) {
        if (unit.output.status == TOO_MANY) output_.status = TOO_MANY;
        for (u32 i = 0; i < unit.output.records; ++i) {
            if (of_units_ == input_.capacity) {
                output_.status = TOO_MANY;
                return;
            }
            input_.of_units[of_units_] = unit.records[i];
            input_.of_units[of_units_++].unit = number;
        }
    }

    const GridInput &input_;
    GridOutput &output_;
    u32 of_units_ = 0;
    Grid grid_;
    static constexpr u32 MOST = 512;  // findings of a CTA
    std::vector<Record> buffer_;      // for what CTAs find that others report
};
