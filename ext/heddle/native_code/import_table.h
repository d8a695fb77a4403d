#pragma once

/*
 * Intercepts the calls that loaded libraries make: replaces entries of their import tables, so that their calls of a
 * function go to a replacement. No code is changed. The calls of a library that gets the function's address from dlsym
 * are not intercepted. Works with ELF: on Linux on x86-64 and ARM64, with glibc or musl.
 */

#include "native_code/elf_object.h"

typedef struct {
    const char *name; /* the function's name, without a version */
    /*
     * The function's address. An entry for calls is always changed, because the linker may not have resolved it yet.
     * Any other entry is changed only if it contains this address. NULL: all entries are changed.
     */
    void *original;
    void *replacement;
} heddle_import;

/* Returns NULL if import tables can be changed on this system; otherwise the reason why not. */
const char *heddle_imports_unsupported(void);

/*
 * Changes the object's entries. Returns how many entries now point to the replacements, or -1 if the system does not
 * allow the change. Must not be called by two threads at the same time.
 */
int heddle_object_intercept(const heddle_object *object, const heddle_import *imports, size_t count);
