/* The Date field of responses, formatted once a second. */

#include "http/response_head_writer.h"

static void put_digits(char *at, int count, int64_t number)
{
    while (count > 0) {
        at[--count] = (char)('0' + number % 10);
        number /= 10;
    }
}

void heddle_date_line(char *out, int64_t seconds)
{
    /* the first and the last second of the years 0000 to 9999 */
    static const int64_t first = -INT64_C(62167219200), last = INT64_C(253402300799);
    seconds = seconds < first ? first : seconds > last ? last : seconds;

    /* Counts days from 1 March of the year 0. When years begin in March, the leap day is the last day of its year. */
    int64_t since_march = (seconds - first) / 86400 - 60, second = (seconds - first) % 86400;
    int64_t weekday = (since_march + 60 + 6) % 7; /* 1 January of the year 0 was a Saturday */
    int64_t year = 0;
    if (since_march < 0) { /* for January and February of the year 0, computes with the date 400 years later */
        since_march += 146097;
        year = -400;
    }
    year += since_march / 146097 * 400;
    int64_t day = since_march % 146097;
    int64_t centuries = day / 36524 - day / 146096;
    day -= centuries * 36524;
    int64_t leaps = day / 1461;
    day -= leaps * 1461;
    int64_t years = day / 365 - day / 1460;
    day -= years * 365;
    year += centuries * 100 + leaps * 4 + years;
    int64_t month = (5 * day + 2) / 153; /* 0: March */
    day -= (153 * month + 2) / 5;
    if (month >= 10)
        year++;

    memcpy(out, "date: Sun, 00 Mar 0000 00:00:00 GMT\r\n", 38);
    memcpy(out + 6, &"SunMonTueWedThuFriSat"[3 * weekday], 3);
    put_digits(out + 11, 2, day + 1);
    memcpy(out + 14, &"MarAprMayJunJulAugSepOctNovDecJanFeb"[3 * month], 3);
    put_digits(out + 18, 4, year);
    put_digits(out + 23, 2, second / 3600);
    put_digits(out + 26, 2, second / 60 % 60);
    put_digits(out + 29, 2, second % 60);
}
