#pragma once

/*
 * Finds loaded ELF objects (programs and libraries in memory), and reads the tables that the dynamic linker uses. The
 * tables are for import_table.c, which changes import tables, and for offload/library_judge.c, which examines whether a
 * library's functions depend on their thread.
 */

#include "system.h"

/* A loaded program or library. */
typedef struct heddle_object heddle_object;

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#define HEDDLE_ELF_OBJECTS 1

#include <elf.h>
#include <link.h>

#if defined(__x86_64__)
enum heddle_relocation {
    HEDDLE_RELOCATION_CALL = R_X86_64_JUMP_SLOT,
    HEDDLE_RELOCATION_POINTER = R_X86_64_GLOB_DAT,
    HEDDLE_RELOCATION_WORD = R_X86_64_64,
    HEDDLE_RELOCATION_RELATIVE = R_X86_64_RELATIVE,
    HEDDLE_RELOCATION_RESOLVED = R_X86_64_IRELATIVE,
    HEDDLE_RELOCATION_NONE = R_X86_64_NONE,
};
#else
enum heddle_relocation {
    HEDDLE_RELOCATION_CALL = R_AARCH64_JUMP_SLOT,
    HEDDLE_RELOCATION_POINTER = R_AARCH64_GLOB_DAT,
    HEDDLE_RELOCATION_WORD = R_AARCH64_ABS64,
    HEDDLE_RELOCATION_RELATIVE = R_AARCH64_RELATIVE,
    HEDDLE_RELOCATION_RESOLVED = R_AARCH64_IRELATIVE,
    HEDDLE_RELOCATION_NONE = R_AARCH64_NONE,
};
#endif

enum { HEDDLE_MOST_NEEDED = 64 };

/*
 * Names and tables can be read as long as the object is loaded. heddle_elf_object_read_tables sets the fields from
 * `calls` on.
 */
struct heddle_object {
    const char *path; /* the file it was loaded from; "" for the program itself */
    uintptr_t base;   /* its load address; 0 for a program with fixed addresses */
    const ElfW(Phdr) *parts;
    int part_count;
    const ElfW(Rela) *calls, *data; /* the relocations for calls (DT_JMPREL), and the others (DT_RELA) */
    size_t call_count, data_count;
    const ElfW(Sym) *symbols;
    const char *names, *soname;
    const char *needed[HEDDLE_MOST_NEEDED];
    size_t needed_count;
    const char *unknown; /* the description of a feature of the object that this reader does not support; or NULL */
};

void heddle_elf_object_read_tables(heddle_object *object);

#else

struct heddle_object {
    const char *path;
    uintptr_t base;
};

#endif

/*
 * Calls `visit` for every loaded program and library, except the vDSO, until a call returns true. Returns false if no
 * call has returned true. The object is valid only during the call. `visit` must not load or unload anything.
 */
bool heddle_objects_each(bool (*visit)(heddle_object *object, void *data), void *data);

/*
 * How many objects were loaded and unloaded so far. The numbers detect changes that addresses don't show: a new object
 * may have the addresses of an unloaded one.
 */
typedef struct {
    uint64_t loaded, unloaded;
} heddle_object_counts;
heddle_object_counts heddle_objects_count(void);

bool heddle_object_contains(const heddle_object *object, const void *address);

/* Returns the last part of the path. */
const char *heddle_library_file(const char *path);
/* Does the path's last part begin with one of the names? */
bool heddle_library_listed(const char *path, const char *const *names, size_t count);
