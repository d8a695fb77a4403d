#include "watch/lost_time.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>

enum { TEXT = 256 };

void heddle_lost_time_attach(heddle_beat *beat)
{
    beat->thread_id = (int)syscall(SYS_gettid);
    beat->timed = pthread_getcpuclockid(pthread_self(), &beat->cpu_clock) == 0;
    beat->schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

void heddle_lost_time_detach(heddle_beat *beat)
{
    if (beat->schedstat >= 0)
        close(beat->schedstat);
    beat->schedstat = -1;
    beat->timed = false;
}

static int64_t read_cpu(const heddle_beat *beat)
{
    struct timespec time;
    if (!beat->timed || clock_gettime(beat->cpu_clock, &time) != 0)
        return 0;
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* "<ns on a core> <ns in a run queue> <slices>" */
static int64_t read_queued(const heddle_beat *beat)
{
    char text[TEXT];
    ssize_t size = beat->schedstat < 0 ? 0 : pread(beat->schedstat, text, sizeof(text) - 1, 0);
    text[size > 0 ? size : 0] = '\0';
    const char *second = strchr(text, ' ');
    return second ? strtoll(second, NULL, 10) : 0;
}

bool heddle_lost_time_goes_on(const heddle_beat *beat)
{
    char path[64], text[TEXT];
    if (beat->progressed)
        return false;
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", beat->thread_id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[size > 0 ? size : 0] = '\0';
    const char *name_ends = strrchr(text, ')');
    return name_ends && strncmp(name_ends, ") R", 3) == 0;
}

#else

void heddle_lost_time_attach(heddle_beat *beat)
{
    (void)beat;
}

void heddle_lost_time_detach(heddle_beat *beat)
{
    (void)beat;
}

static int64_t read_cpu(const heddle_beat *beat)
{
    (void)beat;
    return 0;
}

static int64_t read_queued(const heddle_beat *beat)
{
    (void)beat;
    return 0;
}

bool heddle_lost_time_goes_on(const heddle_beat *beat)
{
    (void)beat;
    return false;
}

#endif

void heddle_lost_time_begin(heddle_beat *beat, int64_t now)
{
    beat->lost = 0;
    beat->looked = now;
    beat->cpu_seen = read_cpu(beat);
    beat->queued_seen = read_queued(beat);
}

int64_t heddle_lost_time_add(heddle_beat *beat, int64_t now, int64_t late)
{
    int64_t cpu = read_cpu(beat), queued = read_queued(beat);
    int64_t absent = queued - beat->queued_seen;
    if (late >= HEDDLE_LOST_TOLERANCE && late > absent)
        absent = late;
    int64_t idle = now - beat->looked - (cpu - beat->cpu_seen);
    absent = absent < idle ? absent : idle;
    beat->lost += absent > 0 ? absent : 0;
    beat->looked = now;
    beat->progressed = cpu != beat->cpu_seen;
    beat->cpu_seen = cpu;
    beat->queued_seen = queued;
    return beat->lost;
}
