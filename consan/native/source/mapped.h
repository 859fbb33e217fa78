// Calls that map memory of another process or GPU, or let another process map this one's. They may come before the first image.
#pragma once

#include "streams.h"

struct IpcHandle {  // CUipcMemHandle, which is given by its value
    char bytes[64];
};

#define MAPPING(name, parameters, ...) \
    EXPORTED Result name parameters { \
        follow_early(); \
        return ORIGINAL(name, __VA_ARGS__); \
    }

MAPPING(cuIpcOpenMemHandle, (uint64_t *made, struct IpcHandle handle, unsigned flags), made, handle, flags)
MAPPING(cuIpcOpenMemHandle_v2, (uint64_t *made, struct IpcHandle handle, unsigned flags), made, handle, flags)
MAPPING(cuIpcGetMemHandle, (void *made, uint64_t memory), made, memory)
MAPPING(cuMemMap, (uint64_t at, size_t bytes, size_t offset, uint64_t handle, uint64_t flags), at, bytes, offset, handle, flags)
MAPPING(cuMemImportFromShareableHandle, (uint64_t *made, void *from, int type), made, from, type)
MAPPING(cuMemExportToShareableHandle, (void *made, uint64_t handle, int type, uint64_t flags), made, handle, type, flags)
MAPPING(cuMulticastCreate, (uint64_t *made, const void *about), made, about)
MAPPING(cuMulticastBindMem, (uint64_t object, size_t at, uint64_t handle, size_t offset, size_t bytes, uint64_t flags), object, at, handle, offset, bytes,
        flags)
MAPPING(cuMulticastBindAddr, (uint64_t object, size_t at, uint64_t memory, size_t bytes, uint64_t flags), object, at, memory, bytes, flags)
MAPPING(cuMemRetainAllocationHandle, (uint64_t *made, void *at), made, at)
MAPPING(cuMemGetHandleForAddressRange, (void *made, uint64_t memory, size_t bytes, int type, uint64_t flags), made, memory, bytes, type, flags)
MAPPING(cuMemPoolImportPointer, (uint64_t *made, Handle pool, void *from), made, pool, from)
MAPPING(cuMemPoolExportPointer, (void *made, uint64_t memory), made, memory)
MAPPING(cuCtxEnablePeerAccess, (Handle other, unsigned flags), other, flags)
