#include "http/request_limits.h"

int heddle_reject_large_body(heddle_rejection *rejection, uint64_t limit)
{
    return heddle_reject(rejection, 413, "the body is larger than %llu bytes", (unsigned long long)limit);
}

int heddle_judge_request(int64_t content_length, uint64_t body_limit, bool more_expected, heddle_rejection *rejection)
{
    if (content_length == INT64_MAX || (content_length > 0 && (uint64_t)content_length > body_limit))
        return heddle_reject_large_body(rejection, body_limit);
    if (more_expected)
        return heddle_reject(rejection, 417, "the only expectation that this server supports is 100-continue");
    return 0;
}
