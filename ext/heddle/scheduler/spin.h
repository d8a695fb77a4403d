#pragma once

/*
 * A thread that expects a message within microseconds polls for a short time before it sleeps. A wake-up costs some 15
 * µs if the processor sleeps, too, and an offloaded call needs two wake-ups.
 *
 * Both sides spin only if each has a processor of its own (heddle_job.worth_spinning) and spinning has helped lately.
 */

#include "system.h"

/* The longest time to spin. */
#define HEDDLE_SPIN_NS ((int64_t)25 * 1000)

/*
 * Has spinning helped? A failed attempt costs more than a successful one saves, and on busy processors half of the
 * attempts fail. So after each failure, the number of skipped opportunities doubles. It falls to none when spinning has
 * helped eight times in a row.
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
