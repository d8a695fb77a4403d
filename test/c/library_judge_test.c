/* sources: offload/library_judge.c native_code/elf_object.c offload/neutral_functions.c */
#include "check.h"

#include "offload/library_judge.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Libraries of a few lines each, made by the compiler as this test runs: what the judge says of them. */

static char folder[] = "/tmp/heddle-judge-XXXXXX";
static int made;

typedef struct {
    heddle_judgement judgement;
    void *handle;
} judged;

/* With further arguments for the compiler, such as a library that it needs. */
static judged judge_with(const char *source, const char *name, const char *arguments)
{
    char path[256], command[1024];
    judged result = {0};
    snprintf(path, sizeof(path), "%s/lib%s.so", folder, name);
    snprintf(command, sizeof(command), "%s -x c -O2 -shared -fPIC -o %s - %s", getenv("CC") ? getenv("CC") : "cc", path,
             arguments);
    FILE *compiler = popen(command, "w");
    if (compiler)
        fputs(source, compiler);
    if (!compiler || pclose(compiler) != 0)
        return result;
    result.handle = dlopen(path, RTLD_LAZY); /* it need not find what it imports */
    void *function = result.handle ? dlsym(result.handle, "function") : NULL;
    if (function)
        result.judgement = heddle_library_judge(function, NULL);
    return result;
}

static heddle_judgement judge(const char *source)
{
    char name[16];
    snprintf(name, sizeof(name), "made%d", made++);
    return judge_with(source, name, "").judgement;
}

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#define REFUSED(source, words)                                                                                         \
    do {                                                                                                               \
        heddle_judgement verdict = judge(source);                                                                      \
        CHECK(!verdict.safe);                                                                                          \
        CHECK(strstr(verdict.reason, words));                                                                          \
        if (!strstr(verdict.reason, words))                                                                            \
            printf("    instead: %s\n", verdict.reason);                                                               \
    } while (0)

static void library_that_only_waits_and_computes_is_safe(void)
{
    heddle_judgement verdict = judge("#include <time.h>\n#include <stdlib.h>\n#include <string.h>\n#include <stdio.h>\n"
                                     "int function(int n) { struct timespec t = {0, n}; char *m = malloc(n); "
                                     "memset(m, 0, n); snprintf(m, n, \"%d\", n); free(m); "
                                     "clock_gettime(CLOCK_MONOTONIC, &t); return nanosleep(&t, NULL); }\n");
    CHECK(verdict.safe);
    CHECK_EQUAL(0, strcmp("", verdict.reason));
}

static void lock_with_an_owner_is_unsafe(void)
{
    REFUSED("#include <pthread.h>\nstatic pthread_mutex_t m; int function(void) { return pthread_mutex_lock(&m); }\n",
            "imports pthread_mutex_lock");
    REFUSED(
        "#include <pthread.h>\nstatic pthread_rwlock_t m; int function(void) { return pthread_rwlock_rdlock(&m); }\n",
        "imports pthread_rwlock_rdlock");
    REFUSED("#include <pthread.h>\nvoid *function(pthread_key_t k) { return pthread_getspecific(k); }\n",
            "imports pthread_getspecific");
}

static void thread_local_storage_is_unsafe(void)
{
    REFUSED("__thread int kept; int function(int n) { return kept += n; }\n", "thread-local storage");
    REFUSED("extern __thread int h_errno_like; static __thread char text[64]; char *function(void) { return text; }\n",
            "thread-local storage");
}

static void function_about_the_calling_thread_is_unsafe(void)
{
    REFUSED("#include <sys/prctl.h>\nint function(void) { return prctl(PR_SET_NAME, \"x\"); }\n", "imports prctl");
    REFUSED("#include <unistd.h>\n#include <sys/syscall.h>\nlong function(void) { return syscall(SYS_gettid); }\n",
            "imports syscall");
    REFUSED("#include <dlfcn.h>\nvoid *function(const char *n) { return dlopen(n, 2); }\n", "imports dlopen");
    REFUSED("#include <string.h>\nchar *function(int n) { return strerror(n); }\n", "imports strerror");
    REFUSED("#include <time.h>\nlong function(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); "
            "return t.tv_nsec; }\n",
            "a thread's CPU clock");
    REFUSED("#include <fenv.h>\nint function(void) { return fesetround(FE_UPWARD); }\n", "imports fesetround");
}

static void callback_into_ruby_is_unsafe(void)
{
    REFUSED("void *rb_thread_call_with_gvl(void *(*)(void *), void *);\n"
            "void *function(void *(*f)(void *)) { return f ? rb_thread_call_with_gvl(f, 0) : 0; }\n",
            "imports rb_thread_call_with_gvl");
    CHECK(heddle_ruby_function_neutral("rb_str_new") && heddle_ruby_function_neutral("rb_thread_call_without_gvl2"));
    CHECK(!heddle_ruby_function_neutral("rb_thread_call_with_gvl") && !heddle_ruby_function_neutral("malloc"));
}

