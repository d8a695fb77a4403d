/*
 * Nanoseconds for parsing a head: the one that wrk sends, one of a browser, and the latter in two pieces. No test:
 *
 *   cc -std=gnu17 -O2 -Iext/heddle test/c/http_parser_benchmark.c ext/heddle/http/h1/{server/request_head,head,field_lines,line_errors}.c \
 *      ext/heddle/http/{fields,control_fields,content_length,transfer_encoding,target,authority,text,rejection}.c -o tmp/parser && tmp/parser
 */

#include "http/message.h"

#include <stdio.h>
#include <time.h>

enum {
    FIELDS = 100,
    ROUNDS = 9,
    PARSES = 200000,
};

static const heddle_http_limits limits = {
    .request_line = 16384, .header = 32768, .header_count = FIELDS, .body = 1 << 30,
};

static const char wrk[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1:9292\r\n\r\n";

static const char browser[] =
    "GET /articles/2026/11/fibers?page=2 HTTP/1.1\r\nHost: www.example.org\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n"
    "Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n"
    "Referer: https://www.example.org/articles\r\nConnection: keep-alive\r\n"
    "Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\nUpgrade-Insecure-Requests: 1\r\n"
    "Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: same-origin\r\n\r\n";

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* The best of some rounds. `cut`: what comes first; 0: all at once. */
static void measure(const char *name, const char *bytes, size_t size, size_t cut)
{
    heddle_field fields[FIELDS];
    heddle_rejection rejection;
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        for (int i = 0; i < PARSES; i++) {
            heddle_request_head head;
            head.fields = fields;
            head.field_room = FIELDS;
            if (cut)
                heddle_request_head_parse(&head, bytes, cut, 0, &limits, &rejection);
            if (heddle_request_head_parse(&head, bytes, size, cut, &limits, &rejection) != (int)size)
                printf("%s: not parsed\n", name);
            __asm__ volatile("" : : "r"(&head) : "memory");
        }
        double spent = (now() - start) / PARSES;
        best = spent < best ? spent : best;
    }
    printf("%-24s %4zu bytes %7.1f ns %6.2f GB/s\n", name, size, best, (double)size / best);
}

int main(void)
{
    measure("wrk", wrk, sizeof(wrk) - 1, 0);
    measure("browser, 12 fields", browser, sizeof(browser) - 1, 0);
    measure("browser, in two pieces", browser, sizeof(browser) - 1, 300);
    return 0;
}
