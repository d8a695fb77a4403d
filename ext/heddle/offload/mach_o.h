#ifndef HEDDLE_OFFLOAD_MACH_O_H
#define HEDDLE_OFFLOAD_MACH_O_H

/*
 * Reads the import tables of a program or library as macOS loads it: 64-bit Mach-O, as Apple's mach-o/loader.h and
 * mach-o/nlist.h describe it. It needs no macOS: an image is bytes in memory.
 *
 * An image has sections of pointers to imported functions, which the linker binds when it loads the image, or at the
 * first call. A table has the symbol of each pointer, also with chained fixups (macOS 12 and later).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name; /* as in C: without the underscore */
    uintptr_t *slot;
    bool lazy;      /* the linker binds it at its first call */
    bool read_only; /* its segment becomes read-only once it is bound */
} heddle_mach_o_import;

/* Is it a 64-bit image outside of the system's shared cache? */
bool heddle_mach_o_readable(const void *header);

/* Is the address in one of the image's segments? */
bool heddle_mach_o_contains(const void *header, const void *address);

/* Is the import the function with this name? macOS has several variants of some functions, with a suffix behind `$`. */
bool heddle_mach_o_named(const heddle_mach_o_import *import, const char *name);

/* Visits every imported pointer, until the visitor returns false. */
void heddle_mach_o_imports(const void *header, bool (*visit)(const heddle_mach_o_import *import, void *data),
                           void *data);

#endif
