#pragma once

/*
 * Redirects the calls of loaded libraries to a function of another library, by changing the function's entries in their
 * import tables (ELF: Linux on x86-64 and ARM64, with glibc or musl). No code is changed. Libraries that get the
 * function's address from dlsym are not affected.
 */

#include "native_code/elf_object.h"

typedef struct {
    const char *name; /* the function's name, without a version */
    void *original;   /* the function's address; NULL: its library may not be loaded, and values are not compared */
    void *replacement;
} heddle_import;

/* NULL if import tables can be changed on this system; otherwise the reason why not. */
const char *heddle_imports_unsupported(void);

/*
 * Redirects the object's entries. Returns how many entries now lead to the replacements, or -1 if the system refuses to
 * change them. Must not be called by two threads at once.
 */
int heddle_object_intercept(const heddle_object *object, const heddle_import *imports, size_t count);
