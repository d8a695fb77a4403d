#include "http/rejection.h"

#include <stdarg.h>

int heddle_reject(heddle_rejection *rejection, int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    rejection->status = status;
    rejection->by_admission = rejection->unlogged = false;
    vsnprintf(rejection->reason, sizeof(rejection->reason), format, arguments);
    va_end(arguments);
    return -1;
}

void heddle_reject_connect(heddle_rejection *rejection)
{
    heddle_reject(rejection, 501, "this server does not open tunnels to other hosts");
}

void heddle_reject_overload(heddle_rejection *rejection, heddle_overload why, int64_t queue_timeout)
{
    static const char *const reasons[] = {
        [HEDDLE_QUEUE_FULL] = "the server is busy, and too many requests are already waiting",
        [HEDDLE_CLIENT_LEFT] = "the server is busy, and the client has ended its side of the connection",
        [HEDDLE_QUEUE_ENDS] = "the server is stopping",
    };
    if (why == HEDDLE_QUEUED_TOO_LONG)
        heddle_reject(rejection, 503, "the server is busy, and the request waited for %g s",
                      (double)queue_timeout / 1e9);
    else
        heddle_reject(rejection, 503, "%s", reasons[why]);
    rejection->by_admission = true;
}
