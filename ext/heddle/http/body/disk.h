#pragma once

/*
 * Counts the bytes on disk of this process's request bodies, in total and for each client address. The scoreboard
 * (memory that all processes of the server share) has the total of all processes. Any thread may call these functions.
 * Uses no Ruby.
 */

#include "net/address.h"
#include "net/scoreboard.h"

/* The count of one body. */
typedef struct {
    uint64_t bytes;
    uint16_t address; /* from heddle_address_find_number; 0: only the limit for all bodies applies */
} heddle_body_disk_count;

/*
 * Raises the count of a body to `bytes`. Returns false and changes nothing in two cases:
 *
 * - all processes together would use more than `limit` bytes;
 * - all processes together would use more than half of `limit`, and the client's address would use more than its share
 *   in this process. The share is the unused part of `limit`, divided by the number of processes. So with one process
 *   the first address can use half of `limit`, the second a quarter, and so on. An address with a single body may
 *   exceed its share.
 */
bool heddle_body_disk_take(heddle_body_disk_count *body, uint64_t bytes, uint64_t limit);
/* Would heddle_body_disk_take return true now? Changes nothing. */
bool heddle_body_disk_has_room(const heddle_body_disk_count *body, uint64_t bytes, uint64_t limit);
/* Subtracts the bytes of a body. */
void heddle_body_disk_release(heddle_body_disk_count body);
/* Returns the bytes that this process uses on disk. */
uint64_t heddle_body_disk_used(void);

/*
 * From now on, publishes this process's bytes in this slot of the scoreboard, and applies limits to the bytes of all
 * processes. The scoreboard must stay mapped until the process ends.
 */
void heddle_body_disk_share(const heddle_scoreboard *scoreboard, uint32_t slot);

/* Called before and after a fork. A child starts with a count of 0 and without a slot. */
void heddle_body_disk_before_fork(void);
void heddle_body_disk_after_fork(bool child);
