// Operations of asynchronous proxies, tensor memory, launch control (SEMANTICS 4.2 to 4.4): when they can have been executed.
#pragma once

#include "mbarrier_rules.hpp"

class OperationRules : protected MbarrierRules {
  protected:
    using MbarrierRules::MbarrierRules;
    using MbarrierRules::on;

    bool on(u32, const effects::ProductFence &, Released &) { return true; }  // it orders registers
    template <typename E> bool operation(u32 thread, const E &effect, Released &released) {
        if (!turns_.forced() && !asynchronous_.ready(thread, effect)) return turns_.park(thread);
        barriers(thread).touch(thread);
        if constexpr (global_operands::has_one(E::kind)) part_.copy(thread, effect, asynchronous_);
        output_.by_address |= asynchronous_.handle(thread, effect, released);
        if (E::kind == PRODUCT_COMMIT) turns_.release_parked(released);
        return true;
    }

    template <typename E> bool tensor(u32 thread, const E &effect, Released &released) {
        if (!turns_.forced() && !tensor_.ready(thread, effect)) return turns_.park(thread);
        barriers(thread).touch(thread);
        tensor_.handle(thread, effect, released);
        if (E::kind == TENSOR_ALLOC_REQUEST) turns_.release_parked(released);
        return true;
    }
};
