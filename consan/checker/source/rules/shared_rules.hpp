// Accesses to shared memory, and cp.async (SEMANTICS 2, 4.1).
#pragma once

#include "milestones.hpp"

class SharedRules : protected Milestones {
  protected:
    SharedRules(const Input &input, Output &output, Grid *grid, u32 cluster, Rules &rules)
        : Milestones(input, output, grid, cluster, rules), looked_(shape_.threads(), 0) {}

    bool on(u32 thread, const effects::Read &read, Released &) { return access(thread, read, true, false); }
    bool on(u32 thread, const effects::Write &write, Released &) { return access(thread, write, false, true); }
    bool on(u32 thread, const effects::Atomic &atomic, Released &) { return access(thread, atomic, true, true); }
    bool on(u32 thread, const effects::Fill &fill, Released &) {
        if (!part_.alone()) compare(access_of(thread, fill), fill.ignored());
        return true;
    }
    bool on(u32 thread, const effects::CopyIssue &copy, Released &) {
        if (copy.has_source()) part_.copy(thread, copy, asynchronous_);
        issue(thread, copy);
        return true;
    }
    bool on(u32 thread, const effects::CopyCommit &, Released &) { return copies_.commit(thread), true; }
    bool on(u32 thread, const effects::CopyWait &wait, Released &) {
        barriers(thread).touch(thread);
        copies_.wait(thread, wait.pending());
        return true;
    }

    // A strong load of data comes next, and has observed nothing yet (R-MO1). Its pieces follow each other.
    void look(u32 thread, LaneLog log) {
        if (part_.alone() || log.event().flags & IGNORED) return;
        looked_[thread] = 0;
        auto is_load = [](const Event &event) { return event.kind == READ || event.kind == OBSERVE || event.kind == PUBLISH; };
        while (log.next(is_load) == LaneLog::EVENT && log.event().kind == READ) {
            Access access = access_of(thread, effects::Read(log), true, false);
            if (access.data && shape_.holds(access.offset, access.bytes)) races_.look(access), ++looked_[thread];
        }
    }

    // A look at a flag in shared memory comes next, and has observed nothing yet.
    template <typename F> void on_next(u32 thread, LaneLog log, F f) {
        auto is_look = [](const Event &event) { return event.kind == READ || event.kind == ATOMIC || event.kind == PUBLISH; };
        if (part_.alone() || log.event().flags & IGNORED || log.next(is_look) != LaneLog::EVENT || log.event().kind == PUBLISH) return;
        bool load = log.event().kind == READ;
        Access access = load ? access_of(thread, effects::Read(log), true, false) : access_of(thread, effects::Atomic(log), true, true);
        if (shape_.holds(access.offset, access.bytes)) f(access);
    }

  private:
    bool access(u32 thread, const effects::SharedAccess &given, bool reads, bool writes) {
        if (part_.alone() || thread % LANES >= given.lanes()) return true;
        Access access = access_of(thread, given, reads, writes);
        if (access.strong && access.writes) access.flag = part_.strong_at(thread, given.at());
        if (access.data && !access.writes && looked_[thread]) access.looked = true, --looked_[thread];
        compare(access, given.ignored());
        return true;
    }

    void compare(const Access &access, bool ignored) {
        if (ignored) ignore(access);
        else add(access);
    }

    void issue(u32 thread, const effects::CopyIssue &copy) {
        Access access{};
        access.thread = thread;
        access.site = copy.site();
        access.offset = shape_.place(copy.at(), thread, false);
        access.bytes = access.element = (u8)copy.bytes();
        access.writes = true;
        if (!bounds_.holds(access)) return;
        barriers(thread).touch(thread);
        if (mbarriers_.data(access)) return;
        asynchronous_.access(access, true);
        access.has_value = copy.has_source() && copy.reads() >= copy.bytes(), access.value = copy.has_source() ? (u32)copy.source() - access.offset : 0;
        copies_.issue(access, copy.reads());
        if (!copy.has_source()) seals_.copy(thread);
        initialised_.add(access);
    }

    std::vector<u32> looked_;  // by thread: loads of data that were compared before they observed
};
