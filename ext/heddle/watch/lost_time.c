/* Measures the time in which a loop's thread had no core: see lost_time.h. */

#include "watch/lost_time.h"

#include "scheduler/decimal.h"
#include "selector/clock.h"
#include "selector/native_thread.h"

#ifdef __linux__
#include <sys/syscall.h>
#endif

/*
 * On systems other than Linux the heartbeat has neither a clock nor a descriptor, so no time in a run queue counts as
 * lost.
 */
void heddle_lost_time_attach(heddle_heartbeat *heartbeat)
{
#ifdef __linux__
    heartbeat->thread_id = (int)syscall(SYS_gettid);
    heartbeat->timed = pthread_getcpuclockid(pthread_self(), &heartbeat->cpu_clock) == 0;
    heartbeat->schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
#endif
}

void heddle_lost_time_detach(heddle_heartbeat *heartbeat)
{
    if (heartbeat->schedstat >= 0)
        close(heartbeat->schedstat);
    heartbeat->schedstat = -1;
    heartbeat->timed = false;
}

static int64_t read_cpu(const heddle_heartbeat *heartbeat)
{
    return heartbeat->timed ? heddle_clock_read(heartbeat->cpu_clock) : 0;
}

/*
 * Returns the total time that the thread has waited in run queues, in ns. Its schedstat file contains "<ns on a core>
 * <ns in a run queue> <number of time slices>".
 */
static int64_t read_queued(const heddle_heartbeat *heartbeat)
{
    char text[256];
    ssize_t size = heartbeat->schedstat < 0 ? 0 : pread(heartbeat->schedstat, text, sizeof(text) - 1, 0);
    text[size > 0 ? size : 0] = '\0';
    const char *second = strchr(text, ' ');
    return second ? heddle_parse_decimal(second) : 0;
}

bool heddle_lost_time_awaits_core(const heddle_heartbeat *heartbeat)
{
    return heartbeat->timed && !heartbeat->progressed && heddle_native_thread_state(heartbeat->thread_id) == 'R';
}

void heddle_lost_time_begin(heddle_heartbeat *heartbeat, int64_t now)
{
    heartbeat->lost = 0;
    heartbeat->sampled_at = now;
    heartbeat->cpu_seen = read_cpu(heartbeat);
    heartbeat->queued_seen = read_queued(heartbeat);
}

int64_t heddle_lost_time_add(heddle_heartbeat *heartbeat, int64_t now, int64_t late)
{
    int64_t cpu = read_cpu(heartbeat), queued = read_queued(heartbeat);
    int64_t absent = queued - heartbeat->queued_seen;
    if (late >= HEDDLE_LOST_TOLERANCE && late > absent)
        absent = late;
    int64_t idle = now - heartbeat->sampled_at - (cpu - heartbeat->cpu_seen);
    absent = absent < idle ? absent : idle;
    heartbeat->progressed = cpu != heartbeat->cpu_seen;
    if (!heartbeat->progressed && absent <= 0)
        /* The thread may be waiting for a core: the kernel counts such a wait only when it has ended. */
        return heartbeat->lost;
    heartbeat->lost += absent > 0 ? absent : 0;
    heartbeat->sampled_at = now;
    heartbeat->cpu_seen = cpu;
    heartbeat->queued_seen = queued;
    return heartbeat->lost;
}
