#pragma once

/*
 * Recognizes the calls by which Ruby itself opens files and folders. Opening a regular file needs no offload thread,
 * because it can't wait for another program or fiber. But Ruby opens a FIFO by the same function, and that call waits
 * until another program opens the other end. So the path decides. Ruby passes the path in a record that no header
 * declares. Therefore trial calls of IO.sysopen and Dir.new first show which functions Ruby uses, and that their
 * arguments are as expected.
 */

#include <ruby.h>

/* Makes the trial calls. If they don't show the functions, every call that opens a file counts as one that may wait. */
void heddle_open_calls_learn(void);
/*
 * Called for each native call that Ruby itself makes: records its function if it is a trial call of
 * heddle_open_calls_learn.
 */
void heddle_open_calls_note(void *(*function)(void *), const void *data);
/* Does the call open a file or folder, and wait for nothing but perhaps the disk? False for all other calls. */
bool heddle_open_call_never_waits(const void *function, const void *data);
