/* sources: scheduler/code_map.c scheduler/elf_object.c scheduler/stack_walk.c scheduler/unwind_rules.c scheduler/native_frames.c */
/* wrap: heddle_stack_walk */
/* link: -ldl */
#include "check.h"

#include "scheduler/native_frames.h"
#include "scheduler/stack_walk.h"

#include <dlfcn.h>
#include <sys/mman.h>

/* The test is Heddle, and libc stands for an extension: it calls back in qsort. */
static const char *const libc_names[] = {"libc.so"};
static uintptr_t base;

static heddle_frames_verdict verdict;
static heddle_native_frame found;

/* How often a stack was walked. */
static unsigned walks;

heddle_walk_end __real_heddle_stack_walk(uintptr_t base, heddle_frame_visitor *visit, void *data);
heddle_walk_end __wrap_heddle_stack_walk(uintptr_t base, heddle_frame_visitor *visit, void *data)
{
    walks++;
    return __real_heddle_stack_walk(base, visit, data);
}

/* A function of libc that no sanitizer puts itself before. */
static uintptr_t in_libc(void)
{
    uintptr_t address = (uintptr_t)dlsym(RTLD_DEFAULT, "lfind");
    CHECK(address != 0);
    return address;
}

static void list_library(const char *const name[1])
{
    CHECK(heddle_code_map_list(HEDDLE_CODE_NOT_REENTRANT, name, 1));
    CHECK(heddle_code_map_refresh());
}

static int compare_and_look(const void *left, const void *right)
{
    (void)left, (void)right;
    verdict = heddle_native_frames_inspect(HEDDLE_CODE_NOT_REENTRANT, base, &found);
    return 0;
}

__attribute__((noinline)) static int look_deep(int depth)
{
    int numbers[] = {2, 1};
    if (depth)
        return look_deep(depth - 1) + 1;
    qsort(numbers, 2, sizeof(*numbers), compare_and_look);
    return numbers[0];
}

/* The caller's frame is taken for the first one of a fiber. */
#define BEGIN_STACK()                                                                                                  \
    do {                                                                                                              \
        if (!heddle_code_map_refresh())                                                                               \
            SKIP("native frames are recognized on Linux with x86-64 or ARM64 only");                                  \
        base = (uintptr_t)__builtin_frame_address(0) + 6 * sizeof(uintptr_t);                                         \
    } while (0)

static void a_call_that_waits_is_found_with_what_it_has_called(void)
{
    BEGIN_STACK();
    list_library(libc_names);
    look_deep(0);

    CHECK_EQUAL(HEDDLE_FRAMES_NATIVE, verdict);
    CHECK(found.library && strstr(found.library->path, "libc"));
    CHECK_EQUAL((intptr_t)compare_and_look, (intptr_t)found.called);
}

static void a_call_is_found_at_any_depth(void)
{
    BEGIN_STACK();
    list_library(libc_names);
    CHECK(look_deep(2000) >= 2000);
    CHECK_EQUAL(HEDDLE_FRAMES_NATIVE, verdict);
}

/* What a function that has returned left on the stack, in a slot of a live frame that nobody writes to. */
static void a_word_that_is_left_over_is_no_call(void)
{
    BEGIN_STACK();
    volatile uintptr_t *stale = __builtin_alloca(sizeof(*stale)); /* never where the sanitizer keeps variables */
    *stale = in_libc() + 16;
    list_library(libc_names);
    unsigned before = walks;
    verdict = heddle_native_frames_inspect(HEDDLE_CODE_NOT_REENTRANT, base, &found);
    CHECK(*stale != 0);
    CHECK_EQUAL(before + 1, walks);
    CHECK_EQUAL(HEDDLE_FRAMES_CLEAR, verdict);
}

static void without_a_library_in_question_no_stack_is_walked(void)
{
    BEGIN_STACK();
    static const char *const none[] = {"no/such/library"};
    list_library(none);
    unsigned before = walks;
    look_deep(3);
    CHECK_EQUAL(HEDDLE_FRAMES_CLEAR, verdict);
    CHECK_EQUAL(before, walks);
}

