#pragma once

/*
 * Offloads calls on a descriptor that Ruby makes without the GVL: file locks, fsync, fcntl, and calls of the socket
 * library. Ruby makes them through two functions that no header declares, and whose parameters changed in Ruby 4.0. So
 * before offload is switched on, a trial call of File#flock must reach Heddle's replacement with the expected
 * arguments.
 */

#include "native_code/import_table.h"

#include <ruby.h>

/* Returns the entries for import tables; none if the functions of this Ruby version were not known at compile time. */
const heddle_import *heddle_io_call_imports(size_t *count);

/* Returns NULL if calls on a descriptor can be offloaded; otherwise the reason why not. */
const char *heddle_io_calls_missing(void);

/*
 * Calls `file.flock(LOCK_UN)`, and checks that the replacement gets a call on `expected`, which is the same file except
 * in tests. Returns NULL, or the reason why the check has failed. In that case the caller must restore the original
 * entries.
 */
const char *heddle_io_calls_check(VALUE file, VALUE expected);
