#include "offload/library_judge.h"

#include <stdarg.h>

bool heddle_library_is_libc(const char *path)
{
    static const char *const names[] = {"libc.so", "libc-", "libm.so", "libm-", "libpthread.so", "libpthread-",
                                        "librt.so", "librt-", "libdl.so", "libdl-", "ld-linux", "ld-musl", "libc.musl"};
    return heddle_library_listed(path, names, sizeof(names) / sizeof(names[0]));
}

#ifdef HEDDLE_ELF_OBJECTS

#include <dlfcn.h>

enum { MOST_OBJECTS = 48 }; /* if a library and those that it needs are more than this, the library is refused */

typedef struct {
    heddle_object objects[MOST_OBJECTS];
    size_t count;
    const void *ruby;
    heddle_judgement *verdict;
} judging;

__attribute__((format(printf, 2, 3))) static bool refuse(judging *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(self->verdict->reason, sizeof(self->verdict->reason), format, arguments);
    va_end(arguments);
    return false;
}

/* -- loaded objects ------------------------------------------------------------------------------------------------ */

/* A search for a loaded object, by an address in it or by the name that another library uses for it. */
typedef struct {
    const void *address;
    const char *name;
    heddle_object *found;
} search;

static bool compare_object(heddle_object *object, void *data)
{
    search *wanted = data;
    if (!wanted->name && !heddle_object_contains(object, wanted->address))
        return false;
    heddle_elf_object_read_tables(object);
    if (wanted->name && strcmp(heddle_library_file(object->path), heddle_library_file(wanted->name)) != 0 &&
        !(object->soname && strcmp(object->soname, wanted->name) == 0))
        return false;
    *wanted->found = *object;
    return true;
}

/*
 * Copies the object's record into `found`. The names and tables in the record remain readable, because the judged
 * library is in use and keeps its dependencies loaded.
 */
static bool find_object(const void *address, const char *name, heddle_object *found)
{
    search wanted = {.address = address, .name = name, .found = found};
    return heddle_objects_each(compare_object, &wanted);
}

static bool is_system(const heddle_object *object, const void *ruby)
{
    return heddle_library_is_libc(object->path) || (ruby && heddle_object_contains(object, ruby));
}

/*
 * Adds the library's direct and indirect dependencies to `objects`, except libc and Ruby. Returns false if one of them
 * was not found, or if there are too many.
 */
static bool collect_needed(judging *self)
{
    for (size_t i = 0; i < self->count; i++) {
        for (size_t n = 0; n < self->objects[i].needed_count; n++) {
            const char *name = self->objects[i].needed[n];
            heddle_object found;
            if (heddle_library_is_libc(name))
                continue;
            if (!find_object(NULL, name, &found))
                return refuse(self, "needs %s, which was not found", name);
            bool known = is_system(&found, self->ruby);
            for (size_t k = 0; k < self->count && !known; k++)
                known = self->objects[k].base == found.base && self->objects[k].parts == found.parts;
            if (known)
                continue;
            if (self->count == MOST_OBJECTS)
                return refuse(self, "needs more than %d libraries", MOST_OBJECTS - 1);
            self->objects[self->count++] = found;
        }
    }
    return true;
}

/* -- the imports of a library -------------------------------------------------------------------------------------- */

static bool is_provided_by_judged(judging *self, const char *name, const void *address)
{
    heddle_object provider;
    if (!address || !find_object(address, NULL, &provider))
        return false;
    if (self->ruby && heddle_object_contains(&provider, self->ruby))
        return heddle_ruby_function_neutral(name);
    /* In libm, only the functions for the rounding mode and the floating-point flags (fe...) depend on the thread. */
    const char *file = heddle_library_file(provider.path);
    if (strncmp(file, "libm.so", 7) == 0 || strncmp(file, "libm-", 5) == 0)
        return strncmp(name, "fe", 2) != 0;
    for (size_t i = 0; i < self->count; i++) {
        if (self->objects[i].base == provider.base && self->objects[i].parts == provider.parts)
            return true;
    }
    return false;
}

