#pragma once

/* Functions that define the hook methods of Heddle::Scheduler, by subject. scheduler.c calls each function once. */

#include "scheduler/loop.h"

void heddle_define_block_hooks(VALUE scheduler_class);
void heddle_define_interrupt_hook(VALUE scheduler_class);
void heddle_define_timeout_hook(VALUE scheduler_class);
void heddle_define_io_hooks(VALUE scheduler_class);
void heddle_define_io_select_hook(VALUE scheduler_class);
void heddle_define_io_read_write_hooks(VALUE scheduler_class);
void heddle_define_process_hook(VALUE scheduler_class);
