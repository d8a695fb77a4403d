#ifndef HEDDLE_SPIN_H
#define HEDDLE_SPIN_H

/*
* A thread that expects a message within microseconds polls for a while before it sleeps: a wake-up costs some 15 µs where
 * the processor has gone to sleep, too, and an offloaded call needs two such wake-ups.
 *
 * It is only done where each has a processor of its own (heddle_job.expected), and where it was of use lately.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* For so long at most. */
#define HEDDLE_SPIN_NS ((int64_t)25 * 1000)

/*
 * Has it been of use? A time in vain costs more than a good one saves, and where the processors have other work to do
 * half of them are: so after each in vain it is left out for twice as many times as before, until it is of use several
 * times on end.
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

#endif
