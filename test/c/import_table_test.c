/* sources: native_code/import_table.c native_code/elf_object.c */
/* link: -rdynamic -Wl,-z,lazy */
/* wrap: mprotect */
#include "check.h"

#include "native_code/import_table.h"

#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Two functions of libc that nothing else here needs, by the three ways in which a program reaches a function. */
static pid_t (*volatile table[])(void) = {getppid};
/* … and a table that nobody may write to. */
static pid_t (*const constant[])(void) = {getppid};
static pid_t (*const volatile *volatile read_only)(void) = constant;

static pid_t instead(void)
{
    return -7;
}

typedef struct {
    const heddle_import *imports;
    size_t count;
    int led, program_led;
    int programs;
} leading;

static bool lead(heddle_object *object, void *data)
{
    leading *self = data;
    bool program = heddle_object_contains(object, (void *)instead);
    int led = program ? heddle_object_intercept(object, self->imports, self->count) : 0;
    self->programs += program;
    self->program_led += program ? led : 0;
    self->led += led;
    return false;
}

static leading lead_program(const heddle_import *imports, size_t count)
{
    leading result = {.imports = imports, .count = count};
    heddle_objects_each(lead, &result);
    return result;
}

static void call_and_pointer_are_redirected(void)
{
    if (heddle_imports_unsupported())
        SKIP(heddle_imports_unsupported());
    pid_t before = getppid();
    heddle_import imports[] = {{"getppid", NULL, (void *)instead}};
    leading result = lead_program(imports, 1);

    CHECK(before > 0);
    CHECK_EQUAL(1, result.programs);
    CHECK(result.program_led >= 2);
    CHECK_EQUAL(-7, getppid());
    CHECK_EQUAL(-7, table[0]());
    /* Done again it finds what is led already. */
    CHECK_EQUAL(result.program_led, lead_program(imports, 1).program_led);
}

/* A lazily bound call that was never made leads to the dynamic linker still. */
static void call_that_was_never_made_is_redirected(void)
{
    if (heddle_imports_unsupported())
        SKIP(heddle_imports_unsupported());
    heddle_import imports[] = {{"getpgrp", (void *)getpgrp, (void *)instead}};

    lead_program(imports, 1);
    CHECK_EQUAL(-7, getpgrp());
}

static void changed_pointer_is_not_redirected(void)
{
    if (heddle_imports_unsupported())
        SKIP(heddle_imports_unsupported());
    heddle_import imports[] = {{"getppid", (void *)instead, (void *)changed_pointer_is_not_redirected}};

    lead_program(imports, 1);
    CHECK(table[0]() > 0);
}

static int refused;

int __real_mprotect(void *address, size_t size, int protection);
int __wrap_mprotect(void *address, size_t size, int protection)
{
    if (!refused)
        return __real_mprotect(address, size, protection);
    refused++;
    errno = EACCES;
    return -1;
}

/* As a hardened system may: nothing is written then. */
static void protected_table_is_not_changed(void)
{
    if (heddle_imports_unsupported())
        SKIP(heddle_imports_unsupported());
    heddle_import imports[] = {{"getppid", NULL, (void *)instead}};

    refused = 1;
    CHECK_EQUAL(-1, lead_program(imports, 1).program_led);
    CHECK(refused > 1);
    CHECK(read_only[0]() > 0);
    refused = 0;
    CHECK(lead_program(imports, 1).program_led >= 2);
    CHECK_EQUAL(-7, read_only[0]());
}

/* What could be written before could be changed by everybody. */
static void table_is_read_only_after_a_change(void)
{
    if (heddle_imports_unsupported())
        SKIP(heddle_imports_unsupported());
    heddle_import imports[] = {{"getppid", NULL, (void *)instead}};

    lead_program(imports, 1);
    CHECK_EQUAL(-7, read_only[0]());
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        *(pid_t(*volatile *)(void))read_only = getppid;
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
}

static void unloaded_libraries_are_counted(void)
{
    if (heddle_imports_unsupported())
        SKIP(heddle_imports_unsupported());
    void *library = dlopen("libresolv.so.2", RTLD_NOW);
    if (!library)
        SKIP("has no libresolv");
    uint64_t before = heddle_objects_count().unloaded;
    dlclose(library);
    CHECK(heddle_objects_count().unloaded > before);
}

static void functions_of_other_names_are_not_redirected(void)
{
    heddle_import imports[] = {{"no_such_function", NULL, (void *)instead}, {"getp", NULL, (void *)instead}};

    CHECK_EQUAL(0, lead_program(imports, 2).led);
    CHECK(getppid() > 0);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("import table", "call and pointer are redirected", call_and_pointer_are_redirected);
    check_run("import table", "call that was never made is redirected", call_that_was_never_made_is_redirected);
    check_run("import table", "changed pointer is not redirected",
              changed_pointer_is_not_redirected);
    check_run("import table", "protected table is not changed", protected_table_is_not_changed);
    check_run("import table", "table is read only after a change", table_is_read_only_after_a_change);
    check_run("import table", "unloaded libraries are counted", unloaded_libraries_are_counted);
    check_run("import table", "functions of other names are not redirected",
              functions_of_other_names_are_not_redirected);
    return check_end();
}
