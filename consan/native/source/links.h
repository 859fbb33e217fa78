// Machine code that is linked at run time: the server gets its parts. ptxas and nvlink are programs that nvcc, Triton and XLA start.
#pragma once

#include "images.h"

static Result input(Result result, Handle linker, const void *data, uint64_t bytes) {
    if (result == 0 && data && bytes <= LONGEST && socket_path()) report(INPUT, (uintptr_t)linker, 0, data, bytes);
    return result;
}

static Result input_file(Result result, Handle linker, const char *path) {
    uint64_t bytes;
    void *data = result == 0 && socket_path() ? mapped(path, &bytes) : NULL;
    if (data == NULL) return result;
    input(result, linker, data, bytes);
    munmap(data, bytes);
    return result;
}

static Result made(Result result, Handle linker, const void *code) {
    if (result != 0 || code == NULL || magic_of(code) != ELF || socket_path() == NULL) return result;
    report(MADE, (uintptr_t)linker, 0, code, bytes_of_code(code));
    return result;
}

static void forget(Handle linker) {
    if (state == CONNECTED) report(MADE, (uintptr_t)linker, 0, NULL, 0);
}

#define DRIVERS_LINKER(version) \
    EXPORTED Result cuLinkAddData##version(Handle linker, int type, void *data, size_t bytes, const char *name, unsigned count, int *options, void **values) { \
        return input(ORIGINAL(cuLinkAddData##version, linker, type, data, bytes, name, count, options, values), linker, data, bytes); \
    } \
    EXPORTED Result cuLinkAddFile##version(Handle linker, int type, const char *path, unsigned count, int *options, void **values) { \
        return input_file(ORIGINAL(cuLinkAddFile##version, linker, type, path, count, options, values), linker, path); \
    }

DRIVERS_LINKER()
DRIVERS_LINKER(_v2)

EXPORTED Result cuLinkComplete(Handle linker, void **code, size_t *bytes) {
    Result result = ORIGINAL(cuLinkComplete, linker, code, bytes);
    return made(result, linker, result == 0 && code ? *code : NULL);
}

EXPORTED Result cuLinkDestroy(Handle linker) {
    forget(linker);
    return ORIGINAL(cuLinkDestroy, linker);
}

#define LIBRARYS_LINKER(prefix, version) \
    EXPORTED Result prefix##AddData##version(Handle linker, int type, const void *data, size_t bytes, const char *name) { \
        CALLERS(prefix##AddData##version); \
        return input(CALLED(own, linker, type, data, bytes, name), linker, data, bytes); \
    } \
    EXPORTED Result prefix##AddFile##version(Handle linker, int type, const char *path) { \
        CALLERS(prefix##AddFile##version); \
        return input_file(CALLED(own, linker, type, path), linker, path); \
    } \
    EXPORTED Result prefix##GetLinkedCubin##version(Handle linker, void *code) { \
        CALLERS(prefix##GetLinkedCubin##version); \
        return made(CALLED(own, linker, code), linker, code); \
    } \
    EXPORTED Result prefix##Destroy##version(Handle *linker) { \
        CALLERS(prefix##Destroy##version); \
        if (linker) forget(*linker); \
        return CALLED(own, linker); \
    }
#define LIBRARYS_VERSION(prefix, version) LIBRARYS_LINKER(prefix, _##version)

LIBRARYS_LINKER(nvJitLink, )
JIT_LINK_VERSIONS(LIBRARYS_VERSION, __nvJitLink)

// nvPTXCompiler has no shared form. A library that it is linked into calls it as any function, unless its symbols are hidden there.

EXPORTED Result nvPTXCompilerCreate(Handle *compiler, size_t bytes, const char *ptx) {
    CALLERS(nvPTXCompilerCreate);
    Result result = CALLED(own, compiler, bytes, ptx);
    return input(result, result == 0 && compiler ? *compiler : NULL, ptx, bytes);
}

EXPORTED Result nvPTXCompilerGetCompiledProgram(Handle compiler, void *code) {
    CALLERS(nvPTXCompilerGetCompiledProgram);
    return made(CALLED(own, compiler, code), compiler, code);
}

EXPORTED Result nvPTXCompilerDestroy(Handle *compiler) {
    CALLERS(nvPTXCompilerDestroy);
    if (compiler) forget(*compiler);
    return CALLED(own, compiler);
}

// The tools: the files that they read, and the one that they write.

struct Words {
    int count;
    char **words;
};

// Whether a word names the output; `next`: it is the word behind.
static const char *output_of(const char *word, const char *next) {
    if (strcmp(word, "-o") == 0 || strcmp(word, "--output-file") == 0) return next;
    return strncmp(word, "--output-file=", strlen("--output-file=")) == 0 ? strchr(word, '=') + 1 : NULL;
}

static void tool_ends(int status, void *given) {
    struct Words *with = given;
    const char *output = NULL;
    uint64_t bytes;
    for (int i = 1; status == 0 && i < with->count; i++) {
        const char *word = with->words[i], *next = i + 1 < with->count ? with->words[i + 1] : NULL, *named = output_of(word, next);
        if (named) output = named, i += named == next;
        else if (*word != '-') input_file(0, with, word);
    }
    void *code = output ? mapped(output, &bytes) : NULL;
    if (code) made(0, with, code), munmap(code, bytes);
}

__attribute__((constructor)) static void follow_tool(int count, char **words) {
    static struct Words with;
    const char *name = program_invocation_short_name;
    with = (struct Words){count, words};
    if (socket_path() && (strcmp(name, "ptxas") == 0 || strcmp(name, "nvlink") == 0)) on_exit(tool_ends, &with);
}
