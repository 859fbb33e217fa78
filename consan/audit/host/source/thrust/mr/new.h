// In place of thrust's: the memory of its vectors for the device comes from the runtime, so that kernels reach it.
#pragma once
#include <thrust/mr/memory_resource.h>

extern "C" {
void *consan_allocate(size_t bytes);
void consan_release(void *address);
}

THRUST_NAMESPACE_BEGIN
namespace mr {
class new_delete_resource_base : public memory_resource<> {
  public:
    void *do_allocate(std::size_t bytes, std::size_t = THRUST_MR_DEFAULT_ALIGNMENT) override {
        void *address = consan_allocate(bytes ? bytes : 1);
        return address != nullptr ? address : throw std::bad_alloc();
    }
    void do_deallocate(void *address, std::size_t, std::size_t = THRUST_MR_DEFAULT_ALIGNMENT) override { consan_release(address); }
};

class new_delete_resource final : public new_delete_resource_base {};
} // namespace mr
THRUST_NAMESPACE_END
