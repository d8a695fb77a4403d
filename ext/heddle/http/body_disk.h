#ifndef HEDDLE_BODY_DISK_H
#define HEDDLE_BODY_DISK_H

/*
 * How many bytes of request bodies are on disk: of this process, and of the other processes of its server, which show
 * theirs on the scoreboard. Any thread may call these; no Ruby here.
 */

#include "net/scoreboard.h"

/* Counts `bytes` more. False, and nothing is counted: all processes together would have more than `limit`. */
bool heddle_body_disk_take(uint64_t bytes, uint64_t limit);
void heddle_body_disk_release(uint64_t bytes);
/* Would heddle_body_disk_take succeed now? */
bool heddle_body_disk_has_room(uint64_t bytes, uint64_t limit);
/* Bytes of this process. */
uint64_t heddle_body_disk_used(void);

/* From now on this process counts with the others on the scoreboard, which must stay mapped until the process ends. */
void heddle_body_disk_share(const heddle_scoreboard *scoreboard, uint32_t slot);

/* Around fork: a child has no files of its own yet, and no slot. */
void heddle_body_disk_before_fork(void);
void heddle_body_disk_after_fork(bool child);

#endif
