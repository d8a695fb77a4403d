/* sources: scheduler/guard_pages.c native_code/import_table.c native_code/elf_object.c */
/* link: -rdynamic -Wl,-z,lazy */
#include "check.h"

#include "scheduler/guard_pages.h"

#include <dlfcn.h>
#include <sys/mman.h>

/*
 * This program stands for a Ruby that is linked statically: its mprotect is called through a table of its own, lazily
 * bound. The Ruby test (test/scheduler/guard_pages_test.rb) does the same with libruby, bound at start and read-only.
 */
void rb_fiber_new(void);
void rb_fiber_new(void)
{
}

enum { PAGE = 4096 };

static void need_guard_pages(void)
{
    heddle_guard_pages_install();
    if (heddle_guard_pages_status()) {
        printf("    %s\n", heddle_guard_pages_status());
        SKIP("no guard pages here");
    }
}

static char *pages(int count)
{
    char *memory = mmap(NULL, (size_t)count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static int mappings(void)
{
    char line[512];
    int count = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof(line), file))
        count++;
    fclose(file);
    return count;
}

static bool readable(const char *page)
{
    return access(page, F_OK) == 0 || errno != EFAULT;
}

static void guard_page_needs_no_mapping(void)
{
    enum { STACKS = 1000 };
    need_guard_pages();
    char *memory = pages(STACKS * 4);
    int before = mappings();
    for (int i = 0; i < STACKS; i++) {
        CHECK_EQUAL(0, mprotect(memory + (size_t)i * 4 * PAGE, PAGE, PROT_NONE));
        memory[(size_t)i * 4 * PAGE + PAGE] = 'x';
    }
    CHECK(mappings() - before < 10);
    CHECK_EQUAL(STACKS, heddle_guard_pages_count());
    for (int i = 0; i < STACKS; i++) {
        CHECK(!readable(memory + (size_t)i * 4 * PAGE));
        CHECK_EQUAL('x', memory[(size_t)i * 4 * PAGE + PAGE]);
    }
    munmap(memory, (size_t)STACKS * 4 * PAGE);
}

static void guard_made_by_mprotect_splits_the_mapping(void)
{
    char *memory = pages(400);
    int before = mappings();
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(0, mprotect(memory + (size_t)i * 4 * PAGE, PAGE, PROT_NONE));
    CHECK(mappings() - before >= 199);
    munmap(memory, 400 * PAGE);
}

static void guard_page_is_usable_after_its_protection_is_removed(void)
{
    need_guard_pages();
    char *memory = pages(8);
    memset(memory, 'a', 8 * PAGE);
    CHECK_EQUAL(0, mprotect(memory + 2 * PAGE, PAGE, PROT_NONE));
    CHECK_EQUAL(0, mprotect(memory + 5 * PAGE, PAGE, PROT_NONE));
    CHECK_EQUAL(0, mprotect(memory, 8 * PAGE, PROT_READ | PROT_WRITE));
    memory[2 * PAGE] = memory[5 * PAGE] = 'b';
    CHECK_EQUAL('a', memory[PAGE]);
    CHECK_EQUAL('a', memory[3 * PAGE]);
    munmap(memory, 8 * PAGE);
}

static void other_protections_are_unchanged(void)
{
    need_guard_pages();
    char *memory = pages(8);
    memset(memory, 'a', 8 * PAGE);
    CHECK_EQUAL(0, mprotect(memory, 2 * PAGE, PROT_NONE)); /* a heap page of Ruby's, during compaction */
    CHECK(!readable(memory));
    CHECK_EQUAL(0, mprotect(memory, 2 * PAGE, PROT_READ | PROT_WRITE));
    CHECK_EQUAL('a', memory[0]);
    CHECK_EQUAL('a', memory[2 * PAGE - 1]);
    CHECK_EQUAL(0, mprotect(memory, PAGE, PROT_READ));
    CHECK_EQUAL('a', memory[0]);
    CHECK_EQUAL(0, heddle_guard_pages_count());
    munmap(memory, 8 * PAGE);
}

