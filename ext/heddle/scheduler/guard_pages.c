#include "guard_pages.h"

#include "decimal.h"
#include "native_code/import_table.h"

static const char NOT_TRIED[] = "not tried yet";
static _Atomic(const char *) status = NOT_TRIED;
static _Atomic(const char *) forbidden; /* the reason why nothing may be changed */
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

/* Advice of Linux 6.13 that older headers lack. */
enum {
    GUARD_INSTALL = 102,
    GUARD_REMOVE = 103,
};

/*
 * With larger pages, blocks that are not guards would be one page long, too, and a guard would discard their contents.
 * A page of Ruby's heap has 64 KiB and is protected during compaction. A block of code that YJIT has freed has 16 KiB.
 */
enum { PAGE_SIZE_NEEDED = 4096 };

typedef int mprotect_fn(void *address, size_t length, int protection);

/* -- replacements of mprotect and madvise ------------------------------------------------------------------------ */

static mprotect_fn *next_mprotect; /* the table's previous entry: mprotect, or another library's replacement */
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
        errno = saved; /* EINVAL for locked memory before Linux 6.15: the caller calls mprotect instead */
    } else if (protection != PROT_NONE && may_hold_guards((uintptr_t)address, length)) {
        /* mprotect alone would leave the guard in place. Without a guard this does nothing. */
        madvise(address, length, GUARD_REMOVE);
        errno = saved;
    }
    return next_mprotect(address, length, protection);
}

/*
 * Ruby calls madvise(MADV_FREE) for each stack that is vacant again. That is a third of the cost of a short-lived
 * fiber: the kernel walks its pages and interrupts every other core that the process runs on. A process that never had
 * many stacks reuses them all the time, so it keeps their memory.
 */
enum { STACKS_TO_KEEP = 256 };

typedef int madvise_fn(void *address, size_t length, int advice);

static madvise_fn *next_madvise;

static int keeping_madvise(void *address, size_t length, int advice)
{
    /*
     * Counts the guards instead of the stacks. Each stack has a guard, except the few stacks made before guards were
     * installed.
     */
    if (advice == MADV_FREE && heddle_guard_pages_count() <= STACKS_TO_KEEP)
        return 0;
    return next_madvise(address, length, advice);
}

/* -- support by the kernel --------------------------------------------------------------------------------------- */

/*
 * Emulators accept advice that they don't know. So this function tests a guard page with a system call that must fail.
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
    const void *inside; /* an address of Ruby's code */
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
        heddle_object_intercept(object, &ADVISE, 1); /* may fail, because it is only an optimization */
    return true;
}

static const char *intercept_ruby(void)
{
    /*
     * The address is looked up by name and not read from the table: an entry that is not bound yet leads to the dynamic
     * linker, which would overwrite Heddle's entry at the first call.
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
        return "the system refuses to change Ruby's table of functions";
    if (ruby.intercepted == 0)
        return "Ruby calls mprotect in a way that can't be changed (statically linked libc?)";
    return NULL;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *install_guards(void)
{
    const char *wanted = getenv("HEDDLE_GUARD_PAGES");
    if (wanted && strcmp(wanted, "0") == 0)
        return "switched off by HEDDLE_GUARD_PAGES=0";
    if (sysconf(_SC_PAGESIZE) != PAGE_SIZE_NEEDED)
        return "only for memory pages of 4 KiB; this kernel has larger ones";
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
    atomic_store(&status, "only on Linux on x86-64 and ARM64");
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
                 "no memory for the stack of another fiber. Each needs two memory mappings and the kernel allows this "
                 "process vm.max_map_count = %ld, which is about %ld fibers. Raise it (sysctl -w "
                 "vm.max_map_count=1000000) or run fewer at once. Guard pages without mappings, which would lift "
                 "this limit, are not in use: %s",
                 limit, limit / 2 - 1000, reason);
        return buffer;
    }
#endif
    snprintf(buffer, size,
             "no memory for the stack of another fiber. Each takes some 13 KiB of memory and 650 KiB of address space "
             "(RUBY_FIBER_VM_STACK_SIZE and RUBY_FIBER_MACHINE_STACK_SIZE lower this). Raise the memory limits of this "
             "process (ulimit -v, its cgroup, vm.overcommit_memory) or run fewer at once");
    return buffer;
}
