#pragma once

/*
 * Counts the bytes of this process's request bodies on disk, in total and for each client address. The scoreboard has
 * the bytes of the other processes. Any thread may call these functions. Uses no Ruby.
 */

#include "net/address.h"
#include "net/scoreboard.h"

/* The count of one body. */
typedef struct {
    uint64_t bytes;
    uint16_t address; /* the client's number from heddle_address_find_number */
} heddle_body_disk_count;

/*
 * Raises the count of a body to `bytes`. Returns false, and changes nothing, in two cases:
 *
 * - all processes together would have more than `limit`;
 * - all processes together would have more than half of `limit`, and the body's address more than its share in this
 *   process. A share is what is left of `limit` for other bodies, divided by the number of processes: so one address
 *   has half of `limit`, the next a quarter, and so on. An address with a single body may exceed it.
 */
bool heddle_body_disk_take(heddle_body_disk_count *body, uint64_t bytes, uint64_t limit);
/* Would heddle_body_disk_take return true now? */
bool heddle_body_disk_has_room(const heddle_body_disk_count *body, uint64_t bytes, uint64_t limit);
void heddle_body_disk_release(heddle_body_disk_count body);
/* The bytes on disk of this process. */
uint64_t heddle_body_disk_used(void);

/*
 * From now on, shows this process's bytes in this slot of the scoreboard, and counts the bytes of the other processes.
 * The scoreboard must stay mapped until the process ends.
 */
void heddle_body_disk_share(const heddle_scoreboard *scoreboard, uint32_t slot);

/* Call these around a fork: a child has no files and no slot. */
void heddle_body_disk_before_fork(void);
void heddle_body_disk_after_fork(bool child);
