#pragma once

/*
 * Finds the library that contains the machine code at an address: the executable ranges of all loaded libraries,
 * sorted, each with its kind.
 *
 * Linux on x86-64 and ARM64, with glibc or musl. All functions are called with the GVL, in the main Ractor. A result is
 * valid until the next heddle_code_map_refresh.
 */

#include "system.h"

typedef enum {
    HEDDLE_CODE_RUBY = 1,            /* libruby, or the program that contains it */
    HEDDLE_CODE_HEDDLE = 2,          /* this extension */
    HEDDLE_CODE_SYSTEM = 4,          /* libc and others, which call back only functions that were passed to them */
    HEDDLE_CODE_REENTRANT = 8,       /* an extension that is listed as re-entrant */
    HEDDLE_CODE_FOREIGN = 16,        /* any other library, and the program itself */
    HEDDLE_CODE_NOT_REENTRANT = 32,  /* listed as a library that no other fiber may enter during its callbacks */
} heddle_code_kind;

typedef struct {
    const char *path; /* "" for the program itself */
    heddle_code_kind kind;
    const uint8_t *unwind_table; /* its .eh_frame_hdr, or NULL */
} heddle_library;

/*
 * `ruby` is any address in Ruby's code. A library is listed by the end of its path without the extension: "monitor",
 * "io/console". `kind` is REENTRANT or NOT_REENTRANT; the names are copied. Returns false if out of memory.
 */
void heddle_code_map_set_ruby(const void *ruby);
bool heddle_code_map_list(heddle_code_kind kind, const char *const *names, size_t count);

/* Updates the map if libraries were loaded or unloaded. Returns false if out of memory, and on other systems. */
bool heddle_code_map_refresh(void);
/* Changes each time a library is loaded or unloaded. */
uint64_t heddle_code_map_version(void);
/*
 * The library whose code is at this address. NULL if the code belongs to no library, but to a just-in-time compiler or
 * a trampoline.
 */
const heddle_library *heddle_code_map_find(uintptr_t address);
/* Is a library of one of these kinds (a mask) loaded? */
bool heddle_code_map_has(unsigned kinds);
/* Sets the lowest and the highest address of all libraries of these kinds (a mask). They are equal if there is none. */
void heddle_code_map_find_bounds(unsigned kinds, uintptr_t *lowest, uintptr_t *highest);
