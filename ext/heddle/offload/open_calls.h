#pragma once

/*
 * Recognizes how Ruby itself opens files and folders. A call that can't wait for another program or fiber needs no
 * offload thread. But opening a FIFO, which waits for its other end, is a call of the same function. So the path
 * decides. Ruby passes the path in a record that no header declares. So trial calls of File.open and Dir.new must first
 * arrive with the expected arguments.
 */

#include <ruby.h>

/*
 * Calls IO.sysopen and Dir.new, and notes which functions they use to open. Without a result, every open call counts
 * as one that may wait.
 */
void heddle_open_calls_learn(void);
/* Called for each call of Ruby's own: notes it if it belongs to the trial of heddle_open_calls_learn. */
void heddle_open_calls_note(void *(*function)(void *), const void *data);
/* Does the call open a file or folder without a wait, except perhaps for the disk? False for all other calls. */
bool heddle_open_call_never_waits(const void *function, const void *data);
