// R-BAR1: warp-synchronous instructions (points) that some lanes of a warp do not reach. The lists of points of a warp's lanes are processed
// together: a point is done once each member has reached it or has exited. Lanes that remain are stuck, and a divergence is proven if
//   - two lanes are stuck at different points, and each is a member of the other's;
//   - a member has passed a join of the point (instrument/functions/points.py) and has come to it less often: for a point in a device function, the
//     end of the call in which the other lane waits, as both have counted the calls (instrument/functions/call_joins.py);
//   - the point needs the whole warp, and a member has exited.
// Where lanes take values from each other, and some of the warp are gone for ever or not in the mask, the host looks in the text for a use of a
// value of theirs (instrument/between/undefined_values.py): such a point is noted.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "findings.hpp"
#include "effects.hpp"
#include "shape.hpp"

constexpr u32 CALLED = 6;  // of instrument/functions/call_joins.py

class Divergence {
  public:
    Divergence(const Input &input, const Shape &shape, Findings &findings)
        : input_(input), findings_(findings), stops_(shape.threads(), NOTHING), missed_(shape.threads(), NOTHING) {
        for (u32 warp = 0; warp < shape.warps(); ++warp) check(warp * LANES, shape.lanes(warp));
    }

    // Whether the mask of a point lacks the thread that executes it: it is a misuse, and waits for nobody.
    static bool lacks(const effects::PointReached &point, u32 thread) { return lacks(of(point), thread); }

    // Whether the behaviour is undefined from where a thread is now: at its `number`th point, or at the join of one that it missed.
    bool ends_at_point(u32 thread, u32 number) const { return stops_[thread] == number; }
    bool ends_at_join(u32 thread, u32 site) const { return missed_[thread] == site; }

    // Whether no thread has such a point or join.
    bool none() const {
        auto all = [](const std::vector<u32> &each) { return std::all_of(each.begin(), each.end(), [](u32 value) { return value == NOTHING; }); };
        return all(stops_) && all(missed_);
    }

  private:
    struct Point {
        u32 site, members, key, join;
        bool aligned, whole, masked, waits, shuffles;
        size_t call = 0;  // of its function, that this thread had come back from before
        u32 function() const { return join >> CALLED; }
        bool same(const Point &other) const {
            if (masked != other.masked) return false;
            return masked ? key == other.key && members == other.members : site == other.site;
        }
        // shfl, vote, match and redux: what they give for lanes that are missing is undefined, and nothing else is. The others go on.
        bool passable() const { return masked && !waits && !aligned; }
    };
    struct Join {
        u32 site, passes;
    };
    struct Lane {
        std::vector<Point> points;
        std::vector<Join> joins;
        std::map<u32, std::vector<u32>> calls;  // by function: the sites of the joins
        std::set<std::tuple<u32, size_t, u32>> came;  // to a point, in a call
        size_t at = 0;
        bool ended = false, passes = false, cut = false;
        const Point *here() const { return at < points.size() ? &points[at] : nullptr; }
    };

    static bool lacks(const Point &point, u32 thread) { return point.masked && !(point.members >> thread % LANES & 1); }

    void check(u32 first, u32 count) {
        lanes_.assign(count, Lane());
        for (u32 lane = 0; lane < count; ++lane) read(first + lane, lanes_[lane]);
        do {
            for (bool moved = true; moved;) {
                moved = false;
                for (u32 lane = 0; lane < count; ++lane) moved |= work_off(first, lane);
            }
            for (u32 lane = 0; lane < count; ++lane) lanes_[lane].passes = lanes_[lane].here() && look_at(first, lane);
        } while (pass());
    }

    void read(u32 thread, Lane &lane) {
        LaneLog log(input_, thread);
        LaneLog::State state;
        auto is_looked_at = [](const Event &event) { return event.kind == POINT_REACHED || event.kind == JOIN_PASSED; };
        while ((state = log.next(is_looked_at)) == LaneLog::EVENT) {
            if (log.event().kind == POINT_REACHED) come(lane, of(effects::PointReached(log)));
            else pass(lane, effects::JoinPassed(log));
        }
        lane.ended = state == LaneLog::FINISHED, lane.cut = state == LaneLog::CUT;
    }

    static Point of(const effects::PointReached &point) {
        return {point.site(), point.members(), point.key(), point.join(), point.aligned(), point.whole(), point.masked(), point.waits(), point.shuffles()};
    }

    static void pass(Lane &lane, const effects::JoinPassed &join) {
        if (join.called()) lane.calls[join.called()].push_back(join.site());
        else lane.joins.push_back({join.site(), join.passes()});
    }

    void come(Lane &lane, Point point) {
        if (u32 function = point.function()) {
            point.call = lane.calls[function].size();
            lane.came.insert({function, point.call, point.site});
        }
        lane.points.push_back(point);
    }

    bool is_member(const Point &point, u32 lane) const { return point.members >> lane & 1; }
    bool is_at(u32 lane, const Point &point) const { return lanes_[lane].here() && lanes_[lane].here()->same(point); }
    bool has_ended(u32 lane) const { return lanes_[lane].ended && !lanes_[lane].here(); }

