#ifndef HEDDLE_OFFLOAD_POLICY_H
#define HEDDLE_OFFLOAD_POLICY_H

/*
 * What is known of each native function, and so where it runs. A speed that was learned makes nothing run on the loop's
 * own thread: only what is listed as quick does, since it never waits for another fiber, and only while it is quick.
 *
 * Used with the GVL only. Nothing here needs Ruby.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    void *address;
    const void *base;    /* of its library */
    const char *path;    /* … where it is */
    const char *library; /* the path's last part */
    const char *symbol;  /* or NULL: most functions are static */
    uintptr_t method;    /* the Ruby method (an ID) in which it was first called */
    uint64_t calls, offloaded;
    int64_t wall; /* ns, an average that rises fast and falls slowly */
    int64_t pace; /* … that one slow call doesn't rise far: the machine may have been busy */
    int cpu;      /* per mille of the wall time, an average */
    bool measured; /* cpu says something */
    bool denied;  /* its library is not offloaded */
    bool quick;   /* its library's functions only compute, so they run inline while they are quick */
} heddle_function;

/* What takes longer on average is offloaded though it is listed as quick. */
#define HEDDLE_QUICK_NS ((int64_t)50 * 1000)

/* What is known of the function; never NULL, though functions beyond the first thousands share one record. */
heddle_function *heddle_function_find(void *address);

/* Notes a run, inline or on an offload thread. `cpu` < 0: not known. */
void heddle_function_ran(heddle_function *function, bool offloaded, int64_t wall, int64_t cpu);
bool heddle_function_computes(const heddle_function *function);

/* Names of libraries, each the beginning of a file's name; copied. 0 or -ENOMEM. For functions known already, too. */
int heddle_policy_deny(const char *const *names, size_t count);
int heddle_policy_quick(const char *const *names, size_t count);

/* Is the library with the path not to be offloaded? */
bool heddle_policy_denied(const char *path);

size_t heddle_function_count(void);
const heddle_function *heddle_function_at(size_t index);

/* Does the path's last part begin with one of the names? */
bool heddle_library_listed(const char *path, const char *const *names, size_t count);

#endif
