/* sources: native_code/code_map.c native_code/elf_object.c native_code/stack_walk.c native_code/unwind_rules.c native_code/native_frames.c */
/* wrap: heddle_stack_walk */
/* link: -ldl */
#include "check.h"

#include "native_code/native_frames.h"
#include "native_code/stack_walk.h"

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

static void waiting_call_is_found_with_the_function_it_has_called(void)
{
    BEGIN_STACK();
    list_library(libc_names);
    look_deep(0);

    CHECK_EQUAL(HEDDLE_FRAMES_NATIVE, verdict);
    CHECK(found.library && strstr(found.library->path, "libc"));
    CHECK_EQUAL((intptr_t)compare_and_look, (intptr_t)found.called);
}

static void waiting_call_is_found_at_any_depth(void)
{
    BEGIN_STACK();
    list_library(libc_names);
    CHECK(look_deep(2000) >= 2000);
    CHECK_EQUAL(HEDDLE_FRAMES_NATIVE, verdict);
}

/* What a function that has returned left on the stack, in a slot of a live frame that nobody writes to. */
static void stale_return_address_is_not_a_waiting_call(void)
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

static void stack_is_not_walked_without_a_library_of_the_kind(void)
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
static void frames_without_an_unwind_table_are_skipped(void)
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

static void libraries_loaded_later_are_known(void)
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

static void libraries_are_distinguished(void)
{
    BEGIN_STACK();
    static const char *const reentrant[] = {"libc.so"};
    heddle_code_map_set_ruby((void *)in_libc());
    CHECK(heddle_code_map_refresh());
    CHECK_EQUAL(HEDDLE_CODE_RUBY, heddle_code_map_find(in_libc())->kind);
    CHECK_EQUAL(HEDDLE_CODE_HEDDLE, heddle_code_map_find((uintptr_t)libraries_are_distinguished)->kind);
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
    check_run("native frames", "waiting call is found with the function it has called",
              waiting_call_is_found_with_the_function_it_has_called);
    check_run("native frames", "waiting call is found at any depth", waiting_call_is_found_at_any_depth);
    check_run("native frames", "stale return address is not a waiting call",
              stale_return_address_is_not_a_waiting_call);
    check_run("native frames", "stack is not walked without a library of the kind",
              stack_is_not_walked_without_a_library_of_the_kind);
#if defined(__x86_64__)
    check_run("native frames", "frames without an unwind table are skipped",
              frames_without_an_unwind_table_are_skipped);
#endif
    check_run("native frames", "libraries loaded later are known", libraries_loaded_later_are_known);
    check_run("native frames", "libraries are distinguished", libraries_are_distinguished);
    return check_end();
}