    // The site of the first join of the point that the lane has passed; 0 if there is none, or it has come to the point as often as the one that is there.
    u32 past(u32 lane, u32 there, const Point &point) const {
        if (u32 function = point.function()) {
            auto calls = lanes_[lane].calls.find(function);
            bool over = calls != lanes_[lane].calls.end() && point.call < calls->second.size();
            return over && !lanes_[lane].came.count({function, point.call, point.site}) ? calls->second[point.call] : 0;
        }
        for (const Join &join : lanes_[lane].joins)
            if (point.join && join.passes >> (point.join - 1) & 1)
                return comings(lane, point, lanes_[lane].points.size()) < comings(there, point, lanes_[there].at + 1) ? join.site : 0;
        return 0;
    }

    // How often a lane comes to a point in the first so many that it comes to.
    size_t comings(u32 lane, const Point &point, size_t among) const {
        const std::vector<Point> &all = lanes_[lane].points;
        return (size_t)std::count_if(all.begin(), all.begin() + (long)among, [&](const Point &each) { return each.site == point.site; });
    }

    bool work_off(u32 first, u32 lane) {
        const Point *here = lanes_[lane].here();
        if (!here) return false;
        Point point = *here;
        if (lacks(point, lane)) return ++lanes_[lane].at, true;
        u32 there = 0, ended = 0, gone = 0, gone_site = 0;
        for (u32 other = 0; other < lanes_.size(); ++other) {
            if (!is_member(point, other) && other != lane) continue;
            if (is_at(other, point)) {
                there |= 1u << other;
            } else if (has_ended(other)) {
                ended |= 1u << other;
                if (u32 site = past(other, lane, point)) gone |= 1u << other, gone_site = site;
            } else {
                return false;
            }
        }
        if (gone) report(first, point, there, gone_site, gone, 0, PAST);
        if (point.whole && ended & ~gone) report(first, point, there, 0, ended & ~gone, ended & ~gone, EXITED);
        if (point.shuffles && !gone) note(first, point, there);
        for (u32 other = 0; other < lanes_.size(); ++other)
            if (there >> other & 1) ++lanes_[other].at;
        return true;
    }

    // A lane may take the value of one that is gone, or that the mask lacks.
    void note(u32 first, const Point &point, u32 there) {
        u32 gone = 0;
        for (u32 lane = 0; lane < LANES; ++lane)
            if (lane >= lanes_.size() || has_ended(lane)) gone |= 1u << lane;
        if (!(gone | ~point.members) || !noted_.insert({point.site, first, there}).second) return;
        Record found{};
        found.kind = LANES_GONE;
        found.site = point.site;
        found.number = (u32)noted_.size();
        found.thread = first;
        found.came = there;
        found.exited = gone;
        findings_.add(found);
    }

    // Returns whether the lane goes on although other members never come.
    bool look_at(u32 first, u32 lane) {
        const Point &point = *lanes_[lane].here();
        u32 there = 0, odd = 0, odd_site = 0, gone = 0, gone_site = 0;
        bool blamed = false;
        for (u32 other = 0; other < lanes_.size(); ++other) {
            if (!is_member(point, other) && other != lane) continue;
            const Point *elsewhere = lanes_[other].here();
            if (is_at(other, point)) {
                there |= 1u << other;
            } else if (elsewhere && is_member(*elsewhere, lane)) {
                if (elsewhere->passable() && !point.passable()) continue;
                odd |= 1u << other, odd_site = elsewhere->site;
                blamed |= point.site <= odd_site || (point.passable() && !elsewhere->passable());
            } else if (u32 site = lanes_[other].cut ? 0 : past(other, lane, point)) {
                gone |= 1u << other, gone_site = site;
            }
        }
        if (blamed) report(first, point, there, odd_site, odd, 0, ELSEWHERE);
        if (odd) stop_at(first, point, there);
        if (gone) report(first, point, there, gone_site, gone, 0, PAST);
        return point.passable() && (odd || gone);
    }

    bool pass() {
        bool any = false;
        for (Lane &lane : lanes_) any |= lane.passes, lane.at += lane.passes;
        return any;
    }

    void stop_at(u32 first, const Point &point, u32 there) {
        for (u32 lane = 0; lane < lanes_.size(); ++lane)
            if (point.aligned && there >> lane & 1) stops_[first + lane] = std::min(stops_[first + lane], (u32)lanes_[lane].at);
    }

    void report(u32 first, const Point &point, u32 there, u32 site, u32 others, u32 exited, Parted how) {
        stop_at(first, point, there);
        for (u32 lane = 0; how == PAST && point.aligned && lane < lanes_.size(); ++lane)
            if (others >> lane & 1) missed_[first + lane] = site;
        Record found{};
        found.kind = DIVERGENCE;
        found.reason = DIVERGENT;
        found.site = point.site;
        found.other_site = site;
        found.thread = first + (u32)__builtin_ctz(there);
        found.other_thread = first + (u32)__builtin_ctz(others);
        found.exited = exited;
        found.came = there;
        found.others = others;
        found.how = how;
        findings_.add(found);
    }

    const Input &input_;
    Findings &findings_;
    std::vector<Lane> lanes_;
    std::vector<u32> stops_, missed_;
    std::set<std::tuple<u32, u32, u32>> noted_;  // site, first thread of the warp, lanes that came
};
