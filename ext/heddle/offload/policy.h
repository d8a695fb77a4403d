#ifndef HEDDLE_OFFLOAD_POLICY_H
#define HEDDLE_OFFLOAD_POLICY_H

/*
 * The facts about each native function, which decide where it runs. The function's library decides whether an offload
 * thread may call it at all. A function never runs in place only because it was measured to be fast: it must be on the
 * list of quick functions, which never wait for another fiber, and be quick now.
 *
 * Used with the GVL only. Nothing here needs Ruby.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the functions of a library run, and why. */
typedef enum {
    HEDDLE_LIBRARY_DENIED,      /* in place: on a list of those that need their own thread, shipped or the user's */
    HEDDLE_LIBRARY_IN_PLACE,    /* in place: nothing says that another thread may call them */
    HEDDLE_LIBRARY_RUBYS,       /* Ruby's own: Ruby says so of each call */
    HEDDLE_LIBRARY_KNOWN_GOOD,  /* offloaded: on the shipped list of those that were tried */
    HEDDLE_LIBRARY_ALLOWED,     /* offloaded: on the user's list */
    HEDDLE_LIBRARY_JUDGED_SAFE, /* offloaded: it imports nothing that depends on the thread */
} heddle_library_class;

typedef struct {
    void *address;
    const void *base;    /* of its library */
    const char *path;    /* … where it is */
    const char *library; /* the path's last part */
    const char *symbol;  /* or NULL: most functions are static */
    uintptr_t method;    /* the Ruby method (an ID) in which it was first called */
    uint64_t calls, offloaded;
    int64_t wall; /* ns, an average that rises fast and falls slowly */
    int64_t pace; /* … in which one slow call counts for little: the machine may have been busy */
    int cpu;      /* per mille of the wall time, an average */
    bool measured; /* cpu says something */
    heddle_library_class class;
    const char *reason; /* of the class; "" if the class says it all */
    bool in_place; /* its class is DENIED or IN_PLACE; with IN_PLACE, calls that the library marks as safe are offloaded */
    bool carries_errors; /* its library leaves errors in OpenSSL's queue, which belongs to the thread */
    int64_t held_up;     /* ns: the longest time for which it held up the loop in place, not reported yet */
    bool reported;           /* … it was */
    bool quick;   /* its library's functions only compute, so they run inline while they are quick */
} heddle_function;

/* A function that takes longer on average is offloaded though it is listed as quick. */
#define HEDDLE_QUICK_NS ((int64_t)50 * 1000)

/* The record of the function; never NULL, though functions beyond the first thousands share one. */
heddle_function *heddle_function_find(void *address);

/* Notes a run, inline or on an offload thread. `cpu` < 0: not known. */
void heddle_function_ran(heddle_function *function, bool offloaded, int64_t wall, int64_t cpu);
bool heddle_function_computes(const heddle_function *function);

/* Names of libraries, each the beginning of a file's name; copied. 0 or -ENOMEM. For functions known already, too. */
int heddle_policy_deny(const char *const *names, size_t count);
int heddle_policy_quick(const char *const *names, size_t count);
int heddle_policy_allow(const char *const *names, size_t count);
/*
 * Each name may be followed by spaces and the names of the libraries with which it was tried: it is known good only
 * where it needs no others.
 */
int heddle_policy_know_good(const char *const *names, size_t count);

/* An address in Ruby's own library. Before the first function is looked up. */
void heddle_policy_set_ruby(const void *address);
/* Libraries were unloaded: others may lie where they were. */
void heddle_policy_relocate(void);

/* The class of the library that contains `address` and was loaded from `path`. */
heddle_library_class heddle_policy_class(const char *path, const void *address, char *reason, size_t size);
const char *heddle_policy_class_name(heddle_library_class class);

/* The function ran in place for so long (ns), and what held up the loop. */
void heddle_function_report_stall(heddle_function *function, int64_t wall);
/* One that held up the loop in place, for the first time, and has not been reported yet; or NULL. */
const heddle_function *heddle_policy_take_unreported(int64_t *held_up);

/* Is the library with the path not to be offloaded? */
bool heddle_policy_denied(const char *path);

size_t heddle_function_count(void);
const heddle_function *heddle_function_at(size_t index);

/* Does the path's last part begin with one of the names? */
bool heddle_library_listed(const char *path, const char *const *names, size_t count);

#endif
