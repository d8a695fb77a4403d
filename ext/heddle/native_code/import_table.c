#include "native_code/import_table.h"

#ifdef HEDDLE_ELF_OBJECTS

#include <sys/mman.h>

const char *heddle_imports_unsupported(void)
{
    return NULL;
}

static uintptr_t page_of(uintptr_t address)
{
    return address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

/*
 * Is the page read-only? Rounds addresses like the dynamic linker, which makes only whole pages read-only after
 * relocation.
 */
static bool is_read_only(const heddle_object *object, uintptr_t page)
{
    for (int i = 0; i < object->part_count; i++) {
        const ElfW(Phdr) *part = &object->parts[i];
        uintptr_t start = object->base + part->p_vaddr;
        if (part->p_type == PT_GNU_RELRO && page >= page_of(start) && page < page_of(start + part->p_memsz))
            return true;
    }
    return false;
}

static bool replace_slot(const heddle_object *object, uintptr_t slot, void *function)
{
    uintptr_t page = page_of(slot);
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    bool read_only = is_read_only(object, page);
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
        if ((type != HEDDLE_RELOCATION_CALL && type != HEDDLE_RELOCATION_POINTER && type != HEDDLE_RELOCATION_WORD) ||
            (type == HEDDLE_RELOCATION_WORD && relocation->r_addend))
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
        /*
         * With lazy binding, the entry for a call points to a stub until the first call; the stub calls the dynamic
         * linker. Any other entry should contain the function's address. An entry with another address was changed by
         * the program, and is left as it is.
         */
        if (type != HEDDLE_RELOCATION_CALL && import->original && now != (uintptr_t)import->original)
            continue;
        if (!replace_slot(object, slot, import->replacement))
            return -1;
        intercepted++;
    }
    return intercepted;
}

int heddle_object_intercept(const heddle_object *found, const heddle_import *imports, size_t count)
{
    heddle_object object = *found;
    heddle_elf_object_read_tables(&object);
    if (!object.symbols || !object.names)
        return 0;
    int calls = replace_imports(&object, object.calls, object.call_count, imports, count);
    int data = replace_imports(&object, object.data, object.data_count, imports, count);
    return calls < 0 || data < 0 ? -1 : calls + data;
}

#else

const char *heddle_imports_unsupported(void)
{
    return "import tables can be changed only on Linux on x86-64 and ARM64";
}

int heddle_object_intercept(const heddle_object *object, const heddle_import *imports, size_t count)
{
    return 0;
}

#endif
