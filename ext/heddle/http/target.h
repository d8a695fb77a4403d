#pragma once

/* Request targets. Uses no Ruby. */

#include "http/message.h"

/*
 * Splits the target of a request (RFC 9112, 3.2) into path, query and, if it has one, authority with host and port. The
 * caller has set the head's method_id and target, and has checked the target's characters. Returns 0, or -1 if the
 * target is rejected.
 */
int heddle_target_split(heddle_request_head *head, const char *bytes, heddle_rejection *rejection);

/* Sets authority, host and port. `authority`: a slice of `bytes`. Returns false if it is invalid. */
bool heddle_target_authority(heddle_request_head *head, const char *bytes, heddle_slice authority);
