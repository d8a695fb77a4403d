#include "guard_pages.h"

#include "decimal.h"
#include "native_code/import_table.h"

static const char NOT_TRIED[] = "not tried yet";
static _Atomic(const char *) status = NOT_TRIED;
static _Atomic(const char *) forbidden; /* the reason why guard pages may not be installed, or NULL */
static atomic_size_t guards;

const char *heddle_guard_pages_status(void)
{
    const char *reason = atomic_load(&forbidden), *now = atomic_load(&status);
    return now == NOT_TRIED && reason ? reason : now;
}

void heddle_guard_pages_forbid(const char *reason)
{
    atomic_store(&forbidden, reason);
}

size_t heddle_guard_pages_count(void)
{
    return atomic_load_explicit(&guards, memory_order_relaxed);
}

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#include <dlfcn.h>
#include <sys/mman.h>

/* Values of `advice` for madvise since Linux 6.13, which older headers lack. */
enum {
    GUARD_INSTALL = 102,
    GUARD_REMOVE = 103,
};

/*
 * The replacement of mprotect recognizes a guard page by its size of one page, and installing a guard discards the
 * page's contents. On kernels with larger pages, other memory that Ruby protects would have this size, too: a page of
 * Ruby's heap, which is protected during compaction, has 64 KiB, and a block of code that YJIT has freed has 16 KiB. So
 * Heddle replaces mprotect only where pages have 4 KiB.
 */
enum { PAGE_SIZE_NEEDED = 4096 };

typedef int mprotect_fn(void *address, size_t length, int protection);

/* -- replacements of mprotect and madvise ------------------------------------------------------------------------ */

static mprotect_fn *next_mprotect; /* the mprotect of libc, or of a preloaded library */
static atomic_uintptr_t lowest = UINTPTR_MAX, highest;

static void note_guard(uintptr_t page)
{
    uintptr_t low = atomic_load_explicit(&lowest, memory_order_relaxed);
    while (page < low && !atomic_compare_exchange_weak(&lowest, &low, page))
        continue;
    uintptr_t high = atomic_load_explicit(&highest, memory_order_relaxed);
    while (page > high && !atomic_compare_exchange_weak(&highest, &high, page))
        continue;
    atomic_fetch_add_explicit(&guards, 1, memory_order_relaxed);
}

static bool may_hold_guards(uintptr_t address, size_t length)
{
    return address <= atomic_load_explicit(&highest, memory_order_relaxed) &&
           address + length > atomic_load_explicit(&lowest, memory_order_relaxed);
}

static int guarding_mprotect(void *address, size_t length, int protection)
{
    int saved = errno;
    if (protection == PROT_NONE && length == PAGE_SIZE_NEEDED) {
        if (madvise(address, length, GUARD_INSTALL) == 0) {
            note_guard((uintptr_t)address);
            return 0;
        }
        errno = saved; /* before Linux 6.15, EINVAL for locked memory: mprotect is called below instead */
    } else if (protection != PROT_NONE && may_hold_guards((uintptr_t)address, length)) {
        /* mprotect alone would leave a guard in place. If there is none, madvise does nothing. */
        madvise(address, length, GUARD_REMOVE);
        errno = saved;
    }
    return next_mprotect(address, length, protection);
}

/*
 * Ruby calls madvise(MADV_FREE) for each stack that becomes vacant. That call is a third of the cost of a short-lived
 * fiber: the kernel walks the stack's pages, and interrupts every other core that the process runs on. A process that
 * has never had many stacks reuses them all the time, so there the call is skipped, and the stacks keep their memory.
 */
enum { STACKS_TO_KEEP = 256 };

typedef int madvise_fn(void *address, size_t length, int advice);

static madvise_fn *next_madvise;

static int keeping_madvise(void *address, size_t length, int advice)
{
    /*
     * Counts guards instead of stacks. Each stack has a guard, except the few that were created before this replacement
     * was installed.
     */
    if (advice == MADV_FREE && heddle_guard_pages_count() <= STACKS_TO_KEEP)
        return 0;
    return next_madvise(address, length, advice);
}

/* -- support by the kernel --------------------------------------------------------------------------------------- */

/*
 * Emulators accept unknown advice without an error. So this function tests that a system call fails when it reads a
 * guard page.
 */
