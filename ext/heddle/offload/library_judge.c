#include "offload/library_judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool heddle_library_is_libc(const char *path)
{
    static const char *const names[] = {"libc.so", "libc-", "libm.so", "libm-", "libpthread.so", "libpthread-",
                                        "librt.so", "librt-", "libdl.so", "libdl-", "ld-linux", "ld-musl", "libc.musl"};
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(file, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__x86_64__)
enum {
    CALL = R_X86_64_JUMP_SLOT, POINTER = R_X86_64_GLOB_DAT, WORD = R_X86_64_64, RELATIVE = R_X86_64_RELATIVE,
    RESOLVED = R_X86_64_IRELATIVE, NONE = R_X86_64_NONE,
};
#else
enum {
    CALL = R_AARCH64_JUMP_SLOT, POINTER = R_AARCH64_GLOB_DAT, WORD = R_AARCH64_ABS64, RELATIVE = R_AARCH64_RELATIVE,
    RESOLVED = R_AARCH64_IRELATIVE, NONE = R_AARCH64_NONE,
};
#endif

enum {
    MOST_OBJECTS = 48, /* a library that needs more is not judged */
    MOST_NEEDED = 64,  /* … of one library */
};

typedef struct {
    const char *path;
    uintptr_t base;
    const ElfW(Phdr) *parts;
    int part_count;
    const ElfW(Rela) *calls, *data;
    size_t call_count, data_count;
    const ElfW(Sym) *symbols;
    const char *names, *soname;
    const char *needed[MOST_NEEDED];
    size_t needed_count;
    const char *unknown; /* something in it that this code can't read */
} object;

typedef struct {
    object objects[MOST_OBJECTS];
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

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* -- what is loaded ------------------------------------------------------------------------------------------------ */

static const void *dynamic_address(const object *object, const ElfW(Dyn) *entry)
{
    uintptr_t value = entry->d_un.d_ptr; /* musl leaves it relative */
    return (const void *)(value < object->base ? value + object->base : value);
}

static void read_dynamic(object *object, const ElfW(Dyn) *first)
{
    const ElfW(Dyn) *entry;
    for (entry = first; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_JMPREL: object->calls = dynamic_address(object, entry); break;
        case DT_PLTRELSZ: object->call_count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_RELA: object->data = dynamic_address(object, entry); break;
        case DT_RELASZ: object->data_count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_SYMTAB: object->symbols = dynamic_address(object, entry); break;
        case DT_STRTAB: object->names = dynamic_address(object, entry); break;
        case DT_REL: object->unknown = "relocations of another kind"; break;
        case DT_TEXTREL: object->unknown = "relocations in its code"; break;
        case DT_AUXILIARY:
        case DT_FILTER: object->unknown = "functions that another library filters"; break;
        }
    }
    for (entry = first; entry->d_tag != DT_NULL && object->names; entry++) {
        if (entry->d_tag == DT_SONAME)
            object->soname = object->names + entry->d_un.d_val;
        if (entry->d_tag != DT_NEEDED)
            continue;
        if (object->needed_count == MOST_NEEDED)
            object->unknown = "more libraries that it needs than are looked at";
        else
            object->needed[object->needed_count++] = object->names + entry->d_un.d_val;
    }
}

static bool object_contains(const object *object, uintptr_t address)
{
    for (int i = 0; i < object->part_count; i++) {
        const ElfW(Phdr) *part = &object->parts[i];
        uintptr_t start = object->base + part->p_vaddr;
        if (part->p_type == PT_LOAD && address >= start && address < start + part->p_memsz)
            return true;
    }
    return false;
}

/* By an address in it, or by what another library calls it. */
typedef struct {
    uintptr_t address;
    const char *name;
    object *found;
} search;

static int visit_object(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    search *wanted = data;
    object one = {
        .path = info->dlpi_name ? info->dlpi_name : "",
        .base = info->dlpi_addr,
        .parts = info->dlpi_phdr,
        .part_count = info->dlpi_phnum,
    };
    if (!wanted->name && !object_contains(&one, wanted->address))
        return 0;
    for (int i = 0; i < one.part_count; i++) {
        if (one.parts[i].p_type == PT_DYNAMIC)
            read_dynamic(&one, (const ElfW(Dyn) *)(one.base + one.parts[i].p_vaddr));
    }
    if (wanted->name && strcmp(file_of(one.path), file_of(wanted->name)) != 0 &&
        !(one.soname && strcmp(one.soname, wanted->name) == 0))
        return 0;
    *wanted->found = one;
    return 1;
}

/* Names and tables stay readable: the library is in use, and holds those that it needs. */
static bool find_object(uintptr_t address, const char *name, object *found)
{
    search wanted = {.address = address, .name = name, .found = found};
    return dl_iterate_phdr(visit_object, &wanted) == 1;
}

static bool is_system(const object *object, const void *ruby)
{
    return heddle_library_is_libc(object->path) || (ruby && object_contains(object, (uintptr_t)ruby));
}

/* Adds what the library needs, and what that needs. */
static bool collect_needed(judging *self)
{
    for (size_t i = 0; i < self->count; i++) {
        for (size_t n = 0; n < self->objects[i].needed_count; n++) {
            const char *name = self->objects[i].needed[n];
            object found;
            if (heddle_library_is_libc(name))
                continue;
            if (!find_object(0, name, &found))
                return refuse(self, "needs %s, which was not found", name);
            bool known = is_system(&found, self->ruby);
            for (size_t k = 0; k < self->count && !known; k++)
                known = self->objects[k].base == found.base && self->objects[k].parts == found.parts;
            if (known)
                continue;
            if (self->count == MOST_OBJECTS)
                return refuse(self, "needs more than %d libraries", MOST_OBJECTS);
            self->objects[self->count++] = found;
        }
    }
    return true;
}

/* -- what it imports ----------------------------------------------------------------------------------------------- */

static bool is_provided_by_judged(judging *self, const char *name, const void *address)
{
    object provider;
    if (!address || !find_object((uintptr_t)address, NULL, &provider))
        return false;
    if (self->ruby && object_contains(&provider, (uintptr_t)self->ruby))
        return heddle_ruby_function_neutral(name);
    /* Mathematics, but for the thread's rounding mode and floating-point flags. */
    const char *file = file_of(provider.path);
    if (strncmp(file, "libm.so", 7) == 0 || strncmp(file, "libm-", 5) == 0)
        return strncmp(name, "fe", 2) != 0;
    for (size_t i = 0; i < self->count; i++) {
        if (self->objects[i].base == provider.base && self->objects[i].parts == provider.parts)
            return true;
    }
    return false;
}

static bool judge_import(judging *self, const object *object, const char *name)
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
    return refuse(self, "%s imports %s", file_of(object->path), name);
}

