// mbarriers and bulk copies for the kernels of twins/ and clean/. Macros, so that a finding names the line that uses one.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u32 shared(const volatile void* p) { return (u32)__cvta_generic_to_shared(const_cast<const void*>(p)); }

#define INIT(bar, count) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared(bar)), "r"(count) : "memory")
#define INVAL(bar) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(shared(bar)) : "memory")

// Arrivals: of one, of several, with a token of the phase, without order, for good, with bytes to come, and of bytes alone.
#define ARRIVE(bar) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared(bar)) : "memory")
#define ARRIVE_COUNT(bar, count) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" :: "r"(shared(bar)), "r"(count) : "memory")
#define ARRIVE_TOKEN(token, bar) asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(shared(bar)) : "memory")
#define ARRIVE_RELAXED(bar) asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" :: "r"(shared(bar)) : "memory")
#define ARRIVE_DROP(bar) asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0];" :: "r"(shared(bar)) : "memory")
#define ARRIVE_NO_COMPLETE(token, bar, count) \
    asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], %2;" : "=l"(token) : "r"(shared(bar)), "r"(count) : "memory")
#define ARRIVE_EXPECT(bar, bytes) \
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(shared(bar)), "r"((u32)(bytes)) : "memory")
#define EXPECT_TX(bar, bytes) \
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(shared(bar)), "r"((u32)(bytes)) : "memory")
#define COMPLETE_TX(bar, bytes) \
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(shared(bar)), "r"((u32)(bytes)) : "memory")

// One attempt; `form` is `try_wait.parity`, `test_wait`, `try_wait.parity.relaxed.cta` and so on, `phase` a parity or a token.
#define ATTEMPT(done, form, bar, constraint, phase) \
    asm volatile("{ .reg .pred p; mbarrier." form ".shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" \
                 : "=r"(done) : "r"(shared(bar)), constraint(phase) : "memory")
#define WAIT_AS(form, bar, constraint, phase) do { u32 done_; do { ATTEMPT(done_, form, bar, constraint, phase); } while (!done_); } while (0)
#define WAIT(bar, parity) WAIT_AS("try_wait.parity", bar, "r", (u32)(parity))
#define WAIT_RELAXED(bar, parity) WAIT_AS("try_wait.parity.relaxed.cta", bar, "r", (u32)(parity))
#define WAIT_TOKEN(bar, token) WAIT_AS("try_wait", bar, "l", token)
#define POLL(bar, parity) WAIT_AS("test_wait.parity", bar, "r", (u32)(parity))
#define POLL_TOKEN(bar, token) WAIT_AS("test_wait", bar, "l", token)
// Gives up after a while: for barriers that a fault may leave in any phase.
#define POLL_A_WHILE(bar, parity) \
    do { u32 done_ = 0; for (int i_ = 0; i_ < 100 && !done_; i_++) ATTEMPT(done_, "test_wait.parity", bar, "r", (u32)(parity)); } while (0)

#define BULK_LOAD(to, from, bytes, bar) \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" \
                 :: "r"(shared(to)), "l"(__cvta_generic_to_global(from)), "r"((u32)(bytes)), "r"(shared(bar)) : "memory")
#define COPY16(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")
#define COPIES_ARRIVE(bar) asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" :: "r"(shared(bar)) : "memory")
#define COPIES_ARRIVE_NOINC(bar) asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(shared(bar)) : "memory")

#define FENCE() asm volatile("fence.acq_rel.cta;" ::: "memory")
#define FENCE_PROXY() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
