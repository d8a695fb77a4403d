/* rbspy's reader on another process: what the gem pyroscope has of it reads the process that it is in, so it is told
 * here that it is in that one. What it saw it pushes to 127.0.0.1.
 *
 *     reader LIBRARY PROCESS PORT PAUSES
 *
 * Says "reading" when it does; a line on its standard input ends that, the input's end ends the program. With PAUSES it
 * stops the process's threads so many times a second, as `rbspy record` does for each of its samples. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 1024, PAUSE = 300000 /* ns */ };

typedef bool start_function(const char *application, const char *address, const char *user, const char *password,
                            uint32_t rate, bool on_cpu, bool report_pid, bool report_thread, const char *runtime,
                            const char *version, const char *tags, const char *tenant, const char *headers);
typedef bool function_without_arguments(void);

static pid_t target;
static long pauses;

/* In place of libc's, for the library too. */
pid_t getpid(void)
{
    return target;
}

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return found;
}

static bool contains(const pid_t *threads, int count, pid_t thread)
{
    for (int i = 0; i < count; i++)
        if (threads[i] == thread)
            return true;
    return false;
}

/* Looks again until there is no new thread. */
static int stop_threads(pid_t *threads)
{
    char path[64];
    int count = 0, before;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)target);
    do {
        before = count;
        DIR *folder = opendir(path);
        if (folder == NULL)
            break;
        for (struct dirent *entry; (entry = readdir(folder)) != NULL && count < THREADS;) {
            pid_t thread = atoi(entry->d_name);
            if (thread <= 0 || contains(threads, count, thread))
                continue;
            if (ptrace(PTRACE_ATTACH, thread, NULL, NULL) == 0 && waitpid(thread, NULL, __WALL) == thread)
                threads[count++] = thread;
        }
        closedir(folder);
    } while (count > before);
    return count;
}

static void pause_process(void)
{
    static pid_t threads[THREADS];
    int count = stop_threads(threads);
    nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
    for (int i = 0; i < count; i++)
        ptrace(PTRACE_DETACH, threads[i], NULL, NULL);
    pauses += count > 0;
}

int main(int count, char **arguments)
{
    char address[64], line[16];
    if (count != 5)
        return 2;
    target = atoi(arguments[2]);
    int rate = atoi(arguments[4]);
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    start_function *start = (start_function *)find(library, "initialize_agent");
    function_without_arguments *stop = (function_without_arguments *)find(library, "drop_agent");
    ((bool (*)(uint32_t))find(library, "initialize_logging"))(30);

    snprintf(address, sizeof(address), "http://127.0.0.1:%s", arguments[3]);
    if (!start("trial", address, "", "", 100, false, true, true, "ruby", "", "", "", "{}")) {
        fprintf(stderr, "the library does not begin\n");
        return 1;
    }
    puts("reading");
    fflush(stdout);
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while (poll(&input, 1, rate > 0 ? 1000 / rate : -1) == 0)
        pause_process();
    printf("pauses: %ld\n", pauses);
    fflush(stdout);
    stop();
    while (read(STDIN_FILENO, line, sizeof(line)) > 0)
        continue;
    _exit(0);
}