static bool judge_relocations(judging *self, const object *object, const ElfW(Rela) *relocations, size_t count)
{
    for (size_t i = 0; relocations && i < count; i++) {
        const ElfW(Rela) *relocation = &relocations[i];
        uint32_t type = (uint32_t)ELF64_R_TYPE(relocation->r_info);
        if (type == NONE || type == RELATIVE || type == RESOLVED)
            continue;
        if (type != CALL && type != POINTER && type != WORD)
            return refuse(self, "%s has thread-local storage (relocation %u)", file_of(object->path), type);
        if (!ELF64_R_SYM(relocation->r_info))
            continue;
        const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(relocation->r_info)];
        uintptr_t value = *(const uintptr_t *)(object->base + relocation->r_offset);
        bool absent = !value && symbol->st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) == STB_WEAK;
        if (absent || (symbol->st_shndx != SHN_UNDEF && object_contains(object, value)))
            continue;
        if (!judge_import(self, object, object->names + symbol->st_name))
            return false;
    }
    return true;
}

/* -- its code ------------------------------------------------------------------------------------------------------ */

/* Instructions that ask the kernel for something, or for the calling thread, without any import. */
static const char *instruction_in(const unsigned char *code, size_t size)
{
#if defined(__x86_64__)
    for (size_t i = 0; i + 1 < size; i++) {
        if ((code[i] == 0x0f && code[i + 1] == 0x05) || (code[i] == 0xcd && code[i + 1] == 0x80))
            return "a system call instruction";
        /* mov %fs:0, register: the address of the thread's own block */
        if (code[i] == 0x64 && i + 8 < size && (code[i + 1] & 0xf8) == 0x48 && code[i + 2] == 0x8b &&
            (code[i + 3] & 0xc7) == 0x04 && code[i + 4] == 0x25 && memcmp(code + i + 5, "\0\0\0\0", 4) == 0)
            return "an instruction that reads the thread pointer";
        /* mov $3, %edi or push $3, pop %rdi, before a call of clock_gettime: CLOCK_THREAD_CPUTIME_ID */
        if ((code[i] == 0xbf && i + 4 < size && memcmp(code + i + 1, "\3\0\0\0", 4) == 0) ||
            (code[i] == 0x6a && code[i + 1] == 3 && i + 2 < size && code[i + 2] == 0x5f))
            return "what may be a thread's CPU clock";
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
            return "what may be a thread's CPU clock";
    }
#endif
    return NULL;
}

