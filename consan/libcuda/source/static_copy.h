// Programs and libraries that hold a static copy of the CUDA runtime, which works with NVIDIA's own driver only: it asks for tables that no
// manual describes. So each of its functions, by the symbol table of its file, gets a jump to the one of this library.
//
// Not handled: files that are stripped of their symbol table, and libraries that are loaded later (but for those that Python takes over).
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    const ElfW(Sym) * symbols;
    size_t count;
    const char *names;
    uintptr_t base;
} symbol_table;

#if defined(__x86_64__)
enum { ADDRESS_AT = 2 };  // mov rax, address; jmp rax
static const unsigned char jump[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
#else
enum { ADDRESS_AT = 8 };  // ldr x16, address; br x16
static const unsigned char jump[] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6, 0, 0, 0, 0, 0, 0, 0, 0};
#endif

static void redirect(uintptr_t at, void *to) {
    uintptr_t page = at & -(uintptr_t)sysconf(_SC_PAGESIZE);
    size_t bytes = at + sizeof jump - page;
    if (mprotect((void *)page, bytes, PROT_READ | PROT_WRITE | PROT_EXEC)) return;
    memcpy((void *)at, jump, sizeof jump);
    memcpy((void *)(at + ADDRESS_AT), &to, sizeof to);
    __builtin___clear_cache((char *)at, (char *)at + sizeof jump);
    mprotect((void *)page, bytes, PROT_READ | PROT_EXEC);
}

static void *served(const char *name) {
    for (size_t at = 0; at < sizeof functions / sizeof *functions; ++at)
        if (strcmp(functions[at].name, name) == 0) return functions[at].function;
    return NULL;
}

// The place of a function that may belong to a copy; else 0.
static uintptr_t place_of(const symbol_table *table, size_t at) {
    const ElfW(Sym) *symbol = &table->symbols[at];
    const char *name = table->names + symbol->st_name;
    int is_small = symbol->st_size && symbol->st_size < sizeof jump;
    if (!symbol->st_value || symbol->st_shndx == SHN_UNDEF || is_small) return 0;
    return strncmp(name, "cuda", 4) == 0 || strncmp(name, "__cuda", 6) == 0 ? table->base + symbol->st_value : 0;
}

// A copy is one piece of code: what lies among functions that are served and has such a name is one of its functions, too.
static int redirect_all(const symbol_table *table) {
    uintptr_t first = UINTPTR_MAX, last = 0;
    int count = 0;
    for (size_t at = 0; at < table->count; ++at) {
        uintptr_t place = place_of(table, at);
        if (!place || !served(table->names + table->symbols[at].st_name)) continue;
        first = place < first ? place : first;
        last = place > last ? place : last;
    }
    for (size_t at = 0; at < table->count; ++at) {
        uintptr_t place = place_of(table, at);
        if (!place || place < first || place > last) continue;
        const char *name = table->names + table->symbols[at].st_name;
        void *to = served(name);
        to = to ? to : unserved(name);
        if (!to) continue;
        redirect(place, to);
        ++count;
    }
    return count;
}

static int in_image(const char *image, uintptr_t base) {
    const ElfW(Ehdr) *head = (const void *)image;
    const ElfW(Shdr) *sections = (const void *)(image + head->e_shoff);
    for (size_t at = 0; head->e_shoff && at < head->e_shnum; ++at) {
        const ElfW(Shdr) *each = &sections[at];
        if (each->sh_type != SHT_SYMTAB) continue;
        const symbol_table table = {(const void *)(image + each->sh_offset), each->sh_size / sizeof(ElfW(Sym)), image + sections[each->sh_link].sh_offset,
                                    base};
        return redirect_all(&table);
    }
    return 0;
}

static int in_file(const char *path, uintptr_t base) {
    struct stat facts;
    int file = open(path, O_RDONLY | O_CLOEXEC), count = 0;
    if (file < 0) return 0;
    if (!fstat(file, &facts) && (size_t)facts.st_size > sizeof(ElfW(Ehdr))) {
        char *image = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (image != MAP_FAILED) {
            if (memcmp(image, ELFMAG, SELFMAG) == 0) count = in_image(image, base);
            munmap(image, (size_t)facts.st_size);
        }
    }
    close(file);
    return count;
}

struct wanted {
    const char *file;
    int count;
};

static int in_object(struct dl_phdr_info *object, size_t bytes, void *data) {
    struct wanted *wanted = data;
    const char *name = *object->dlpi_name ? object->dlpi_name : "/proc/self/exe";
    (void)bytes;
    if ((!wanted->file || strcmp(wanted->file, name) == 0) && !strstr(name, "libcudart.so.")) wanted->count += in_file(name, object->dlpi_addr);
    return 0;
}

// Take the functions over of a copy in a library that is loaded; NULL: of those in all, and in the program. Gives their number.
EXPORT int consan_take_over(const char *file) {
    struct wanted wanted = {file, 0};
    dl_iterate_phdr(in_object, &wanted);
    return wanted.count;
}

// A program that is not Python: its own code has not run yet.
__attribute__((constructor)) static void begin(void) {
    if (getenv("_CONSAN_DRIVER")) consan_take_over(NULL);
}
