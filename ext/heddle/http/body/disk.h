#pragma once

/*
 * Counts the bytes of request bodies on disk: of this process, and, by the scoreboard, of the server's other processes.
 * Any thread may call these functions. Uses no Ruby.
 */

#include "net/scoreboard.h"

/* Adds `bytes`. False, and nothing is added: all processes together would have more than `limit`. */
bool heddle_body_disk_take(uint64_t bytes, uint64_t limit);
void heddle_body_disk_release(uint64_t bytes);
/* The bytes of this process. */
uint64_t heddle_body_disk_used(void);

/*
 * Shows this process's bytes on the scoreboard, and counts the others'. The scoreboard must stay mapped until the
 * process ends.
 */
void heddle_body_disk_share(const heddle_scoreboard *scoreboard, uint32_t slot);

/* Around fork: a child has no files and no slot. */
void heddle_body_disk_before_fork(void);
void heddle_body_disk_after_fork(bool child);
