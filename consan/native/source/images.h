// Images, and the names of the kernels in them: which kernel a handle is, and from which module.
#pragma once

#include "endings.h"

#define FATBIN_WRAPPER 0x466243b1u
#define FATBIN 0xba55ed50u
#define ELF 0x464c457fu

struct Offer {
    const void *image;  // what to hand to the driver instead; NULL: what the program gave
    uint64_t id;
};
static _Atomic bool records;  // kernels of the program are recorded: each of their launches needs a log, so the server is asked

static uint32_t magic_of(const void *image) {
    uint32_t magic;
    memcpy(&magic, image, sizeof magic);
    return magic;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

// Machine code's bytes, as far as its headers reach; the driver gets no length.
static uint64_t bytes_of_code(const void *image) {
    Elf64_Ehdr head;
    Elf64_Shdr section;
    memcpy(&head, image, sizeof head);
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shoff > LONGEST || head.e_phoff > LONGEST) return 0;
    uint64_t end = larger(head.e_shoff + (uint64_t)head.e_shnum * sizeof section, head.e_phoff + (uint64_t)head.e_phnum * head.e_phentsize);
    for (unsigned i = 0; head.e_shentsize == sizeof section && i < head.e_shnum; i++) {
        memcpy(&section, (const char *)image + head.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_NOBITS && section.sh_offset <= LONGEST && section.sh_size <= LONGEST) end = larger(end, section.sh_offset + section.sh_size);
    }
    return end > LONGEST ? 0 : end;
}

// Whether all that machine code's headers name lies within its bytes: the driver believes them.
static bool whole_code(const void *image, uint64_t length) {
    Elf64_Ehdr head;
    if (length < sizeof head || magic_of(image) != ELF) return false;
    memcpy(&head, image, sizeof head);
    if (head.e_shoff > length || (length - head.e_shoff) / sizeof(Elf64_Shdr) < head.e_shnum) return false;
    uint64_t bytes = bytes_of_code(image);
    return bytes > 0 && bytes <= length;
}

static uint64_t bytes_of_fatbin(const void *image) {
    uint16_t head;
    uint64_t rest;
    memcpy(&head, (const char *)image + 6, sizeof head);
    memcpy(&rest, (const char *)image + 8, sizeof rest);
    return magic_of(image) != FATBIN || rest > LONGEST ? 0 : head + rest;
}

// An image's bytes. The server may know machine code: by what it was linked or assembled from.
static uint64_t bytes_of(const void *image) {
    if (*(const char *)image == 0) return 0;
    if (memchr(image, 0, sizeof(uint32_t))) return strlen(image);
    if (magic_of(image) == ELF) return bytes_of_code(image);
    return magic_of(image) == FATBIN ? bytes_of_fatbin(image) : strlen(image);
}

struct Wrapper {  // of the fat binaries in a program: one, or (version 2, -rdc=true) also those that were linked to it
    uint32_t magic, version;
    const void *data, *const *linked;
};

// The fat binaries of a wrapper, one behind the other, which are the caller's to free.
static char *unwrapped(const struct Wrapper *wrapper, uint64_t *bytes) {
    const void *const none[] = {NULL}, *const *linked = wrapper->version == 2 && wrapper->linked ? wrapper->linked : none;
    *bytes = wrapper->data ? bytes_of_fatbin(wrapper->data) : 0;
    for (size_t i = 0; linked[i]; i++) *bytes = (*bytes + 7) / 8 * 8 + bytes_of_fatbin(linked[i]);
    char *all = *bytes > LONGEST ? NULL : calloc(1, *bytes + 1);
    if (all == NULL) return NULL;
    uint64_t at = wrapper->data ? bytes_of_fatbin(wrapper->data) : 0;
    if (at) memcpy(all, wrapper->data, at);
    for (size_t i = 0; linked[i]; i++) {
        at = (at + 7) / 8 * 8;
        memcpy(all + at, linked[i], bytes_of_fatbin(linked[i]));
        at += bytes_of_fatbin(linked[i]);
    }
    return all;
}

static uint64_t context(void) {
    static _Atomic(void *) found;
    void *current = NULL;
    Result (*get)(void **) = found_once(&found, "cuCtxGetCurrent");
    return get && get(&current) == 0 ? (uintptr_t)current : 0;
}

static struct Offer exchanged(const void *image, uint64_t bytes, bool library) {
    struct Offer offer = {NULL, 0};
    struct Head head;
    char *answer;
    if (bytes == 0 || !ask(IMAGE, context(), library, image, bytes, &head, &answer)) return offer;
    if (!whole_code(answer, head.length)) {
        if (head.length) fputs("consan: error: the consan process has sent what is no machine code; a module is not checked\n", stderr);
        return free(answer), offer;
    }
    if (head.b) atomic_store(&records, true);
    offer.image = answer;
    offer.id = head.a;
    return offer;
}

static struct Offer offer_of(const void *image, bool library) {
    struct Wrapper wrapper;
    uint64_t bytes;
    if (image == NULL) return (struct Offer){NULL, 0};
    if (*(const char *)image == 0 || magic_of(image) != FATBIN_WRAPPER) return exchanged(image, bytes_of(image), library);
    memcpy(&wrapper, image, sizeof wrapper);
    char *all = unwrapped(&wrapper, &bytes);
    struct Offer offer = exchanged(all, all ? bytes : 0, library);
    free(all);
    return offer;
}

