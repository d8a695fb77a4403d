#pragma once

/*
 * Keeps a record of each native function, and decides where the function runs: on an offload thread, or in place (on
 * the calling thread). The class of its library decides whether an offload thread may call it at all. If so, the
 * function runs in place only while its calls are quick, and if its library is on the list of quick libraries, whose
 * functions never wait for another fiber.
 *
 * The functions below are called with the GVL. Uses no Ruby.
 */

#include "system.h"

/* The class of a library: where its functions run, and why. */
typedef enum {
    /* in place: on Heddle's or the user's list of libraries that must not be offloaded */
    HEDDLE_LIBRARY_DENIED,
    HEDDLE_LIBRARY_IN_PLACE,    /* in place: nothing shows that other threads may call its functions */
    HEDDLE_LIBRARY_RUBYS,       /* Ruby's own library: each call is decided separately */
    HEDDLE_LIBRARY_KNOWN_GOOD,  /* offloaded: on Heddle's list of libraries that were tested */
    HEDDLE_LIBRARY_ALLOWED,     /* offloaded: on the user's list of allowed libraries */
    HEDDLE_LIBRARY_JUDGED_SAFE, /* offloaded: judged independent of the thread (library_judge.h) */
} heddle_library_class;

typedef struct {
    void *address;
    const void *base;    /* the address of its library */
    const char *path;    /* the library's path */
    const char *library; /* the path's last part */
    const char *symbol;  /* its symbol; NULL for most functions, because they are static */
    uintptr_t method;    /* the Ruby method (an ID) in which it was first called */
    uint64_t calls, offloaded;
    int64_t wall; /* its duration in ns, an average that rises fast and falls slowly */
    /* a slower average of the duration: one slow call counts little, because the machine may have been busy */
    int64_t pace;
    int cpu;      /* CPU time per mille of the wall time, an average */
    bool measured; /* `cpu` is known */
    heddle_library_class class;
    const char *reason; /* the reason for the class, or NULL */
    /*
     * its class is DENIED or IN_PLACE, so it runs in place; but with IN_PLACE, calls that the library marks as safe are
     * offloaded
     */
    bool in_place;
    /* its library may leave errors in OpenSSL's queue, which belongs to the thread (openssl_errors.h) */
    bool carries_errors;
    int64_t blocked_for;     /* the longest time for which it has blocked a loop, until that is reported; ns */
    bool reported;           /* a stall of this function was reported; no further one will be */
    bool quick;   /* its library is on the list of quick libraries: the function runs in place while it is quick */
} heddle_function;

/*
 * A function of a library on the list of quick libraries is offloaded at its first call, and while its average duration
 * (`pace`) is longer than this (ns).
 */
#define HEDDLE_QUICK_NS ((int64_t)50 * 1000)
/*
 * The same limit for native calls of Ruby itself (ns). It is higher for two reasons: an offloaded call wakes two
 * threads, each of which may wait for a core; and a time slice of Ruby code delays the loop's other fibers longer than
 * this anyway.
 */
#define HEDDLE_QUICK_IN_RUBY_NS ((int64_t)200 * 1000)

/*
 * Returns the record of the function, and creates it at first use. Never returns NULL: when the table is full, or
 * memory is exhausted, further functions share one record.
 */
heddle_function *heddle_function_record(void *address);

/* Records a call, in place or on an offload thread. `cpu` < 0: unknown. */
void heddle_function_ran(heddle_function *function, bool offloaded, int64_t wall, int64_t cpu);
/* Does the function on average take longer than HEDDLE_QUICK_NS, and use the CPU for most of that time? */
bool heddle_function_computes(const heddle_function *function);
/* Is it a function of Ruby's own library? */
bool heddle_function_is_ruby(const heddle_function *function);

typedef enum {
    HEDDLE_LIST_DENIED,
    HEDDLE_LIST_QUICK,
    HEDDLE_LIST_ALLOWED,
    /*
     * Each name may be followed by spaces and the names of other libraries, with which the named library was tested.
     * The named library is known good only if it needs no further library.
     */
    HEDDLE_LIST_KNOWN_GOOD,
    HEDDLE_LIST_LIBC, /* libraries whose waits in libc are offloaded (libc_hooks.h) */
    HEDDLE_LISTS,
} heddle_policy_list;

/*
 * Sets a list to copies of these names, which are beginnings of libraries' file names. The new list also applies to
 * functions that were called before. Returns 0 or -ENOMEM.
 */
int heddle_policy_set_list(heddle_policy_list list, const char *const *names, size_t count);
/* Is the library with this path on the list? */
bool heddle_policy_is_listed(heddle_policy_list list, const char *path);

/*
 * Sets Ruby's own library, or the program that Ruby is linked into: the one that contains `address`. Must be called
 * before the first function is looked up.
 */
void heddle_policy_set_ruby(const void *address);
/*
 * Called after libraries were unloaded, because other libraries may be loaded at their addresses: looks up all
 * functions again.
 */
void heddle_policy_relocate(void);

/*
 * Returns the class of the library that contains `address` and was loaded from `path`. Sets `reason`, which has `size`
 * bytes, to the reason or "".
 */
heddle_library_class heddle_policy_class(const char *path, const void *address, char *reason, size_t size);
const char *heddle_policy_class_name(heddle_library_class class);

/* Records that the function has blocked a loop for `wall` ns, which is reported later. */
void heddle_function_report_stall(heddle_function *function, int64_t wall);
/*
 * Returns a function that has blocked a loop and was not reported yet, or NULL. Sets `blocked_for` (ns), and marks the
 * function as reported.
 */
const heddle_function *heddle_policy_take_unreported(int64_t *blocked_for);

size_t heddle_function_count(void);
const heddle_function *heddle_function_at(size_t index);
