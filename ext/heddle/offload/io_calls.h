#pragma once

/*
 * Calls on a descriptor that Ruby makes without the GVL: file locks, fsync, fcntl, and calls of the socket library.
 * Ruby makes them through two functions that no header declares, and whose arguments changed in 4.0. So before offload
 * is switched on, a trial call of File#flock must arrive with the expected arguments.
 */

#include "native_code/import_table.h"

#include <ruby.h>

/* The entries for import tables. There are none if this version of Ruby was not known at compile time. */
const heddle_import *heddle_io_call_imports(size_t *count);

/* NULL if calls on a descriptor can be offloaded; otherwise the reason why not. */
const char *heddle_io_calls_missing(void);

/*
 * Calls `file.flock(LOCK_UN)`, and checks that it arrives as a call on `expected`, which is the same file except in
 * tests. Returns heddle_io_calls_missing(). After a failed check the caller must restore the entries.
 */
const char *heddle_io_calls_check(VALUE file, VALUE expected);
