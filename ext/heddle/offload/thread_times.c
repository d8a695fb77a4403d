#include "offload/thread_times.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>

bool heddle_thread_sleeps(long id)
{
#ifdef __linux__
    char path[64], text[128];
    snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    const char *end = strrchr(text, ')'); /* of the thread's name; a blank and the state follow */
    return end && (end[1] == ' ') && (end[2] == 'S' || end[2] == 'D');
#else
    return true;
#endif
}

heddle_thread_pauses heddle_thread_pauses_now(void)
{
#ifdef RUSAGE_THREAD
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) == 0)
        return (heddle_thread_pauses){.waited = usage.ru_nvcsw, .made_to_wait = usage.ru_nivcsw};
#endif
    return (heddle_thread_pauses){0};
}

int64_t heddle_thread_computed(int64_t cpu, int64_t wall, heddle_thread_pauses before)
{
    heddle_thread_pauses after = heddle_thread_pauses_now();
    if (cpu * 10 > wall * 7)
        return cpu;
#ifdef RUSAGE_THREAD
    if (after.waited == before.waited)
        return wall;
#endif
    return after.made_to_wait == before.made_to_wait ? cpu : -1;
}