static bool judge_code(judging *self, const object *object)
{
    for (int i = 0; i < object->part_count; i++) {
        const ElfW(Phdr) *part = &object->parts[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        if (!(part->p_flags & PF_R) || (part->p_flags & PF_W))
            return refuse(self, "%s has code that can't be read, or can be changed", file_of(object->path));
        const char *found = instruction_in((const unsigned char *)(object->base + part->p_vaddr), part->p_filesz);
        if (found)
            return refuse(self, "%s has %s in its code", file_of(object->path), found);
    }
    return true;
}

/* -- the judgement ------------------------------------------------------------------------------------------------- */

static bool judge_storage(judging *self, const object *object)
{
    for (int i = 0; i < object->part_count; i++) {
        if (object->parts[i].p_type == PT_TLS)
            return refuse(self, "%s has thread-local storage", file_of(object->path));
    }
    if (object->unknown)
        return refuse(self, "%s has %s", file_of(object->path), object->unknown);
    return !object->call_count || (object->symbols && object->names) ||
           refuse(self, "%s has no symbols", file_of(object->path));
}

static bool judge_library(judging *self)
{
    /* Cheap first: few libraries pass all of it. */
    for (size_t i = 0; i < self->count; i++) {
        if (!judge_storage(self, &self->objects[i]))
            return false;
    }
    for (size_t i = 0; i < self->count; i++) {
        const object *one = &self->objects[i];
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
        snprintf(verdict.reason, sizeof(verdict.reason), "no memory to judge it");
        return verdict;
    }
    self->ruby = ruby;
    self->verdict = &verdict;
    if (!find_object((uintptr_t)address, NULL, &self->objects[0]))
        refuse(self, "the function is in no library");
    else if (is_system(&self->objects[0], ruby))
        refuse(self, "libc and Ruby are judged by the function");
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
    object library, found;
    if (!find_object((uintptr_t)address, NULL, &library) || library.unknown) {
        snprintf(reason, HEDDLE_JUDGEMENT_REASON, "its file can't be read");
        return false;
    }
    for (size_t i = 0; i < library.needed_count; i++) {
        const char *name = library.needed[i];
        bool known = heddle_library_is_libc(name) || (find_object(0, name, &found) && is_system(&found, ruby));
        for (size_t k = 0; k < count && !known; k++)
            known = strncmp(file_of(name), names[k], strlen(names[k])) == 0;
        if (!known) {
            snprintf(reason, HEDDLE_JUDGEMENT_REASON, "needs %s, with which it was not tried", name);
            return false;
        }
    }
    return true;
}

#else

heddle_judgement heddle_library_judge(const void *address, const void *ruby)
{
    (void)address;
    (void)ruby;
    heddle_judgement verdict = {.reason = "libraries are judged on Linux on x86-64 and ARM64 only"};
    return verdict;
}

/* Not known here: a known-good library counts with whatever it needs. */
bool heddle_library_needs_only(const void *address, const void *ruby, const char *const *names, size_t count,
                               char reason[HEDDLE_JUDGEMENT_REASON])
{
    (void)address;
    (void)ruby;
    (void)names;
    (void)count;
    reason[0] = '\0';
    return true;
}

#endif
