// Which rule an event goes to: on(thread, effect, released) of one of the files *_rules.hpp. A handler returns whether the thread continues at once.
#pragma once

#include "operation_rules.hpp"

class Rules : protected OperationRules {
    friend class Turns<Rules>;

  protected:
    Rules(const Input &input, Output &output, Grid *grid, u32 cluster) : OperationRules(input, output, grid, cluster, *this) {}

    void exit(u32 thread, std::vector<u32> &released) {
        copies_.exit(thread);
        seals_.exit(thread);
        convergence_.exit(thread, released);
        barriers(thread).exit(thread, released);
        warp_barriers_.exit(thread, released);
        cluster_barrier_.exit(thread, released);
    }

    static constexpr bool releases(i32 kind) { return kind == MBARRIER_ARRIVE || kind == CTA_BARRIER || kind == CLUSTER_BARRIER_ARRIVE; }

    // Who stands still while a thread waits at an event (holds.hpp).
    Holder waits(u32 thread, const Event &event) const {
        if (event.kind == OBSERVE) return part_.in_shared_memory(thread) ? Holder::WARP : Holder::CTA;
        bool mbarrier = event.kind == MBARRIER_WAIT || event.kind == MBARRIER_ARRIVE || event.kind == MBARRIER_COPIES;
        return mbarrier ? Holder::WARP : Holder::NOBODY;
    }
    bool begun(u32 thread) const { return part_.begun(thread); }

    using OperationRules::on;
    // Families of effects: those of mbarriers, of tensor memory, and all other operations.
    template <typename E> bool on(u32 thread, const E &effect, Released &released) {
        static_assert(E::asynchronous || E::mbarrier || E::kind == LAUNCH_ANSWER || E::kind == LAUNCH_USE, "an effect that no rule takes");
        if constexpr (E::mbarrier) return mbarrier(thread, effect, released);
        else if constexpr (E::tensor_memory) return tensor(thread, effect, released);
        else return operation(thread, effect, released);
    }

    // Returns whether the thread continues at once.
    bool handle(u32 thread, LaneLog &log, Released &released) {
        return effects::dispatch(log, [&](const auto &effect) {
            if (releases(effect.kind) && !turns_.forced() && !asynchronous_.together(thread)) return turns_.park(thread);
            return on(thread, effect, released);
        });
    }
};
