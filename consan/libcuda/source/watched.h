// Accesses of the program's own code to managed and pinned memory that work of the device may still use. The server names the bytes in
// flight with each answer (consan/libcuda/memory_calls.py); their pages are closed until the next call. An access there is noted, executed
// alone with its page open (the trap flag of x86-64; elsewhere the page stays open), and handed over with the next call, or at the end.
//
// Not seen: accesses of the kernel for the program (read, write: they fail on a closed page), those of other threads during a step, and
// those behind the first MOST_TOUCHED.
#include <signal.h>
#include <ucontext.h>

enum { MOST_WATCHED = 256, MOST_TOUCHED = 4096, MOST_OPEN = 4 };
enum { IS_READ_ONLY = 1, IS_CLOSED = 2 };  // the device reads the bytes; it writes them

struct watched_bytes {
    word begin, end;
    int protection;
};
struct touched_byte {
    word address, is_write;
};

static struct {
    struct watched_bytes ranges[MOST_WATCHED];
    int count;
    struct touched_byte touched[MOST_TOUCHED];
    int touches;
    struct sigaction before, before_step;
    int is_installed;
} watching;

// Each thread's; initial-exec, because a handler must not allocate.
#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))
OF_THREAD word open_pages[MOST_OPEN];
OF_THREAD int open_count;

#define PAGE ((word)4096)
static word page_of(word address) { return address & ~(PAGE - 1); }

// How a page is closed: 0 if no bytes in flight lie there.
static int closed_how(word page) {
    int most = 0;
    for (int at = 0; at < watching.count; ++at) {
        const struct watched_bytes *each = &watching.ranges[at];
        if (page < each->end && each->begin < page + PAGE && each->protection > most) most = each->protection;
    }
    return most;
}

static void protect(word page, int how) {
    static const int allowed[] = {PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE};
    mprotect((void *)(uintptr_t)page, PAGE, allowed[how]);
}

static void chain(int number, siginfo_t *info, void *context, const struct sigaction *before) {
    if (before->sa_flags & SA_SIGINFO) before->sa_sigaction(number, info, context);
    else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) before->sa_handler(number);
    else sigaction(number, before, NULL);  // the instruction faults once more
}

static void note_touch(word address, word is_write) {
    int at = __atomic_fetch_add(&watching.touches, 1, __ATOMIC_RELAXED);
    if (at < MOST_TOUCHED) watching.touched[at] = (struct touched_byte){address, is_write};
}

#ifdef __x86_64__
enum { TRAP_FLAG = 0x100, WRITES = 2 };
static int steps(void *context, word page) {
    ucontext_t *at = context;
    if (watching.touches >= MOST_TOUCHED || open_count == MOST_OPEN) return 0;
    open_pages[open_count++] = page;
    at->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
    return 1;
}
static word is_store(void *context, int how) {
    (void)how;
    return (((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & WRITES) != 0;
}
static void on_step(int number, siginfo_t *info, void *context) {
    if (!open_count) {
        chain(number, info, context, &watching.before_step);
        return;
    }
    for (; open_count; --open_count) protect(open_pages[open_count - 1], closed_how(open_pages[open_count - 1]));
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}
#else
static void on_step(int number, siginfo_t *info, void *context) { chain(number, info, context, &watching.before_step); }
static int steps(void *context, word page) {
    (void)context, (void)page;
    return 0;
}
static word is_store(void *context, int how) {
    (void)context;
    return how == IS_READ_ONLY;  // of a closed page it is taken for a read
}
#endif

static void on_fault(int number, siginfo_t *info, void *context) {
    word address = (word)(uintptr_t)info->si_addr, page = page_of(address);
    int how = closed_how(page);
    if (!how) {
        chain(number, info, context, &watching.before);
        return;
    }
    note_touch(address, is_store(context, how));
    protect(page, 0);
    steps(context, page);
}

static void protect_all(int is_closed) {
    for (int at = 0; at < watching.count; ++at)
        for (word page = page_of(watching.ranges[at].begin); page < watching.ranges[at].end; page += PAGE) protect(page, is_closed ? closed_how(page) : 0);
}

// One more range of bytes in flight. The pages are closed by watch_on.
static void watch(word begin, word bytes, int protection) {
    if (watching.count < MOST_WATCHED) watching.ranges[watching.count++] = (struct watched_bytes){begin, begin + bytes, protection};
}

static void watch_on(void) {
    if (!watching.count) return;
    if (!watching.is_installed) {
        struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
        sigaction(SIGSEGV, &fault, &watching.before);
        sigaction(SIGTRAP, &step, &watching.before_step);
        watching.is_installed = 1;
    }
    protect_all(1);
}

static int touches_noted(void) { return watching.touches < MOST_TOUCHED ? watching.touches : MOST_TOUCHED; }

// Opens all pages. Gives how many accesses were noted since.
static int watch_off(void) {
    protect_all(0);
    watching.count = 0;
    return touches_noted();
}
