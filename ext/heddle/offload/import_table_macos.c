/* Replaces imported functions of libraries on macOS. */

#include "offload/import_table.h"

#ifdef __APPLE__

#include "offload/mach_o.h"

#include <mach-o/dyld.h>
#include <mach/mach.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

struct heddle_object {
    const void *header;
    const char *path;
};

const char *heddle_imports_unsupported(void)
{
    return NULL;
}

void heddle_objects_each(void (*visit)(const heddle_object *object, void *data), void *data)
{
    for (uint32_t i = 0; i < _dyld_image_count(); i++) {
        const char *path = _dyld_get_image_name(i);
        /* Image 0 is the program. */
        heddle_object object = {.header = _dyld_get_image_header(i), .path = path && i > 0 ? path : ""};
        if (object.header && heddle_mach_o_readable(object.header))
            visit(&object, data);
    }
}

static _Atomic uint64_t unloaded;

static void note_unloading(const struct mach_header *header, intptr_t slide)
{
    (void)header;
    (void)slide;
    atomic_fetch_add(&unloaded, 1);
}

/* Counts from its first call on; no library is remembered before that. */
uint64_t heddle_objects_unloaded(void)
{
    static atomic_flag registered = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&registered))
        _dyld_register_func_for_remove_image(note_unloading);
    return atomic_load(&unloaded);
}

const char *heddle_object_path(const heddle_object *object)
{
    return object->path;
}

uintptr_t heddle_object_base(const heddle_object *object)
{
    return (uintptr_t)object->header;
}

bool heddle_object_contains(const heddle_object *object, const void *address)
{
    return heddle_mach_o_contains(object->header, address);
}

static bool replace_slot(const heddle_mach_o_import *import, void *function)
{
    vm_size_t size = (vm_size_t)sysconf(_SC_PAGESIZE);
    vm_address_t page = (vm_address_t)import->slot & ~(size - 1);
    /* A copy: the page may be shared with other processes. */
    if (import->read_only && vm_protect(mach_task_self(), page, size, false,
                                        VM_PROT_READ | VM_PROT_WRITE | VM_PROT_COPY) != KERN_SUCCESS)
        return false;
    atomic_store((_Atomic uintptr_t *)import->slot, (uintptr_t)function);
    if (import->read_only)
        vm_protect(mach_task_self(), page, size, false, VM_PROT_READ);
    return true;
}

typedef struct {
    const heddle_import *imports;
    size_t count;
    int intercepted;
} interception;

static bool intercept_import(const heddle_mach_o_import *import, void *data)
{
    interception *self = data;
    for (size_t i = 0; i < self->count; i++) {
        const heddle_import *wanted = &self->imports[i];
        if (!heddle_mach_o_named(import, wanted->name))
            continue;
        uintptr_t now = atomic_load((_Atomic uintptr_t *)import->slot);
        if (now != (uintptr_t)wanted->replacement) {
            /* A pointer with another value than the function's was set by the program. */
            if (!import->lazy && wanted->original && now != (uintptr_t)wanted->original)
                return true;
            if (!replace_slot(import, wanted->replacement)) {
                self->intercepted = -1;
                return false;
            }
        }
        self->intercepted++;
        return true;
    }
    return true;
}

int heddle_object_intercept(const heddle_object *object, const heddle_import *imports, size_t count)
{
    interception self = {.imports = imports, .count = count};
    heddle_mach_o_imports(object->header, intercept_import, &self);
    return self.intercepted;
}

#endif