static void direct_system_call_is_unsafe(void)
{
#if defined(__x86_64__)
    REFUSED("long function(void) { long r; __asm__ volatile(\"syscall\" : \"=a\"(r) : \"a\"(186) : \"rcx\", \"r11\"); "
            "return r; }\n",
            "a system call instruction");
    REFUSED("long function(void) { long r; __asm__ volatile(\"mov %%fs:0, %0\" : \"=r\"(r)); return r; }\n",
            "reads the thread pointer");
#else
    REFUSED("long function(void) { register long x8 __asm__(\"x8\") = 178; register long x0 __asm__(\"x0\"); "
            "__asm__ volatile(\"svc 0\" : \"=r\"(x0) : \"r\"(x8)); return x0; }\n",
            "a system call instruction");
    REFUSED("long function(void) { long r; __asm__ volatile(\"mrs %0, tpidr_el0\" : \"=r\"(r)); return r; }\n",
            "reads the thread pointer");
#endif
}

static void dependencies_of_a_library_are_judged_too(void)
{
    char link[600];
    snprintf(link, sizeof(link), "-L%s -Wl,-rpath,%s -Wl,--no-as-needed -lgoodneed", folder, folder);
    judge_with("int needed(int n) { return n + 1; }\nint function(void) { return 0; }\n", "goodneed", "");
    heddle_judgement verdict =
        judge_with("int needed(int); int function(void) { return needed(1); }\n", "good", link).judgement;
    CHECK(verdict.safe);

    snprintf(link, sizeof(link), "-L%s -Wl,-rpath,%s -Wl,--no-as-needed -lbadneed", folder, folder);
    judge_with("#include <pthread.h>\nstatic pthread_mutex_t m; int needed(int n) { return pthread_mutex_lock(&m); }\n"
               "int function(void) { return 0; }\n",
               "badneed", "");
    verdict = judge_with("int needed(int); int function(void) { return needed(1); }\n", "bad", link).judgement;
    CHECK(!verdict.safe);
    CHECK(strstr(verdict.reason, "libbadneed.so imports pthread_mutex_lock"));

    char reason[HEDDLE_JUDGEMENT_REASON];
    const char *const tried[] = {"libbadneed"};
    char path[256];
    snprintf(path, sizeof(path), "%s/libbad.so", folder);
    void *function = dlsym(dlopen(path, RTLD_NOW), "function");
    CHECK(heddle_library_needs_only(function, NULL, tried, 1, reason));
    CHECK(!heddle_library_needs_only(function, NULL, tried, 0, reason));
    CHECK(strstr(reason, "needs libbadneed.so"));
}

static void libc_and_addresses_without_a_library_are_unsafe(void)
{
    int data = 0;
    CHECK(!heddle_library_judge((void *)nanosleep, NULL).safe);
    CHECK(!heddle_library_judge(&data, NULL).safe);
    CHECK(!heddle_library_judge(NULL, NULL).safe);
}

#endif

static void function_names_are_compared_without_compiler_suffixes(void)
{
    CHECK(heddle_libc_function_neutral("__memcpy_chk") && heddle_libc_function_neutral("__isoc23_strtol"));
    CHECK(heddle_libc_function_neutral("__errno_location") && heddle_libc_function_neutral("__stack_chk_fail"));
    CHECK(!heddle_libc_function_neutral("pthread_mutex_lock") && !heddle_libc_function_neutral("mem"));
    CHECK(!heddle_libc_function_neutral("") && !heddle_libc_function_neutral("_"));
    CHECK(heddle_library_is_libc("/lib/x86_64-linux-gnu/libc.so.6") && !heddle_library_is_libc("/lib/libcurl.so.4"));
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    if (!mkdtemp(folder))
        return 1;
#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
    check_run("library judge", "library that only waits and computes is safe",
              library_that_only_waits_and_computes_is_safe);
    check_run("library judge", "lock with an owner is unsafe", lock_with_an_owner_is_unsafe);
    check_run("library judge", "thread local storage is unsafe", thread_local_storage_is_unsafe);
    check_run("library judge", "function about the calling thread is unsafe",
              function_about_the_calling_thread_is_unsafe);
    check_run("library judge", "callback into Ruby is unsafe", callback_into_ruby_is_unsafe);
    check_run("library judge", "direct system call is unsafe", direct_system_call_is_unsafe);
    check_run("library judge", "dependencies of a library are judged too", dependencies_of_a_library_are_judged_too);
    check_run("library judge", "libc and addresses without a library are unsafe",
              libc_and_addresses_without_a_library_are_unsafe);
#endif
    check_run("library judge", "function names are compared without compiler suffixes",
              function_names_are_compared_without_compiler_suffixes);
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    if (system(command) != 0)
        perror(command);
    return check_end();
}