static bool guards_work(void)
{
    char *page = mmap(NULL, PAGE_SIZE_NEEDED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    bool works = madvise(page, PAGE_SIZE_NEEDED, GUARD_INSTALL) == 0 && access(page, F_OK) != 0 && errno == EFAULT &&
                 madvise(page, PAGE_SIZE_NEEDED, GUARD_REMOVE) == 0 && access(page, F_OK) != 0 && errno == ENOENT;
    munmap(page, PAGE_SIZE_NEEDED);
    return works;
}

/* -- intercepting Ruby's calls ----------------------------------------------------------------------------------- */

typedef struct {
    const void *inside; /* an address in Ruby's code */
    int intercepted;
} ruby_object;

static bool intercept_object(heddle_object *object, void *data)
{
    static const heddle_import PROTECT = {.name = "mprotect", .replacement = guarding_mprotect};
    static const heddle_import ADVISE = {.name = "madvise", .replacement = keeping_madvise};
    ruby_object *ruby = data;
    if (!heddle_object_contains(object, ruby->inside))
        return false;
    ruby->intercepted = heddle_object_intercept(object, &PROTECT, 1);
    if (ruby->intercepted > 0)
        heddle_object_intercept(object, &ADVISE, 1); /* only an optimization, so a failure is ignored */
    return true;
}

static const char *intercept_ruby(void)
{
    /*
     * The addresses are looked up by name and not read from Ruby's import table: an entry that is not bound yet points
     * to the dynamic linker, which would overwrite Heddle's entry at the first call.
     */
    next_mprotect = (mprotect_fn *)dlsym(RTLD_DEFAULT, "mprotect");
    if (!next_mprotect)
        next_mprotect = mprotect;
    next_madvise = (madvise_fn *)dlsym(RTLD_DEFAULT, "madvise");
    if (!next_madvise)
        next_madvise = madvise;
    ruby_object ruby = {.inside = dlsym(RTLD_DEFAULT, "rb_fiber_new")};
    if (!ruby.inside || !heddle_objects_each(intercept_object, &ruby))
        return "Ruby's own library was not found in this process";
    if (ruby.intercepted < 0)
        return "the system does not allow Heddle to change the table of functions that Ruby calls";
    if (ruby.intercepted == 0)
        return "Ruby's calls of mprotect can't be intercepted (is libc linked statically?)";
    return NULL;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *install_guards(void)
{
    const char *wanted = getenv("HEDDLE_GUARD_PAGES");
    if (wanted && strcmp(wanted, "0") == 0)
        return "switched off by HEDDLE_GUARD_PAGES=0";
    if (sysconf(_SC_PAGESIZE) != PAGE_SIZE_NEEDED)
        return "guard pages without mappings of their own need memory pages of 4 KiB, but this kernel has larger ones";
    if (!guards_work())
        return "this kernel has no MADV_GUARD_INSTALL (Linux 6.13 and later have it)";
    return intercept_ruby();
}

static void install_once(void)
{
    atomic_store(&status, install_guards());
}

void heddle_guard_pages_install(void)
{
    if (atomic_load(&status) != NOT_TRIED || !atomic_load(&forbidden))
        pthread_once(&once, install_once);
}

#else

void heddle_guard_pages_install(void)
{
    atomic_store(&status, "guard pages without mappings of their own need Linux on x86-64 or ARM64");
}

#endif

const char *heddle_fiber_limit_message(char *buffer, size_t size)
{
#ifdef __linux__
    long limit = 0;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
    if (file) {
        char text[32] = "";
        limit = fgets(text, sizeof(text), file) ? (long)heddle_parse_decimal(text) : 0;
        fclose(file);
    }
    const char *reason = heddle_guard_pages_status();
    if (reason && limit > 0) {
        snprintf(buffer, size,
                 "no memory for the stack of another fiber. Each fiber needs two memory mappings, and the kernel "
                 "allows this process vm.max_map_count = %ld of them, enough for about %ld fibers. Raise the limit "
                 "(sysctl -w vm.max_map_count=1000000) or run fewer fibers at once. Guard pages without mappings of "
                 "their own, which would remove this limit, are not in use: %s",
                 limit, limit / 2 - 1000, reason);
        return buffer;
    }
#endif
    snprintf(buffer, size,
             "no memory for the stack of another fiber. Each fiber needs some 13 KiB of memory and 650 KiB of address "
             "space (lower RUBY_FIBER_VM_STACK_SIZE and RUBY_FIBER_MACHINE_STACK_SIZE to need less). Raise the memory "
             "limits of this process (ulimit -v, its cgroup, vm.overcommit_memory) or run fewer fibers at once");
    return buffer;
}
