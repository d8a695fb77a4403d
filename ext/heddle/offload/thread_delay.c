#include "offload/thread_delay.h"

#ifdef HEDDLE_DEBUG

static _Atomic int64_t longest_delay; /* ns; see heddle_threads_set_delay */
static _Atomic unsigned delay_seed;

static void pause_at_random(int64_t most)
{
    static _Thread_local unsigned random;
    if (!random)
        random = atomic_fetch_add(&delay_seed, 1) * 2 + 1;
    int64_t pause = most * (rand_r(&random) % 1024) / 1024;
    struct timespec time = {.tv_sec = pause / 1000000000, .tv_nsec = pause % 1000000000};
    nanosleep(&time, NULL);
}

void heddle_debug_delay(void)
{
    int64_t most = atomic_load_explicit(&longest_delay, memory_order_relaxed);
    if (__builtin_expect(most > 0, 0))
        pause_at_random(most);
}

void heddle_threads_set_delay(int64_t most, unsigned seed)
{
    atomic_store(&delay_seed, seed);
    atomic_store(&longest_delay, most);
}

#endif
