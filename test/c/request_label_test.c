/* sources: http/request_label.c */
#include "check.h"
#include "http/request_label.h"

/* Requests that differ by what names one of many have the same label, and no label is longer than it may be. */

static void is_label(const char *expected, const char *method, const char *target)
{
    char label[HEDDLE_REQUEST_LABEL];
    /* From the heap, so that a read beyond the end is seen. */
    char *copy = malloc(strlen(target) + 1);
    size_t size = strlen(target);
    memcpy(copy, target, size);
    copy = realloc(copy, size ? size : 1);
    CHECK_EQUAL(strlen(expected), heddle_request_label_write(label, method, strlen(method), copy, size));
    free(copy);
    if (strcmp(expected, label) != 0)
        printf("    %s\n", label);
    CHECK(strcmp(expected, label) == 0);
}

static void ids_in_paths_become_the_same_text(void)
{
    is_label("GET /", "GET", "/");
    is_label("GET /", "GET", "");
    is_label("GET /users", "GET", "/users?id=7&page=2");
    is_label("GET /users/:id/edit", "GET", "/users/7/edit");
    is_label("GET /users/:id/edit", "GET", "/users/:id/edit");
    is_label("PUT /users/:id.json", "PUT", "/users/123456.json?a=/b/9");
    is_label("GET /o/:id/", "GET", "/o/0b6c2e66-52a1-4a0e-9c0e-2f0b3a1d9a11/");
    is_label("GET /o/:id", "GET", "/o/DEADBEEF00112233");
    is_label("GET /blobs/:id/x", "GET", "/blobs/da39a3ee5e6b4b0d3255bfef95601890afd80709/x");
    is_label("GET /v2/accede/decade", "GET", "/v2/accede/decade");
    is_label("GET /defacedefacedeface", "GET", "/defacedefacedeface"); /* no digit: a word */
    is_label("GET //a//:id", "GET", "//a//1");
    is_label("GET /a/:id", "GET", "http://example.org:80/a/5?b");
    is_label("GET /", "GET", "http://example.org");
    is_label("OPTIONS *", "OPTIONS", "*");
    is_label("GET a:", "GET", "a:");
    is_label("GET a:/", "GET", "a:/");
    is_label("CONNECT example.org:443", "CONNECT", "example.org:443");
}

/* Tokens of password resets, invitations, sessions and unsubscriptions are in paths, too. */
static void secrets_in_paths_do_not_appear_in_a_label(void)
{
    is_label("GET /reset/:id", "GET", "/reset/k3jx9q2mz7w4v8tn");        /* base36 */
    is_label("GET /reset/:id", "GET", "/reset/WFhSMzVtY2dTQnhuTEtxYQ");  /* base64url */
    is_label("GET /reset/:id", "GET", "/reset/XyHqRmcgSBxnLKqaWf");      /* without a digit */
    is_label("GET /reset/:id", "GET", "/reset/aGVsbG9Xb3JsZA==");
    is_label("GET /reset/:id", "GET", "/reset/ab%2Fcd");
    is_label("GET /reset/:id", "GET", "/reset/kxjhqwmzvbtnplrsdfgca"); /* longer than any word */
    is_label("GET /reset/:id", "GET", "/reset/KXJHQWMZVBTNPLRSDFGCA");
    is_label("GET /reset/:id/new", "GET", "/reset/top-10-things-to-do/new");
    is_label("GET /jwt/:id", "GET", "/jwt/eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.c2VjcmV0c2lnbmF0dXJl");
    is_label("GET /a/:id", "GET", "/a/12.WFhSMzVtY2dTQnhuTEtxYQ");
    is_label("GET /a/:id", "GET", "/a/users.WFhSMzVtY2dTQnhuTEtxYQ");
    is_label("GET /a/:id.pdf", "GET", "/a/WFhSMzVtY2dTQnhuTEtxYQ.pdf");
    is_label("GET /unsubscribe/:id.org", "GET", "/unsubscribe/anna@example.org");
    is_label("GET /:id", "GET", "/@anna");
    is_label("GET /:id/b", "GET", "/a;secret=1/b");
    is_label("OTHER /", "X-SECRET-1234", "/");
    is_label("OTHER /", "get", "/");
    is_label("OTHER /", "ABCDEFGHIJKLMNOPQR", "/");
    is_label("UPDATEREDIRECTREF /", "UPDATEREDIRECTREF", "/");
}

