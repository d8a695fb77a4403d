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

static void ids_in_paths_are_all_the_same(void)
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

static void a_long_label_is_cut(void)
{
    char target[1000], label[HEDDLE_REQUEST_LABEL];
    memset(target, 'a', sizeof(target));
    target[0] = '/';
    CHECK_EQUAL(HEDDLE_REQUEST_LABEL - 1, heddle_request_label_write(label, "GET", 3, target, sizeof(target)));
    CHECK_EQUAL(HEDDLE_REQUEST_LABEL - 1, strlen(label));
    CHECK_EQUAL(HEDDLE_REQUEST_LABEL - 1, heddle_request_label_write(label, target, sizeof(target), "/", 1));
}

#define RUN(test) check_run("request label", #test, test)

int main(int count, char **arguments)
{
    check_filter = count > 1 ? arguments[1] : NULL;
    RUN(ids_in_paths_are_all_the_same);
    RUN(a_long_label_is_cut);
    return check_end();
}
