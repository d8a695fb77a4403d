/* sources: scheduler/guard_pages.c scheduler/import_table.c scheduler/elf_object.c */
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

static void a_guard_page_takes_no_mapping(void)
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

static void without_it_each_guard_splits_the_mapping(void)
{
    char *memory = pages(400);
    int before = mappings();
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(0, mprotect(memory + (size_t)i * 4 * PAGE, PAGE, PROT_NONE));
    CHECK(mappings() - before >= 199);
    munmap(memory, 400 * PAGE);
}

static void a_page_that_is_given_back_works_again(void)
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

static void other_protections_are_what_they_were(void)
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
static void locked_memory_is_protected(void)
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

static void what_cannot_be_guarded_fails_as_before(void)
{
    need_guard_pages();
    char *memory = pages(2);
    munmap(memory, 2 * PAGE);
    CHECK_EQUAL(-1, mprotect(memory, PAGE, PROT_NONE));
    CHECK_EQUAL(ENOMEM, errno);
    CHECK_EQUAL(0, heddle_guard_pages_count());
}

static void a_child_has_its_parents_guards(void)
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

static void installing_again_changes_nothing(void)
{
    need_guard_pages();
    heddle_guard_pages_install();
    CHECK(heddle_guard_pages_status() == NULL);
    char *memory = pages(2);
    CHECK_EQUAL(0, mprotect(memory, PAGE, PROT_NONE));
    CHECK_EQUAL(1, heddle_guard_pages_count());
    munmap(memory, 2 * PAGE);
}

static void it_can_be_switched_off(void)
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

static void with_guard_pages_the_message_does_not_blame_the_mappings(void)
{
    char text[1000];
    need_guard_pages();
    CHECK(!strstr(heddle_fiber_limit_message(text, sizeof(text)), "max_map_count"));
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("guard pages", "a guard page takes no mapping", a_guard_page_takes_no_mapping);
    check_run("guard pages", "without it each guard splits the mapping", without_it_each_guard_splits_the_mapping);
    check_run("guard pages", "a page that is given back works again", a_page_that_is_given_back_works_again);
    check_run("guard pages", "other protections are what they were", other_protections_are_what_they_were);
    check_run("guard pages", "locked memory is protected", locked_memory_is_protected);
    check_run("guard pages", "what cannot be guarded fails as before", what_cannot_be_guarded_fails_as_before);
    check_run("guard pages", "a child has its parent's guards", a_child_has_its_parents_guards);
    check_run("guard pages", "installing again changes nothing", installing_again_changes_nothing);
    check_run("guard pages", "it can be switched off", it_can_be_switched_off);
    check_run("guard pages", "with guard pages the message does not blame the mappings",
              with_guard_pages_the_message_does_not_blame_the_mappings);
    return check_end();
}
