#pragma once

/* The methods of Heddle::Scheduler, by subject; scheduler.c calls each once. */

#include "scheduler/loop.h"

void heddle_define_block_hooks(VALUE scheduler_class);
void heddle_define_interrupt_hook(VALUE scheduler_class);
void heddle_define_timeout_hook(VALUE scheduler_class);
void heddle_define_io_hooks(VALUE scheduler_class);
void heddle_define_transfer_hooks(VALUE scheduler_class);
void heddle_define_process_hook(VALUE scheduler_class);

/*
 * Waits for an operation that the selector runs. 0, with its result in `outcome`, or -errno: it was not submitted,
 * -ENOSYS where the selector has none. For the hooks.
 */
int heddle_loop_perform(heddle_loop *loop, heddle_spent part, const heddle_operation *operation, int *outcome);
