/* sources: http/h1/client/response_head.c http/h1/head.c http/h1/field_lines.c http/fields.c http/control_fields.c http/content_length.c http/transfer_encoding.c */
/* sources: http/text.c http/h1/line_errors.c http/rejection.c http/request_limits.c */
#include "../fuzz/response_head_fuzz.c"

enum { CHECK_CHOICES = 16 };

#include "http_corpus.h"

static void corpus_of_response_heads_keeps_the_invariants(void)
{
    CHECK(check_corpus("response_head") >= 15);
}

static void parser_reads_no_byte_behind_the_end(void)
{
    static const char head[] = "HTTP/1.1 200 A reason that is long enough\r\nContent-Length: 3, 3\r\n"
                               "Set-Cookie: a=b;\r\n\tc=d\r\n e=f\r\n"
                               "Connection:\r\n close\r\nX: \x80\xFF\r\nTE:\r\n\r\n";
    check_promises(head, sizeof(head) - 1);
    char copy[sizeof(head)];
    for (size_t at = 0; at < sizeof(head) - 1; at++) {
        for (size_t i = 0; i < 6; i++) {
            memcpy(copy, head, sizeof(head));
            copy[at] = "\r\n\0 :\xFF"[i];
            check_promises(copy, at + 1);
        }
    }
}

/* Every place and every way to cut it: a fold goes on where the next line starts, whenever that comes. */
static void folded_lines_are_joined_to_one_value(void)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\td\r\n \r\nE:\r\n\r\n";
    heddle_http_limits limits = fuzz_limits(0);
    outcome out;
    parse(&out, head, sizeof(head) - 1, 0, &limits);
    CHECK_EQUAL(sizeof(head) - 1, out.result);
    CHECK(out.head.folded);
    CHECK_EQUAL(2, out.head.field_count);
    CHECK_EQUAL(9, out.fields[0].value.size); /* the last fold of all is no part of it */
    CHECK_EQUAL(5, out.head.line_count);
    check_promises(head, sizeof(head) - 1);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("response head", "corpus of response heads keeps the invariants",
              corpus_of_response_heads_keeps_the_invariants);
    check_run("response head", "parser reads no byte behind the end", parser_reads_no_byte_behind_the_end);
    check_run("response head", "folded lines are joined to one value", folded_lines_are_joined_to_one_value);
    return check_end();
}
