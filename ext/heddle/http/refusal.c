#include "http/refusal.h"

#include <stdarg.h>
#include <stdio.h>

int heddle_refuse(heddle_refusal *refusal, int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    refusal->status = status;
    vsnprintf(refusal->reason, sizeof(refusal->reason), format, arguments);
    va_end(arguments);
    return -1;
}