#if defined(__x86_64__)
/* A function without an unwind table, as a just-in-time compiler makes them: pushes two registers and calls its
 * argument. */
static void code_without_a_table_is_passed_over(void)
{
    BEGIN_STACK();
    static const uint8_t code[] = {0x53,             /* push %rbx */
                                   0x48, 0x83, 0xec, 0x20, /* sub $32, %rsp */
                                   0x31, 0xc0,       /* xor %eax, %eax */
                                   0xff, 0xd7,       /* call *%rdi */
                                   0x48, 0x83, 0xc4, 0x20, /* add $32, %rsp */
                                   0x5b, 0xc3};      /* pop %rbx; ret */
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    memcpy(memory, code, sizeof(code));
    MUST(mprotect(memory, 4096, PROT_READ | PROT_EXEC));
    list_library(libc_names);
    /* A leftover, so that there is a reason to walk, and no call. */
    volatile uintptr_t *stale = __builtin_alloca(sizeof(*stale)); /* never where the sanitizer keeps variables */
    *stale = in_libc() + 16;
    ((void (*)(int (*)(const void *, const void *)))memory)(compare_and_look);
    CHECK(*stale != 0);
    CHECK_EQUAL(HEDDLE_FRAMES_CLEAR, verdict);
    munmap(memory, 4096);
}

#endif

static void what_is_loaded_later_is_known(void)
{
    BEGIN_STACK();
    CHECK(heddle_code_map_refresh());
    uint64_t before = heddle_code_map_version();
    CHECK(heddle_code_map_refresh());
    CHECK_EQUAL((long long)before, (long long)heddle_code_map_version());
    void *library = dlopen("libresolv.so.2", RTLD_NOW);
    if (!library)
        SKIP("needs libresolv.so.2");
    CHECK(heddle_code_map_refresh());
    CHECK((long long)before != (long long)heddle_code_map_version());
    const heddle_library *one = heddle_code_map_find((uintptr_t)dlsym(library, "__b64_ntop"));
    CHECK(one == NULL || one->path != NULL);
    dlclose(library);
}

static void libraries_are_told_apart(void)
{
    BEGIN_STACK();
    static const char *const reentrant[] = {"libc.so"};
    heddle_code_map_set_ruby((void *)in_libc());
    CHECK(heddle_code_map_refresh());
    CHECK_EQUAL(HEDDLE_CODE_RUBY, heddle_code_map_find(in_libc())->kind);
    CHECK_EQUAL(HEDDLE_CODE_HEDDLE, heddle_code_map_find((uintptr_t)libraries_are_told_apart)->kind);
    heddle_code_map_set_ruby(NULL);
    heddle_code_map_list(HEDDLE_CODE_REENTRANT, reentrant, 1);
    CHECK(heddle_code_map_refresh());
    CHECK_EQUAL(HEDDLE_CODE_REENTRANT, heddle_code_map_find(in_libc())->kind);
    heddle_code_map_list(HEDDLE_CODE_REENTRANT, NULL, 0);
    CHECK(heddle_code_map_refresh());
    CHECK_EQUAL(HEDDLE_CODE_SYSTEM, heddle_code_map_find(in_libc())->kind);
    CHECK(heddle_code_map_find((uintptr_t)&base) == NULL);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("native frames", "a call that waits is found with what it has called",
              a_call_that_waits_is_found_with_what_it_has_called);
    check_run("native frames", "a call is found at any depth", a_call_is_found_at_any_depth);
    check_run("native frames", "a word that is left over is no call", a_word_that_is_left_over_is_no_call);
    check_run("native frames", "without a library in question no stack is walked",
              without_a_library_in_question_no_stack_is_walked);
#if defined(__x86_64__)
    check_run("native frames", "code without a table is passed over", code_without_a_table_is_passed_over);
#endif
    check_run("native frames", "what is loaded later is known", what_is_loaded_later_is_known);
    check_run("native frames", "libraries are told apart", libraries_are_told_apart);
    return check_end();
}
