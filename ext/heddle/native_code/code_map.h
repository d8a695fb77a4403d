#pragma once

/*
 * Maps addresses of machine code to libraries. The map has the executable ranges of all loaded libraries, sorted, and
 * the kind of each library.
 *
 * Works on Linux on x86-64 and ARM64, with glibc or musl. All functions must be called with the GVL, in the main
 * Ractor. A heddle_library is valid until the next heddle_code_map_refresh.
 */

#include "system.h"

typedef enum {
    HEDDLE_CODE_RUBY = 1,            /* libruby, or the program that contains it */
    HEDDLE_CODE_HEDDLE = 2,          /* this extension */
    HEDDLE_CODE_SYSTEM = 4, /* libc and others, which call functions of other kinds of libraries only as callbacks */
    HEDDLE_CODE_REENTRANT = 8,       /* an extension that is listed as re-entrant */
    HEDDLE_CODE_FOREIGN = 16,        /* any other library, and the program itself */
    /* an extension that is listed as not re-entrant: no other fiber may run during its callbacks */
    HEDDLE_CODE_NOT_REENTRANT = 32,
} heddle_code_kind;

typedef struct {
    const char *path; /* "" for the program itself */
    heddle_code_kind kind;
    const uint8_t *unwind_table; /* its .eh_frame_hdr, or NULL */
} heddle_library;

/*
 * heddle_code_map_set_ruby gets any address in Ruby's code. heddle_code_map_list replaces the list of one kind,
 * REENTRANT or NOT_REENTRANT. A name is the end of a library's path without the file's suffix: "monitor", "io/console".
 * The names are copied. Returns false if out of memory.
 */
void heddle_code_map_set_ruby(const void *ruby);
bool heddle_code_map_list(heddle_code_kind kind, const char *const *names, size_t count);

/* Updates the map if libraries were loaded or unloaded. Returns false if out of memory or on an unsupported system. */
bool heddle_code_map_refresh(void);
/* Changes each time heddle_code_map_refresh updates the map. */
uint64_t heddle_code_map_version(void);
/*
 * Returns the library whose code is at this address. Returns NULL if the code belongs to no library: it is a
 * trampoline, or a just-in-time compiler has made it.
 */
const heddle_library *heddle_code_map_find(uintptr_t address);
/* Is a library of one of these kinds (a mask) loaded? */
bool heddle_code_map_has(unsigned kinds);
/*
 * Sets the start and the end of the smallest range that contains all code of libraries of these kinds (a mask). Both
 * are 0 if there is no such library.
 */
void heddle_code_map_find_bounds(unsigned kinds, uintptr_t *lowest, uintptr_t *highest);
