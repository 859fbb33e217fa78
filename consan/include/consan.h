// Annotations for synchronisation that no rule of consan can see. They are comments of PTX: nothing at run time, also where consan is absent.
// An access stays on its side of them, since they are `volatile` and clobber memory. Needs no other header.
#pragma once

// What this thread has done so far comes before what follows a later consan_acquire of the same address, in any thread of the launch.
// Put it before the store that lets the other thread go on. `address` names the order; nothing is read or written there.
static __device__ __forceinline__ void consan_release(const volatile void* address) {
    asm volatile("// consan_release [%0];" ::"l"(address) : "memory");
}

// The other side of it. Put it behind the load, or the loop, that has seen the other thread's store.
static __device__ __forceinline__ void consan_acquire(const volatile void* address) {
    asm volatile("// consan_acquire [%0];" ::"l"(address) : "memory");
}

// Loads, stores and atomics between the two, in the order of the text, are compared with no others: races that are meant to be.
// Each begin needs its end in the same function.
static __device__ __forceinline__ void consan_ignore_begin() { asm volatile("// consan_ignore_begin;" ::: "memory"); }
static __device__ __forceinline__ void consan_ignore_end() { asm volatile("// consan_ignore_end;" ::: "memory"); }
