#pragma once

/*
 * Spinning: a thread that expects a message within microseconds polls for a short time before it sleeps. Waking a
 * thread on a sleeping processor takes some 15 µs, and an offloaded call needs two wake-ups: of the offload thread, and
 * then of the loop.
 *
 * Both spin only if each has a processor of its own, and if spinning has helped lately. The loop spins only for calls
 * that are brief (heddle_job.worth_spinning).
 */

#include "system.h"

/* The longest time to spin. */
#define HEDDLE_SPIN_NS ((int64_t)25 * 1000)

/*
 * Records whether spinning has helped. A failed attempt costs more than a successful one saves, and on busy processors
 * half of the attempts fail. So after each failure, about twice as many opportunities to spin are skipped as after the
 * failure before it, up to 1,023. Eight successes in a row make the next failure count as the first.
 */
typedef struct {
    unsigned skips_left, failures, successes;
} heddle_spin;

static inline bool heddle_spin_due(heddle_spin *spin)
{
    if (!spin->skips_left)
        return true;
    spin->skips_left--;
    return false;
}

static inline void heddle_spin_ended(heddle_spin *spin, bool found)
{
    if (!found) {
        spin->successes = 0;
        if (spin->failures < 10)
            spin->failures++;
        spin->skips_left = (1u << spin->failures) - 1;
    } else if (++spin->successes == 8) {
        spin->successes = 0;
        spin->failures = 0;
    }
}

static inline void heddle_spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
