#include "native_code/elf_object.h"

const char *heddle_library_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool heddle_library_listed(const char *path, const char *const *names, size_t count)
{
    const char *file = heddle_library_file(path);
    for (size_t i = 0; i < count; i++) {
        if (names[i][0] && strncmp(file, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

#ifdef HEDDLE_ELF_OBJECTS

/*
 * When glibc loads an object, it relocates the addresses in the object's dynamic section. With musl these addresses
 * remain relative to the object's base.
 */
static const void *dynamic_address(const heddle_object *object, const ElfW(Dyn) *entry)
{
    uintptr_t value = entry->d_un.d_ptr;
    return (const void *)(value < object->base ? value + object->base : value);
}

static void read_entry(heddle_object *object, const ElfW(Dyn) *entry)
{
    switch (entry->d_tag) {
    case DT_JMPREL: object->calls = dynamic_address(object, entry); break;
    case DT_PLTRELSZ: object->call_count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
    case DT_RELA: object->data = dynamic_address(object, entry); break;
    case DT_RELASZ: object->data_count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
    case DT_SYMTAB: object->symbols = dynamic_address(object, entry); break;
    case DT_STRTAB: object->names = dynamic_address(object, entry); break;
    case DT_REL: object->unknown = "relocations without addends (DT_REL)"; break;
    case DT_TEXTREL: object->unknown = "text relocations"; break;
    case DT_AUXILIARY:
    case DT_FILTER: object->unknown = "a filter (DT_FILTER or DT_AUXILIARY)"; break;
    }
}

/* Reads an entry that refers to the table of names, which read_entry must have found before. */
static void read_named_entry(heddle_object *object, const ElfW(Dyn) *entry)
{
    if (entry->d_tag == DT_SONAME)
        object->soname = object->names + entry->d_un.d_val;
    if (entry->d_tag != DT_NEEDED)
        return;
    if (object->needed_count == HEDDLE_MOST_NEEDED)
        object->unknown = "too many dependencies";
    else
        object->needed[object->needed_count++] = object->names + entry->d_un.d_val;
}

void heddle_elf_object_read_tables(heddle_object *object)
{
    for (int i = 0; i < object->part_count; i++) {
        if (object->parts[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *first = (const ElfW(Dyn) *)(object->base + object->parts[i].p_vaddr), *entry;
        for (entry = first; entry->d_tag != DT_NULL; entry++)
            read_entry(object, entry);
        for (entry = first; entry->d_tag != DT_NULL && object->names; entry++)
            read_named_entry(object, entry);
    }
}

typedef struct {
    bool (*visit)(heddle_object *object, void *data);
    void *data;
} visitor;

static int visit_object(struct dl_phdr_info *info, size_t size, void *data)
{
    visitor *to = data;
    heddle_object object = {
        .path = info->dlpi_name ? info->dlpi_name : "",
        .base = info->dlpi_addr,
        .parts = info->dlpi_phdr,
        .part_count = info->dlpi_phnum,
    };
    return strncmp(object.path, "linux-vdso", 10) != 0 && to->visit(&object, to->data);
}

bool heddle_objects_each(bool (*visit)(heddle_object *object, void *data), void *data)
{
    visitor to = {.visit = visit, .data = data};
    return dl_iterate_phdr(visit_object, &to) != 0;
}

static int read_counts(struct dl_phdr_info *info, size_t size, void *data)
{
    *(heddle_object_counts *)data = (heddle_object_counts){.loaded = info->dlpi_adds, .unloaded = info->dlpi_subs};
    return 1; /* each object has the same counters, so the first one suffices */
}

heddle_object_counts heddle_objects_count(void)
{
    heddle_object_counts counts = {0};
    dl_iterate_phdr(read_counts, &counts);
    return counts;
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

#else

bool heddle_objects_each(bool (*visit)(heddle_object *object, void *data), void *data)
{
    return false;
}

heddle_object_counts heddle_objects_count(void)
{
    return (heddle_object_counts){0};
}

bool heddle_object_contains(const heddle_object *object, const void *address)
{
    return false;
}

#endif
