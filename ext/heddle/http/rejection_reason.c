#include "http/rejection_reason.h"

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
    heddle_reject(rejection, 501, "this server opens no tunnels to other hosts");
}
