#pragma once

/*
 * How Ruby itself opens files and folders. An opening that can't wait for another program or fiber needs no offload
 * thread. The open of a FIFO waits for its other end, and both are calls of the same function, so the path is looked
 * at. Ruby passes it in a record that is in no header: File.open and Dir.new have to arrive with the expected
 * arguments first.
 */

#include <ruby.h>

/*
 * Calls IO.sysopen and Dir.new, and learns by which functions they open. Without a result all openings are taken for
 * ones that may wait.
 */
void heddle_openings_learn(void);
/* Does a call of Ruby's own belong to the one under way in heddle_openings_learn? */
void heddle_openings_note(void *(*function)(void *), const void *data);
/* Is it an opening that waits for nobody, but maybe for the disk? False for all other functions. */
bool heddle_opening_waits_for_nobody(const void *function, const void *data);