static bool judge_import(judging *self, const heddle_object *object, const char *name)
{
    if (heddle_libc_function_neutral(name))
        return true;
    const void *address = dlsym(RTLD_DEFAULT, name);
    if (!address) {
        void *library = dlopen(object->path, RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            address = dlsym(library, name);
            dlclose(library);
        }
    }
    if (is_provided_by_judged(self, name, address))
        return true;
    return refuse(self, "%s imports %s", heddle_library_file(object->path), name);
}

static bool judge_relocations(judging *self, const heddle_object *object, const ElfW(Rela) *relocations, size_t count)
{
    for (size_t i = 0; relocations && i < count; i++) {
        const ElfW(Rela) *relocation = &relocations[i];
        uint32_t type = (uint32_t)ELF64_R_TYPE(relocation->r_info);
        if (type == HEDDLE_RELOCATION_NONE || type == HEDDLE_RELOCATION_RELATIVE || type == HEDDLE_RELOCATION_RESOLVED)
            continue;
        if (type != HEDDLE_RELOCATION_CALL && type != HEDDLE_RELOCATION_POINTER && type != HEDDLE_RELOCATION_WORD)
            return refuse(self, "%s has thread-local storage (relocation %u)", heddle_library_file(object->path), type);
        if (!ELF64_R_SYM(relocation->r_info))
            continue;
        const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(relocation->r_info)];
        uintptr_t value = *(const uintptr_t *)(object->base + relocation->r_offset);
        bool absent = !value && symbol->st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) == STB_WEAK;
        if (absent || (symbol->st_shndx != SHN_UNDEF && heddle_object_contains(object, (const void *)value)))
            continue;
        if (!judge_import(self, object, object->names + symbol->st_name))
            return false;
    }
    return true;
}

/* -- the code of a library ----------------------------------------------------------------------------------------- */

/*
 * Finds instructions that depend on the thread, although the library imports nothing for them: system calls, reads of
 * the thread pointer, and possible reads of a thread's CPU clock. Returns a description of the first one, or NULL.
 */
static const char *instruction_in(const unsigned char *code, size_t size)
{
#if defined(__x86_64__)
    for (size_t i = 0; i + 1 < size; i++) {
        if ((code[i] == 0x0f && code[i + 1] == 0x05) || (code[i] == 0xcd && code[i + 1] == 0x80))
            return "a system call instruction";
        /* mov %fs:0, register: reads the address of the thread's own block */
        if (code[i] == 0x64 && i + 8 < size && (code[i + 1] & 0xf8) == 0x48 && code[i + 2] == 0x8b &&
            (code[i + 3] & 0xc7) == 0x04 && code[i + 4] == 0x25 && memcmp(code + i + 5, "\0\0\0\0", 4) == 0)
            return "an instruction that reads the thread pointer";
        /* mov $3, %edi or push $3, pop %rdi: perhaps the argument CLOCK_THREAD_CPUTIME_ID for clock_gettime */
        if ((code[i] == 0xbf && i + 4 < size && memcmp(code + i + 1, "\3\0\0\0", 4) == 0) ||
            (code[i] == 0x6a && code[i + 1] == 3 && i + 2 < size && code[i + 2] == 0x5f))
            return "a possible read of a thread's CPU clock";
    }
#else
    for (size_t i = 0; i + 3 < size; i += 4) {
        uint32_t word;
        memcpy(&word, code + i, sizeof(word));
        if ((word & 0xffe0001f) == 0xd4000001)
            return "a system call instruction";
        if ((word & 0xffffffe0) == 0xd53bd040 || (word & 0xffffffe0) == 0xd53bd060)
            return "an instruction that reads the thread pointer";
        if (word == 0x52800060)
            return "a possible read of a thread's CPU clock";
    }
#endif
    return NULL;
}

