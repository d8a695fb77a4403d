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
 * attempts fail. So after each failure, the number of skipped opportunities doubles. It falls when spinning has helped
 * several times in a row.
 */
typedef struct {
    unsigned left_out, in_vain, in_a_row;
} heddle_spin;

static inline bool heddle_spin_due(heddle_spin *spin)
{
    if (!spin->left_out)
        return true;
    spin->left_out--;
    return false;
}

static inline void heddle_spin_ended(heddle_spin *spin, bool found)
{
    if (!found) {
        spin->in_a_row = 0;
        if (spin->in_vain < 10)
            spin->in_vain++;
        spin->left_out = (1u << spin->in_vain) - 1;
    } else if (++spin->in_a_row == 8) {
        spin->in_a_row = 0;
        spin->in_vain = 0;
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
