#pragma once

/*
 * Calls on a descriptor that Ruby makes without the GVL: file locks, fsync, fcntl, and calls of the socket library.
 * They pass through two functions that Ruby exports without a header, and whose arguments changed in 4.0. So a call of
 * File#flock has to arrive with the expected arguments before offload is switched on.
 */

#include "scheduler/import_table.h"

#include <ruby.h>

/* The entries for import tables; none where this Ruby was not known at compile time. */
const heddle_import *heddle_io_call_imports(size_t *count);

/* NULL unless calls on a descriptor can't be offloaded: the reason. */
const char *heddle_io_calls_missing(void);

/*
 * Calls `file.flock(LOCK_UN)`, and checks that it arrives as a call on `expected`, which is the same file but in tests.
 * Returns heddle_io_calls_missing(). After a failed check the entries must lead to Ruby's functions again.
 */
const char *heddle_io_calls_check(VALUE file, VALUE expected);
