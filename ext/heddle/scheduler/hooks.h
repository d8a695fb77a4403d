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
 * Waits for an operation that the selector runs. Returns 0, with the operation's result in `outcome`. If it was not
 * submitted, returns -errno: -ENOSYS if the selector has no such operations.
 */
int heddle_loop_perform(heddle_loop *loop, heddle_spent part, const heddle_operation *operation, int *outcome);
