#include "processes/exec_limit.h"

#include "native_code/import_table.h"

#include <ruby.h>
#include <ruby/thread.h>
#include <stdarg.h>

extern char **environ;

/*
 * Set before the import table is changed. Forked children only read them: after vfork a child must not write to memory.
 */
static rlim_t soft_limit, raised_limit;

/* -- called between fork or vfork and exec: only system calls are allowed ------------------------------------------ */

/* Lowers the soft limit if it equals `raised_limit`. Any other value was set on purpose (spawn's `rlimit_nofile:`). */
static bool lower_limit(struct rlimit *before)
{
    if (getrlimit(RLIMIT_NOFILE, before) != 0 || before->rlim_cur != raised_limit)
        return false;
    struct rlimit limit = {.rlim_cur = soft_limit, .rlim_max = before->rlim_max};
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static int exec_execve(const char *path, char *const *words, char *const *environment)
{
    struct rlimit before;
    bool lowered = lower_limit(&before);
    int result = execve(path, words, environment);
    int error = errno;
    if (lowered) /* execve has failed, so the process continues and may try another path */
        setrlimit(RLIMIT_NOFILE, &before);
    errno = error;
    return result;
}

static int exec_execv(const char *path, char *const *words)
{
    return exec_execve(path, words, environ);
}

/* Ruby calls execl and execle only to run a command in a shell: execl("/bin/sh", "sh", "-c", command, NULL). */
static int exec_execl(const char *path, const char *name, const char *option, const char *command, ...)
{
    const char *words[] = {name, option, command, NULL};
    return exec_execve(path, (char *const *)words, environ);
}

static int exec_execle(const char *path, const char *name, const char *option, const char *command, ...)
{
    const char *words[] = {name, option, command, NULL};
    va_list more;
    va_start(more, command);
    (void)va_arg(more, const char *); /* the end of the words */
    char *const *environment = va_arg(more, char *const *);
    va_end(more);
    return exec_execve(path, (char *const *)words, environment);
}

/* -- intercepting Ruby's calls ------------------------------------------------------------------------------------ */

static bool intercept_ruby(heddle_object *object, void *intercepted)
{
    const heddle_import imports[] = {
        {"execve", (void *)execve, (void *)exec_execve},
        {"execv", (void *)execv, (void *)exec_execv},
        {"execl", (void *)execl, (void *)exec_execl},
        {"execle", (void *)execle, (void *)exec_execle},
    };
    bool ruby = heddle_object_contains(object, (void *)rb_nogvl);
    if (ruby)
        *(int *)intercepted = heddle_object_intercept(object, imports, sizeof(imports) / sizeof(imports[0]));
    return ruby;
}

bool heddle_exec_with_limit(rlim_t soft, rlim_t raised)
{
    int intercepted = 0;
    if (heddle_imports_unsupported())
        return false;
    soft_limit = soft;
    raised_limit = raised;
    heddle_objects_each(intercept_ruby, &intercepted);
    return intercepted > 0;
}