static bool judge_code(judging *self, const heddle_object *object)
{
    for (int i = 0; i < object->part_count; i++) {
        const ElfW(Phdr) *part = &object->parts[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        if (!(part->p_flags & PF_R) || (part->p_flags & PF_W))
            return refuse(self, "%s has unreadable or writable code", heddle_library_file(object->path));
        const char *found = instruction_in((const unsigned char *)(object->base + part->p_vaddr), part->p_filesz);
        if (found)
            return refuse(self, "%s has %s in its code", heddle_library_file(object->path), found);
    }
    return true;
}

/* -- the judgment -------------------------------------------------------------------------------------------------- */

static bool judge_storage(judging *self, const heddle_object *object)
{
    for (int i = 0; i < object->part_count; i++) {
        if (object->parts[i].p_type == PT_TLS)
            return refuse(self, "%s has thread-local storage", heddle_library_file(object->path));
    }
    if (object->unknown)
        return refuse(self, "%s has %s", heddle_library_file(object->path), object->unknown);
    return !object->call_count || (object->symbols && object->names) ||
           refuse(self, "%s has no symbols", heddle_library_file(object->path));
}

static bool judge_library(judging *self)
{
    /* The cheap checks come first, because most libraries fail one of them. */
    for (size_t i = 0; i < self->count; i++) {
        if (!judge_storage(self, &self->objects[i]))
            return false;
    }
    for (size_t i = 0; i < self->count; i++) {
        const heddle_object *one = &self->objects[i];
        if (!judge_relocations(self, one, one->calls, one->call_count) ||
            !judge_relocations(self, one, one->data, one->data_count))
            return false;
    }
    for (size_t i = 0; i < self->count; i++) {
        if (!judge_code(self, &self->objects[i]))
            return false;
    }
    return true;
}

heddle_judgement heddle_library_judge(const void *address, const void *ruby)
{
    heddle_judgement verdict = {0};
    judging *self = calloc(1, sizeof(*self));
    if (!self) {
        snprintf(verdict.reason, sizeof(verdict.reason), "out of memory");
        return verdict;
    }
    self->ruby = ruby;
    self->verdict = &verdict;
    if (!find_object(address, NULL, &self->objects[0]))
        refuse(self, "the function does not belong to a library");
    else if (is_system(&self->objects[0], ruby))
        refuse(self, "the functions of libc and of Ruby are judged one by one");
    else {
        self->count = 1;
        verdict.safe = collect_needed(self) && judge_library(self);
    }
    free(self);
    return verdict;
}

bool heddle_library_needs_only(const void *address, const void *ruby, const char *const *names, size_t count,
                               char reason[HEDDLE_JUDGEMENT_REASON])
{
    heddle_object library, found;
    if (!find_object(address, NULL, &library) || library.unknown) {
        snprintf(reason, HEDDLE_JUDGEMENT_REASON, "its file can't be read");
        return false;
    }
    for (size_t i = 0; i < library.needed_count; i++) {
        const char *name = library.needed[i];
        bool known = heddle_library_is_libc(name) || (find_object(NULL, name, &found) && is_system(&found, ruby));
        for (size_t k = 0; k < count && !known; k++)
            known = strncmp(heddle_library_file(name), names[k], strlen(names[k])) == 0;
        if (!known) {
            snprintf(reason, HEDDLE_JUDGEMENT_REASON, "needs %s, with which it was not tested", name);
            return false;
        }
    }
    return true;
}

#else

heddle_judgement heddle_library_judge(const void *address, const void *ruby)
{
    heddle_judgement verdict = {.reason = "Heddle can examine libraries on Linux on x86-64 and ARM64 only"};
    return verdict;
}

/* On other systems, it is not known which libraries a library needs. So this check accepts every library. */
bool heddle_library_needs_only(const void *address, const void *ruby, const char *const *names, size_t count,
                               char reason[HEDDLE_JUDGEMENT_REASON])
{
    reason[0] = '\0';
    return true;
}

#endif
