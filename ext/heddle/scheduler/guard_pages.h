#pragma once

/*
 * Lets a process hold more fibers than vm.max_map_count / 2. Ruby protects the end of each fiber's stack by
 * mprotect(page, PROT_NONE). That splits the mapping, so a fiber costs two of the 65,530 mappings that Linux grants a
 * process by default, and fiber 31,745 fails.
 *
 * Since Linux 6.13 a page can be guarded without a mapping of its own: madvise(page, MADV_GUARD_INSTALL). Ruby doesn't
 * do that yet, so Heddle replaces the entry of mprotect in libruby's global offset table. The replacement handles only
 * guard pages, and passes all other calls of Ruby on. Calls of other libraries are not affected.
 */

#include "system.h"

/*
 * Installs the replacement for the whole process, once. If that fails, nothing has changed, and
 * heddle_guard_pages_status() tells the reason. HEDDLE_GUARD_PAGES=0 in the environment switches it off.
 */
void heddle_guard_pages_install(void);

/*
 * From now on heddle_guard_pages_install() changes nothing, for this reason; NULL allows it again. The string must stay
 * valid.
 */
void heddle_guard_pages_forbid(const char *reason);

/* NULL if guard pages are in use; otherwise the reason why not. */
const char *heddle_guard_pages_status(void);

/* The number of guard pages made in this way. */
size_t heddle_guard_pages_count(void);

/*
 * Makes the message for a user when Ruby could not make another fiber: names the limit, and how to raise it. Ruby's own
 * FiberErrors are "can't set a guard page", "can't alloc machine stack to fiber" and, from 4.0 on, "can't allocate
 * fiber stack". Returns `buffer`.
 */
const char *heddle_fiber_limit_message(char *buffer, size_t size);
