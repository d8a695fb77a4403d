#pragma once

/* Rejects requests, in every version of HTTP, for the size of their body (413) or their Expect (417). Uses no Ruby. */

#include "http/rejection.h"

/*
 * Rejects a request whose content-length exceeds the limit, or that has an expectation other than 100-continue. A
 * negative length is not checked. `more_expected`: the Expect has another expectation. Returns -1 if the request is
 * rejected, else 0.
 */
int heddle_judge_request(int64_t content_length, uint64_t body_limit, bool more_expected, heddle_rejection *rejection);
/* Rejects a request because its body exceeds the limit. Returns -1. */
int heddle_reject_large_body(heddle_rejection *rejection, uint64_t limit);
