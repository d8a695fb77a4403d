#pragma once

/*
 * Allows a process to have more fibers than vm.max_map_count / 2. Ruby protects the end of each fiber's stack with a
 * guard page: mprotect(page, PROT_NONE). That splits the mapping, so a fiber needs two of the 65,530 mappings that
 * Linux allows a process by default, and creating fiber 31,745 fails.
 *
 * Since Linux 6.13 a page can be guarded without a mapping of its own: madvise(page, MADV_GUARD_INSTALL). Ruby doesn't
 * do that yet, so Heddle replaces the entry of mprotect in libruby's global offset table. The replacement handles only
 * guard pages, and forwards all other calls by Ruby. Heddle also replaces madvise there, so that a process with few
 * fibers keeps the memory of vacant stacks (STACKS_TO_KEEP). Calls by other libraries are not affected.
 */

#include "system.h"

/*
 * Installs the replacements for the whole process, once. If that fails, nothing is changed, and
 * heddle_guard_pages_status() returns the reason. HEDDLE_GUARD_PAGES=0 in the environment switches it off.
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
 * Called when Ruby could not create another fiber. Writes a message for the user into `buffer`: what limits the number
 * of fibers, and how to allow more. Ruby's own FiberErrors are "can't set a guard page", "can't alloc machine stack to
 * fiber" and, from 4.0 on, "can't allocate fiber stack". Returns `buffer`.
 */
const char *heddle_fiber_limit_message(char *buffer, size_t size);