static void words_in_paths_are_kept(void)
{
    is_label("GET /how-to-write-tests-in-ruby", "GET", "/how-to-write-tests-in-ruby");
    is_label("GET /password_resets/edit", "GET", "/password_resets/edit");
    is_label("POST /helloworld.Greeter/SayHello", "POST", "/helloworld.Greeter/SayHello");
    is_label("GET /getUserInformation.json", "GET", "/getUserInformation.json");
    is_label("GET /api/v2/oauth2/ipv6", "GET", "/api/v2/oauth2/ipv6");
    is_label("GET /TERMS-AND-CONDITIONS", "GET", "/TERMS-AND-CONDITIONS");
    is_label("GET /internationalization", "GET", "/internationalization");
    is_label("BASELINE-CONTROL /", "BASELINE-CONTROL", "/");
}

static void long_label_is_truncated(void)
{
    char target[1000], label[HEDDLE_REQUEST_LABEL];
    for (size_t i = 0; i < sizeof(target); i++)
        target[i] = i % 2 ? 'a' : '/';
    CHECK_EQUAL(HEDDLE_REQUEST_LABEL - 1, heddle_request_label_write(label, "GET", 3, target, sizeof(target)));
    CHECK_EQUAL(HEDDLE_REQUEST_LABEL - 1, strlen(label));
    CHECK_EQUAL(HEDDLE_REQUEST_LABEL - 1, heddle_request_label_write(label, "A", 1, target, sizeof(target)));
}

static uint32_t hash_of_line(const char *line)
{
    size_t size = strlen(line);
    char *copy = malloc(size ? size : 1); /* so that a read beyond the end is seen */
    memcpy(copy, line, size);
    uint32_t hash = heddle_request_label_hash_line(copy, size);
    free(copy);
    return hash;
}

static void hash_of_a_request_line_is_the_hash_of_its_label(void)
{
    uint32_t hash = heddle_request_label_hash("GET", 3, "/users/7", 8);
    CHECK(hash != 0);
    CHECK_EQUAL(hash, hash_of_line("GET /users/8 HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK_EQUAL(hash, hash_of_line("\r\n\r\nGET /users/12?a=b"));
    CHECK(hash != hash_of_line("PUT /users/8 HTTP/1.1\r\n"));
    CHECK(hash != hash_of_line("GET /users/8/edit HTTP/1.1\r\n"));
}

static void incomplete_request_line_has_no_hash(void)
{
    CHECK_EQUAL(0, hash_of_line(""));
    CHECK_EQUAL(0, hash_of_line("\r\n"));
    CHECK_EQUAL(0, hash_of_line("GET"));
    CHECK_EQUAL(0, hash_of_line("GET "));
    CHECK_EQUAL(0, hash_of_line("GET /users/8"));
    char line[1024] = "GET /";
    memset(line + 5, 'a', sizeof(line) - 6);
    CHECK(hash_of_line(line) != 0); /* no label is that long */
}

#define RUN(test) check_run("request label", #test, test)

int main(int count, char **arguments)
{
    check_filter = count > 1 ? arguments[1] : NULL;
    RUN(ids_in_paths_become_the_same_text);
    RUN(secrets_in_paths_do_not_appear_in_a_label);
    RUN(words_in_paths_are_kept);
    RUN(long_label_is_truncated);
    RUN(hash_of_a_request_line_is_the_hash_of_its_label);
    RUN(incomplete_request_line_has_no_hash);
    return check_end();
}
