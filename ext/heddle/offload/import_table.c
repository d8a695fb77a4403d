#include "offload/import_table.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { CALL = R_X86_64_JUMP_SLOT, POINTER = R_X86_64_GLOB_DAT, WORD = R_X86_64_64 };
#else
enum { CALL = R_AARCH64_JUMP_SLOT, POINTER = R_AARCH64_GLOB_DAT, WORD = R_AARCH64_ABS64 };
#endif

struct heddle_object {
    const char *path;
    uintptr_t base;
    const ElfW(Phdr) *parts;
    int part_count;
    uintptr_t relro_start, relro_end;
    const ElfW(Rela) *calls, *data;
    size_t call_count, data_count;
    const ElfW(Sym) *symbols;
    const char *names;
};

const char *heddle_imports_unsupported(void)
{
    return NULL;
}

/* -- what is loaded ---------------------------------------------------------------------------------------------- */

static uintptr_t page_of(uintptr_t address)
{
    return address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

/* glibc relocates these addresses when it loads an object, musl (and everybody in the vDSO) leaves them relative. */
static const void *dynamic_address(const heddle_object *object, const ElfW(Dyn) *entry)
{
    uintptr_t value = entry->d_un.d_ptr;
    return (const void *)(value < object->base ? value + object->base : value);
}

static void read_dynamic(heddle_object *object, const ElfW(Dyn) *entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_JMPREL: object->calls = dynamic_address(object, entry); break;
        case DT_PLTRELSZ: object->call_count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_RELA: object->data = dynamic_address(object, entry); break;
        case DT_RELASZ: object->data_count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_SYMTAB: object->symbols = dynamic_address(object, entry); break;
        case DT_STRTAB: object->names = dynamic_address(object, entry); break;
        }
    }
}

typedef struct {
    void (*visit)(const heddle_object *object, void *data);
    void *data;
} visitor;

static int visit_object(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    visitor *to = data;
    heddle_object object = {
        .path = info->dlpi_name ? info->dlpi_name : "",
        .base = info->dlpi_addr,
        .parts = info->dlpi_phdr,
        .part_count = info->dlpi_phnum,
    };
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_DYNAMIC)
            read_dynamic(&object, (const ElfW(Dyn) *)start);
        if (part->p_type == PT_GNU_RELRO) {
            /* As the dynamic linkers round it: only whole pages were made read-only. */
            object.relro_start = page_of(start);
            object.relro_end = page_of(start + part->p_memsz);
        }
    }
    if (strncmp(object.path, "linux-vdso", 10) != 0)
        to->visit(&object, to->data);
    return 0;
}

void heddle_objects_each(void (*visit)(const heddle_object *object, void *data), void *data)
{
    visitor to = {.visit = visit, .data = data};
    dl_iterate_phdr(visit_object, &to);
}

static int read_unloaded(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(uint64_t *)data = info->dlpi_subs;
    return 1; /* every object tells the same */
}

uint64_t heddle_objects_unloaded(void)
{
    uint64_t count = 0;
    dl_iterate_phdr(read_unloaded, &count);
    return count;
}

const char *heddle_object_path(const heddle_object *object)
{
    return object->path;
}

uintptr_t heddle_object_base(const heddle_object *object)
{
    return object->base;
}

bool heddle_object_contains(const heddle_object *object, const void *address)
{
    for (int i = 0; i < object->part_count; i++) {
        const ElfW(Phdr) *part = &object->parts[i];
        uintptr_t start = object->base + part->p_vaddr;
        if (part->p_type == PT_LOAD && (uintptr_t)address >= start && (uintptr_t)address < start + part->p_memsz)
            return true;
    }
    return false;
}

/* -- its table ---------------------------------------------------------------------------------------------------- */

static bool replace_slot(const heddle_object *object, uintptr_t slot, void *function)
{
    uintptr_t page = page_of(slot);
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    bool read_only = page >= object->relro_start && page < object->relro_end;
    if (read_only && mprotect((void *)page, size, PROT_READ | PROT_WRITE) != 0)
        return false;
    atomic_store((_Atomic uintptr_t *)slot, (uintptr_t)function);
    if (read_only)
        mprotect((void *)page, size, PROT_READ);
    return true;
}

static const heddle_import *find_import(const heddle_import *imports, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (imports[i].name[0] == name[0] && strcmp(imports[i].name, name) == 0)
            return &imports[i];
    }
    return NULL;
}

static int replace_imports(const heddle_object *object, const ElfW(Rela) *relocations, size_t relocation_count,
                    const heddle_import *imports, size_t count)
{
    int intercepted = 0;
    for (size_t i = 0; relocations && i < relocation_count; i++) {
        const ElfW(Rela) *relocation = &relocations[i];
        uint32_t type = (uint32_t)ELF64_R_TYPE(relocation->r_info);
        if ((type != CALL && type != POINTER && type != WORD) || (type == WORD && relocation->r_addend))
            continue;
        const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(relocation->r_info)];
        const heddle_import *import = find_import(imports, count, object->names + symbol->st_name);
        if (!import)
            continue;
        uintptr_t slot = object->base + relocation->r_offset;
        uintptr_t now = atomic_load((_Atomic uintptr_t *)slot);
        if (now == (uintptr_t)import->replacement) {
            intercepted++;
            continue;
        }
        /* A call that was not made yet may lead to the dynamic linker; a pointer that is not the function's is the
         * program's own affair. */
        if (type != CALL && import->original && now != (uintptr_t)import->original)
            continue;
        if (!replace_slot(object, slot, import->replacement))
            return -1;
        intercepted++;
    }
    return intercepted;
}

int heddle_object_intercept(const heddle_object *object, const heddle_import *imports, size_t count)
{
    if (!object->symbols || !object->names)
        return 0;
    int calls = replace_imports(object, object->calls, object->call_count, imports, count);
    int data = replace_imports(object, object->data, object->data_count, imports, count);
    return calls < 0 || data < 0 ? -1 : calls + data;
}

#elif !defined(__APPLE__) /* for which there is import_table_macos.c */

struct heddle_object {
    int nothing;
};

const char *heddle_imports_unsupported(void)
{
    return "import tables are changed on macOS, and on Linux on x86-64 and ARM64";
}

void heddle_objects_each(void (*visit)(const heddle_object *object, void *data), void *data)
{
    (void)visit;
    (void)data;
}

uint64_t heddle_objects_unloaded(void)
{
    return 0;
}

const char *heddle_object_path(const heddle_object *object)
{
    (void)object;
    return "";
}

uintptr_t heddle_object_base(const heddle_object *object)
{
    (void)object;
    return 0;
}

bool heddle_object_contains(const heddle_object *object, const void *address)
{
    (void)object;
    (void)address;
    return false;
}

int heddle_object_intercept(const heddle_object *object, const heddle_import *imports, size_t count)
{
    (void)object;
    (void)imports;
    (void)count;
    return 0;
}

#endif
