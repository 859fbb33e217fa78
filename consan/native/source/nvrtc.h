// NVRTC: a program that asks for machine code gets PTX, which the driver takes in its place.
#pragma once

#include "images.h"

#define KEPT 256
static _Atomic(Handle) for_linker[KEPT];  // programs whose machine code is linked: PTX is no input for that

static bool is_one_of(const char *option, const char *const *known) {
    for (; *known; known++)
        if (strcmp(option, *known) == 0) return true;
    return false;
}

static bool any_option(int count, const char *const *options, const char *const *known) {
    for (int i = 0; i < count; i++)
        if (options[i] && is_one_of(options[i], known)) return true;
    return false;
}

EXPORTED Result nvrtcCompileProgram(Handle program, int count, const char *const *options) {
    static const char *const lines[] = {"-lineinfo", "--generate-line-info", "-G", "--device-debug", NULL};
    static const char *const linker[] = {"-dc", "--device-c", "-rdc=true", "--relocatable-device-code=true", "-dlto", "--dlink-time-opt", NULL};
    CALLERS(nvrtcCompileProgram);
    const char **more = socket_path() && count >= 0 && !is_of_cudnn(__builtin_return_address(0)) ? calloc((size_t)count + 1, sizeof *more) : NULL;
    if (more == NULL) return CALLED(own, program, count, options);
    atomic_store(&for_linker[((uintptr_t)program >> 4) % KEPT], any_option(count, options, linker) ? program : NULL);
    for (int i = 0; i < count; i++) more[i] = options[i];
    bool added = !any_option(count, options, lines);
    more[count] = "-lineinfo";
    Result result = CALLED(own, program, count + added, more);
    if (result != 0 && added) result = CALLED(own, program, count, options);  // a program can be compiled again: this is its own call
    free(more);
    return result;
}

static bool is_linked_later(Handle program) { return atomic_load(&for_linker[((uintptr_t)program >> 4) % KEPT]) == program; }

// A function of the NVRTC that a function lies in.
static void *of_nvrtc(void *function, const char *name) {
    Dl_info library;
    void *handle = dladdr(function, &library) ? dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    return handle ? finder()(handle, name) : NULL;
}

// NVRTC's function for PTX, if the program's machine code is not empty and PTX can take its place.
static void *ptx_instead(Handle program, void *caller, const char *name) {
    size_t bytes = 0;
    void *own = callers(AT_nvrtcGetCUBINSize, caller);
    if (socket_path() == NULL || is_linked_later(program) || is_of_cudnn(caller)) return NULL;
    if (CALLED(own, program, &bytes) != 0 || bytes == 0) return NULL;
    return of_nvrtc(own, name);
}

EXPORTED Result nvrtcGetCUBINSize(Handle program, size_t *bytes) {
    CALLERS(nvrtcGetCUBINSize);
    Result (*instead)(Handle, size_t *) = ptx_instead(program, __builtin_return_address(0), "nvrtcGetPTXSize");
    return instead && instead(program, bytes) == 0 ? 0 : CALLED(own, program, bytes);
}

// Machine code for a linker is known by its PTX, as if a linker had made it.
static Result made_by_nvrtc(Result result, void *own, Handle program, const char *code) {
    Result (*size)(Handle, size_t *) = of_nvrtc(own, "nvrtcGetPTXSize"), (*get)(Handle, char *) = of_nvrtc(own, "nvrtcGetPTX");
    size_t bytes = 0;
    char *ptx = result == 0 && size && get && size(program, &bytes) == 0 ? malloc(bytes + 1) : NULL;
    if (ptx && get(program, ptx) == 0) made(input(result, program, ptx, bytes), program, code), forget(program);
    free(ptx);
    return result;
}

EXPORTED Result nvrtcGetCUBIN(Handle program, char *code) {
    CALLERS(nvrtcGetCUBIN);
    Result (*instead)(Handle, char *) = ptx_instead(program, __builtin_return_address(0), "nvrtcGetPTX");
    if (instead) return instead(program, code);
    Result result = CALLED(own, program, code);
    return socket_path() && is_linked_later(program) ? made_by_nvrtc(result, own, program, code) : result;
}