/* Before Linux 6.15 locked memory can't have guards and is protected the old way. */
static void guard_in_locked_memory_is_made_by_mprotect(void)
{
    need_guard_pages();
    char *memory = pages(4);
    if (mlock(memory, 4 * PAGE) != 0)
        SKIP("no memory may be locked (ulimit -l)");
    errno = 0;
    CHECK_EQUAL(0, mprotect(memory + PAGE, PAGE, PROT_NONE));
    CHECK_EQUAL(0, errno);
    CHECK(!readable(memory + PAGE));
    CHECK_EQUAL(0, mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE));
    memory[PAGE] = 'x';
    munmap(memory, 4 * PAGE);
}

static void invalid_guard_fails_like_mprotect(void)
{
    need_guard_pages();
    char *memory = pages(2);
    munmap(memory, 2 * PAGE);
    CHECK_EQUAL(-1, mprotect(memory, PAGE, PROT_NONE));
    CHECK_EQUAL(ENOMEM, errno);
    CHECK_EQUAL(0, heddle_guard_pages_count());
}

static void forked_child_has_the_guards_of_its_parent(void)
{
    int status;
    need_guard_pages();
    char *memory = pages(4);
    CHECK_EQUAL(0, mprotect(memory, PAGE, PROT_NONE));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        CHECK(!readable(memory));
        CHECK_EQUAL(0, mprotect(memory + 2 * PAGE, PAGE, PROT_NONE));
        CHECK(!readable(memory + 2 * PAGE));
        CHECK_EQUAL(2, heddle_guard_pages_count());
        _exit(0);
    }
    CHECK_EQUAL(child, waitpid(child, &status, 0));
    CHECK_EQUAL(0, status);
    CHECK(readable(memory + 2 * PAGE));
    munmap(memory, 4 * PAGE);
}

static void second_install_changes_nothing(void)
{
    need_guard_pages();
    heddle_guard_pages_install();
    CHECK(heddle_guard_pages_status() == NULL);
    char *memory = pages(2);
    CHECK_EQUAL(0, mprotect(memory, PAGE, PROT_NONE));
    CHECK_EQUAL(1, heddle_guard_pages_count());
    munmap(memory, 2 * PAGE);
}

static void guard_pages_can_be_switched_off(void)
{
    char text[1000];
    setenv("HEDDLE_GUARD_PAGES", "0", 1);
    heddle_guard_pages_install();
    CHECK(strstr(heddle_guard_pages_status(), "HEDDLE_GUARD_PAGES=0"));
    CHECK(strstr(heddle_fiber_limit_message(text, sizeof(text)), "vm.max_map_count"));
    CHECK(strstr(text, "HEDDLE_GUARD_PAGES=0"));
    char *memory = pages(2);
    CHECK_EQUAL(0, mprotect(memory, PAGE, PROT_NONE));
    CHECK_EQUAL(0, heddle_guard_pages_count());
    munmap(memory, 2 * PAGE);
    CHECK(strlen(heddle_fiber_limit_message(text, 20)) == 19);
}

static void message_about_the_fiber_limit_names_no_mappings_with_guard_pages(void)
{
    char text[1000];
    need_guard_pages();
    CHECK(!strstr(heddle_fiber_limit_message(text, sizeof(text)), "max_map_count"));
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("guard pages", "guard page needs no mapping", guard_page_needs_no_mapping);
    check_run("guard pages", "guard made by mprotect splits the mapping", guard_made_by_mprotect_splits_the_mapping);
    check_run("guard pages", "guard page is usable after its protection is removed",
              guard_page_is_usable_after_its_protection_is_removed);
    check_run("guard pages", "other protections are unchanged", other_protections_are_unchanged);
    check_run("guard pages", "guard in locked memory is made by mprotect", guard_in_locked_memory_is_made_by_mprotect);
    check_run("guard pages", "invalid guard fails like mprotect", invalid_guard_fails_like_mprotect);
    check_run("guard pages", "forked child has the guards of its parent", forked_child_has_the_guards_of_its_parent);
    check_run("guard pages", "second install changes nothing", second_install_changes_nothing);
    check_run("guard pages", "guard pages can be switched off", guard_pages_can_be_switched_off);
    check_run("guard pages", "message about the fiber limit names no mappings with guard pages",
              message_about_the_fiber_limit_names_no_mappings_with_guard_pages);
    return check_end();
}
