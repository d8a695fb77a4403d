#ifndef HEDDLE_OFFLOAD_MACH_O_H
#define HEDDLE_OFFLOAD_MACH_O_H

/*
 * Reads the import tables of a program or library as macOS loads it: 64-bit Mach-O, as Apple's mach-o/loader.h and
 * mach-o/nlist.h describe it. Nothing here needs macOS: an image is bytes in memory.
 *
 * An image has sections of pointers to what it imports, which the linker binds when it loads the image, or at the first
 * call. For each such pointer a table says which symbol it is for. That is so with chained fixups (macOS 12 and later),
 * too.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name; /* as in C: without the underscore */
    uintptr_t *slot;
    bool lazy;      /* before its first call it leads to the linker */
    bool read_only; /* its segment is made so once it is bound */
} heddle_mach_o_import;

/* Is it a 64-bit image, and not one of the system's shared cache? */
bool heddle_mach_o_readable(const void *header);

/* Is the address in one of the segments that it was loaded to? */
bool heddle_mach_o_contains(const void *header, const void *address);

/* Is it that function's? The system has some under several names, with the variant behind a `$`. */
bool heddle_mach_o_named(const heddle_mach_o_import *import, const char *name);

/* Visits every imported pointer, until the visitor answers false. */
void heddle_mach_o_imports(const void *header, bool (*visit)(const heddle_mach_o_import *import, void *data),
                           void *data);

#endif
