/* The Date field of responses, formatted once a second. The names of days and months don't depend on the locale. */

#include "http/response_head_writer.h"

void heddle_date_line(char *out, int64_t seconds)
{
    /* the first and the last second of the years 0000 to 9999 */
    static const time_t first = -INT64_C(62167219200), last = INT64_C(253402300799);
    time_t time = seconds < first ? first : seconds > last ? last : (time_t)seconds;
    struct tm parts;
    char line[96]; /* the compiler does not know the numbers' ranges, and would warn about a shorter array */
    gmtime_r(&time, &parts);
    snprintf(line, sizeof(line), "date: %.3s, %02d %.3s %04d %02d:%02d:%02d GMT\r\n",
             &"SunMonTueWedThuFriSat"[3 * parts.tm_wday], parts.tm_mday,
             &"JanFebMarAprMayJunJulAugSepOctNovDec"[3 * parts.tm_mon], parts.tm_year + 1900, parts.tm_hour,
             parts.tm_min, parts.tm_sec);
    memcpy(out, line, HEDDLE_DATE_LINE + 1);
}
