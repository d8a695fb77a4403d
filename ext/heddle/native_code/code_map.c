#include "native_code/code_map.h"

#include "native_code/elf_object.h"

typedef struct {
    uintptr_t start, end;
    uint32_t library;
} code_range;

/*
 * Beginnings of the file names of system libraries. These libraries call functions of other system libraries, and
 * callbacks that their callers have passed to them. They call no other functions.
 */
static const char *const system_libraries[] = {
    "libc.",    "libc-2",    "ld-linux",  "ld-musl", "ld-2",     "libpthread", "libm.",    "libm-2",     "libdl",
    "librt",    "libgmp.",   "libcrypt.", "libgcc_s", "libasan", "libubsan",   "libtsan",
};

typedef struct {
    heddle_code_kind kind;
    char *name;
} listed_name;

static const void *ruby_address;
static listed_name *listed;
static size_t listed_count;

static heddle_library *libraries;
static size_t library_count, library_capacity;
static code_range *ranges;
static size_t range_count, range_capacity;

static heddle_object_counts counts; /* the counts at the last refresh */
static bool current;
/* The range that contains all code of a kind; the index is the number of the kind's bit. */
enum { KINDS = 6 };
static struct {
    uintptr_t lowest, highest;
} bounds[KINDS];
static uint64_t version;

void heddle_code_map_set_ruby(const void *ruby)
{
    ruby_address = ruby;
    current = false;
}

bool heddle_code_map_list(heddle_code_kind kind, const char *const *names, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < listed_count; i++) {
        if (listed[i].kind == kind)
            free(listed[i].name);
        else
            listed[kept++] = listed[i];
    }
    listed_count = kept;
    current = false;
    listed_name *more = realloc(listed, (kept + count + 1) * sizeof(*more));
    if (!more)
        return false;
    listed = more;
    for (size_t i = 0; i < count; i++) {
        char *name = strdup(names[i]);
        if (!name)
            return false;
        listed[listed_count++] = (listed_name){.kind = kind, .name = name};
    }
    return true;
}

/* -- kinds of libraries ------------------------------------------------------------------------------------------ */

static bool ends_with(const char *path, const char *name)
{
    const char *dot = strrchr(path, '.');
    size_t length = strlen(name);
    if (!dot || (size_t)(dot - path) < length + 1)
        return false;
    return dot[-(ptrdiff_t)length - 1] == '/' && strncmp(dot - length, name, length) == 0;
}

static heddle_code_kind kind_by_path(const char *path)
{
    for (size_t i = 0; i < listed_count; i++) {
        if (ends_with(path, listed[i].name))
            return listed[i].kind;
    }
    bool system = heddle_library_listed(path, system_libraries, sizeof(system_libraries) / sizeof(system_libraries[0]));
    return system ? HEDDLE_CODE_SYSTEM : HEDDLE_CODE_FOREIGN;
}

/* -- reading the linker's list ----------------------------------------------------------------------------------- */

static bool reserve_room(void **list, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity ? *capacity * 2 : 128;
    void *more = realloc(*list, wanted * size);
    if (!more)
        return false;
    *list = more;
    *capacity = wanted;
    return true;
}

static bool add_ranges(const heddle_object *object, uint32_t library)
{
#ifdef HEDDLE_ELF_OBJECTS
    for (int i = 0; i < object->part_count; i++) {
        const ElfW(Phdr) *part = &object->parts[i];
        uintptr_t start = object->base + part->p_vaddr;
        if (part->p_type == PT_GNU_EH_FRAME)
            libraries[library].unwind_table = (const uint8_t *)start;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        if (!reserve_room((void **)&ranges, &range_capacity, range_count, sizeof(*ranges)))
            return false;
        ranges[range_count++] = (code_range){.start = start, .end = start + part->p_memsz, .library = library};
    }
#endif
    return true;
}

/* Adds a library and its ranges of code. When out of memory, returns true, which ends the visits. */
static bool add_library(heddle_object *object, void *unused)
{
    char *path = strdup(object->path);
    if (!path || !reserve_room((void **)&libraries, &library_capacity, library_count, sizeof(*libraries))) {
        free(path);
        return true;
    }
    heddle_code_kind kind = kind_by_path(path);
    if (heddle_object_contains(object, ruby_address))
        kind = HEDDLE_CODE_RUBY;
    else if (heddle_object_contains(object, (void *)&heddle_code_map_refresh))
        kind = HEDDLE_CODE_HEDDLE;
    libraries[library_count++] = (heddle_library){.path = path, .kind = kind};
    return !add_ranges(object, (uint32_t)(library_count - 1));
}

static int compare_ranges(const void *left, const void *right)
{
    uintptr_t a = ((const code_range *)left)->start, b = ((const code_range *)right)->start;
    return a < b ? -1 : a > b;
}

static void clear_map(void)
{
    while (library_count)
        free((char *)libraries[--library_count].path);
    range_count = 0;
    current = false;
}

static void find_bounds(void)
{
    memset(bounds, 0, sizeof(bounds));
    for (size_t i = 0; i < range_count; i++) {
        int kind = __builtin_ctz(libraries[ranges[i].library].kind);
        if (!bounds[kind].highest)
            bounds[kind].lowest = ranges[i].start;
        bounds[kind].highest = ranges[i].end;
    }
}

bool heddle_code_map_refresh(void)
{
    heddle_object_counts now = heddle_objects_count();
    if (current && now.loaded == counts.loaded && now.unloaded == counts.unloaded)
        return true;
    counts = now;
    clear_map();
    if (heddle_objects_each(add_library, NULL) || !range_count) { /* without HEDDLE_ELF_OBJECTS, no object is visited */
        clear_map();
        return false;
    }
    qsort(ranges, range_count, sizeof(*ranges), compare_ranges);
    find_bounds();
    current = true;
    version++;
    return true;
}

uint64_t heddle_code_map_version(void)
{
    return version;
}

/* -- lookup ------------------------------------------------------------------------------------------------------ */

const heddle_library *heddle_code_map_find(uintptr_t address)
{
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (address < ranges[middle].start)
            high = middle;
        else if (address >= ranges[middle].end)
            low = middle + 1;
        else
            return &libraries[ranges[middle].library];
    }
    return NULL;
}

void heddle_code_map_find_bounds(unsigned kinds, uintptr_t *lowest, uintptr_t *highest)
{
    *lowest = *highest = 0;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        if (!(kinds >> kind & 1) || !bounds[kind].highest)
            continue;
        if (!*highest || bounds[kind].lowest < *lowest)
            *lowest = bounds[kind].lowest;
        if (bounds[kind].highest > *highest)
            *highest = bounds[kind].highest;
    }
}

bool heddle_code_map_has(unsigned kinds)
{
    uintptr_t lowest, highest;
    heddle_code_map_find_bounds(kinds, &lowest, &highest);
    return highest;
}
