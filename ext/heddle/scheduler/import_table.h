#pragma once

/*
 * Redirects the calls that loaded libraries make to a function of another library, by the entries for it in their
 * import tables (ELF: Linux on x86-64 and ARM64, with glibc or musl). No code is changed. Libraries that get the
 * function's address from dlsym are not affected.
 */

#include "scheduler/elf_object.h"

typedef struct {
    const char *name; /* the function's name, without a version */
    void *original;   /* the function's address; NULL: its library may not be loaded, and values are not compared */
    void *replacement;
} heddle_import;

/* NULL where import tables can be changed on this system, else the reason why not. */
const char *heddle_imports_unsupported(void);

/*
 * Visits every loaded program and library. An object is valid during the visit only, and nothing may be loaded or
 * unloaded by the visitor.
 */
void heddle_objects_each(void (*visit)(const heddle_object *object, void *data), void *data);

/* How many objects were unloaded so far: afterwards another object may be loaded at the same address. */
uint64_t heddle_objects_unloaded(void);

bool heddle_object_contains(const heddle_object *object, const void *address);

/*
 * Redirects the object's entries. Returns how many now lead to the replacements, or -1: the system refuses to change
 * them. Must not be called by two threads at once.
 */
int heddle_object_intercept(const heddle_object *object, const heddle_import *imports, size_t count);
