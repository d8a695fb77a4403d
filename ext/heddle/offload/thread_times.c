#include "offload/thread_times.h"

#include "selector/native_thread.h"

#include <sys/resource.h>
#include <sys/time.h>

bool heddle_thread_sleeps(long id)
{
#ifdef __linux__
    char state = heddle_native_thread_state((int)id);
    return state == 'S' || state == 'D';
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
