#pragma once

/*
 * Runs Ruby's own blocking operations on the offload threads. lib/heddle/scheduler/blocking_operations.rb decides which
 * operations run there.
 */

#include <ruby.h>

/* Defines the methods of Heddle::Offload::Switch. */
void heddle_define_operations(VALUE switch_class);
