#ifndef HEDDLE_IMPORT_TABLE_H
#define HEDDLE_IMPORT_TABLE_H

/*
 * Leads the calls that loaded libraries make to a function of another library elsewhere, by the entries for it in their
 * import tables (ELF: Linux on x86-64 and ARM64, with glibc or musl; Mach-O: macOS). Nothing in any library's code is
 * changed, and libraries that take the function's address by dlsym are not reached.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name; /* of the function, without a version */
    void *original;   /* where it is; NULL: in another library that may not be loaded, then no value is compared */
    void *replacement;
} heddle_import;

/* A loaded program or library. Valid during the visit only. */
typedef struct heddle_object heddle_object;

/* NULL where this system's tables can be changed, else the reason why not. */
const char *heddle_imports_unsupported(void);

/* Visits every loaded program and library. Nothing may be loaded or unloaded by the visitor. */
void heddle_objects_each(void (*visit)(const heddle_object *object, void *data), void *data);

/* How many were unloaded so far: another may lie at the place of one that is gone. */
uint64_t heddle_objects_unloaded(void);

/* The file it was loaded from; "" for the program itself. */
const char *heddle_object_path(const heddle_object *object);
/* Tells it from others that are loaded now. */
uintptr_t heddle_object_base(const heddle_object *object);
bool heddle_object_contains(const heddle_object *object, const void *address);

/*
 * How many entries lead to the replacements now, or -1: the system refuses to change them. Not for two threads at once.
 */
int heddle_object_intercept(const heddle_object *object, const heddle_import *imports, size_t count);

#endif