// A file's bytes, until they are unmapped; NULL if it cannot be read.
static void *mapped(const char *path, uint64_t *bytes) {
    struct stat about;
    void *data = MAP_FAILED;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0 && fstat(fd, &about) == 0 && about.st_size > (off_t)sizeof(Elf64_Ehdr) && (uint64_t)about.st_size < LONGEST)
        data = mmap(NULL, *bytes = (uint64_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0) close(fd);
    return data == MAP_FAILED ? NULL : data;
}

static struct Offer offer_of_file(const char *path, bool library) {
    uint64_t bytes;
    void *data = mapped(path, &bytes);
    if (data == NULL) return (struct Offer){NULL, 0};
    struct Offer offer = exchanged(data, bytes, library);
    munmap(data, bytes);
    return offer;
}

static Result adopted(struct Offer offer, Result result, Handle *made, bool library) {
    if (result == 0 && made) {
        uint64_t about[] = {(uintptr_t)*made, library};
        report(LOADED, offer.id, context(), about, sizeof about);
    }
    return result;
}

// Load the exchanged image; if the driver refuses it, the program's own.
#define LOAD(offered, library, made, with_other, with_own) \
    struct Offer offer = {NULL, 0}; \
    if (!is_of_cudnn(__builtin_return_address(0))) offer = offered; \
    if (offer.image) { \
        Result result = with_other; \
        if (result == 0) return adopted(offer, result, made, library); \
        report(REFUSED, offer.id, (uint64_t)result, NULL, 0); \
    } \
    return with_own

EXPORTED Result cuModuleLoadData(Handle *module, const void *image) {
    LOAD(offer_of(image, false), false, module, ORIGINAL(cuModuleLoadData, module, offer.image), ORIGINAL(cuModuleLoadData, module, image));
}

EXPORTED Result cuModuleLoadDataEx(Handle *module, const void *image, unsigned count, int *options, void **values) {
    LOAD(offer_of(image, false), false, module, ORIGINAL(cuModuleLoadDataEx, module, offer.image, count, options, values),
         ORIGINAL(cuModuleLoadDataEx, module, image, count, options, values));
}

EXPORTED Result cuModuleLoadFatBinary(Handle *module, const void *image) {
    LOAD(offer_of(image, false), false, module, ORIGINAL(cuModuleLoadData, module, offer.image), ORIGINAL(cuModuleLoadFatBinary, module, image));
}

EXPORTED Result cuModuleLoad(Handle *module, const char *path) {
    LOAD(offer_of_file(path, false), false, module, ORIGINAL(cuModuleLoadData, module, offer.image), ORIGINAL(cuModuleLoad, module, path));
}

EXPORTED Result cuLibraryLoadData(Handle *library, const void *code, int *jit, void **jit_values, unsigned jits, int *options, void **values, unsigned count) {
    LOAD(offer_of(code, true), true, library, ORIGINAL(cuLibraryLoadData, library, offer.image, jit, jit_values, jits, options, values, count),
         ORIGINAL(cuLibraryLoadData, library, code, jit, jit_values, jits, options, values, count));
}

EXPORTED Result cuLibraryLoadFromFile(Handle *library, const char *path, int *jit, void **jit_values, unsigned jits, int *options, void **values,
                                      unsigned count) {
    LOAD(offer_of_file(path, true), true, library, ORIGINAL(cuLibraryLoadData, library, offer.image, jit, jit_values, jits, options, values, count),
         ORIGINAL(cuLibraryLoadFromFile, library, path, jit, jit_values, jits, options, values, count));
}

EXPORTED Result cuModuleUnload(Handle module) {
    report(UNLOADED, (uintptr_t)module, 0, NULL, 0);
    return ORIGINAL(cuModuleUnload, module);
}

EXPORTED Result cuLibraryUnload(Handle library) {
    report(UNLOADED, (uintptr_t)library, 0, NULL, 0);
    return ORIGINAL(cuLibraryUnload, library);
}

static Result found(Result result, Handle *made, Handle from, const char *name) {
    if (result == 0 && made) report(FOUND, (uintptr_t)*made, (uintptr_t)from, name, name ? strnlen(name, LONGEST) : 0);
    return result;
}

static Result found_all(Result result, Handle *made, unsigned count, Handle from) {
    for (unsigned i = 0; result == 0 && made && i < count; i++) found(result, &made[i], from, NULL);
    return result;
}

EXPORTED Result cuModuleGetFunction(Handle *function, Handle module, const char *name) {
    return found(ORIGINAL(cuModuleGetFunction, function, module, name), function, module, name);
}

EXPORTED Result cuLibraryGetKernel(Handle *kernel, Handle library, const char *name) {
    return found(ORIGINAL(cuLibraryGetKernel, kernel, library, name), kernel, library, name);
}

EXPORTED Result cuKernelGetFunction(Handle *function, Handle kernel) { return found(ORIGINAL(cuKernelGetFunction, function, kernel), function, kernel, NULL); }

EXPORTED Result cuLibraryGetModule(Handle *module, Handle library) { return found(ORIGINAL(cuLibraryGetModule, module, library), module, library, NULL); }

EXPORTED Result cuModuleEnumerateFunctions(Handle *functions, unsigned count, Handle module) {
    return found_all(ORIGINAL(cuModuleEnumerateFunctions, functions, count, module), functions, count, module);
}

EXPORTED Result cuLibraryEnumerateKernels(Handle *kernels, unsigned count, Handle library) {
    return found_all(ORIGINAL(cuLibraryEnumerateKernels, kernels, count, library), kernels, count, library);
}
