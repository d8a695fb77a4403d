/* sources: http/forwarded.c http/h1/server/request_head.c http/h1/head.c http/h1/field_lines.c http/fields.c http/control_fields.c http/content_length.c http/transfer_encoding.c */
/* sources: http/target.c http/authority.c http/text.c http/h1/line_errors.c http/rejection.c http/request_limits.c net/address.c */
#include "check.h"

#include "http/forwarded.h"

/* Of a request with these lines, in memory of exactly their size. */
static heddle_scheme scheme_of(const char *lines)
{
    static heddle_field fields[20];
    const heddle_http_limits limits = {.request_line = 8192, .header = 40000, .header_count = 20, .body = 1};
    size_t size = strlen(lines) + 27;
    char *bytes = malloc(size + 1);
    CHECK_EQUAL(size, sprintf(bytes, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", lines));
    bytes = realloc(bytes, size);
    heddle_request_head head = {.fields = fields, .field_room = 20};
    heddle_rejection rejection;
    CHECK_EQUAL(size, heddle_request_head_parse(&head, bytes, size, 0, &limits, &rejection));
    heddle_scheme scheme = heddle_forwarded_scheme(&head, bytes);
    free(bytes);
    return scheme;
}

static bool is_ten(const void *unused __attribute__((unused)), const heddle_address *address)
{
    return address->family == AF_INET && address->bytes[0] == 10;
}

/* Who the client is by these lines, where proxies are in 10.0.0.0/8; "" : nobody says. */
static const char *client_of(const char *lines)
{
    static heddle_field fields[20];
    static char text[HEDDLE_ADDRESS_ROOM];
    const heddle_http_limits limits = {.request_line = 8192, .header = 40000, .header_count = 20, .body = 1};
    size_t size = strlen(lines) + 27;
    char *bytes = malloc(size + 1);
    CHECK_EQUAL(size, sprintf(bytes, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", lines));
    bytes = realloc(bytes, size);
    heddle_request_head head = {.fields = fields, .field_room = 20};
    heddle_rejection rejection;
    heddle_address client;
    CHECK_EQUAL(size, heddle_request_head_parse(&head, bytes, size, 0, &limits, &rejection));
    bool found = heddle_forwarded_client(&head, bytes, is_ten, NULL, &client);
    free(bytes);
    return found ? heddle_address_text(&client, text) : "";
}

#define CHECK_CLIENT(expected, lines) CHECK(strcmp(expected, client_of(lines)) == 0)

static void client_is_the_last_address_that_is_not_a_proxy(void)
{
    CHECK_CLIENT("", "");
    CHECK_CLIENT("192.0.2.1", "X-Forwarded-For: 192.0.2.1\r\n");
    CHECK_CLIENT("192.0.2.1", "X-Forwarded-For: 203.0.113.9, 192.0.2.1 ,10.0.0.1\r\n");
    CHECK_CLIENT("192.0.2.1", "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 192.0.2.1, 10.1.1.1\r\n");
    CHECK_CLIENT("10.0.0.1", "X-Forwarded-For: 10.0.0.1, 10.0.0.2\r\n");
    CHECK_CLIENT("192.0.2.1", "X-Forwarded-For: 192.0.2.1:8080\r\n");
    CHECK_CLIENT("2001:db8::1", "X-Forwarded-For: 2001:db8::1, 10.0.0.1\r\n");
    CHECK_CLIENT("2001:db8::1", "X-Forwarded-For: [2001:db8::1]:80\r\n");
    CHECK_CLIENT("192.0.2.7", "Forwarded: for=192.0.2.7;proto=https, for=10.0.0.1\r\nX-Forwarded-For: 1.2.3.4\r\n");
    CHECK_CLIENT("2001:db8::1", "Forwarded: for=\"[2001:db8::1]:4711\"\r\n");
    CHECK_CLIENT("1.2.3.4", "Forwarded: proto=https\r\nX-Forwarded-For: 1.2.3.4\r\n");
    CHECK_CLIENT("1.2.3.4", "Forwarded: for=\"192.0.2.7\r\nX-Forwarded-For: 1.2.3.4\r\n");
}

/* What a client writes before an address that is none must not stand for it. */
static void malformed_client_address_is_ignored(void)
{
    CHECK_CLIENT("", "X-Forwarded-For: 192.0.2.1, unknown, 10.0.0.1\r\n");
    CHECK_CLIENT("", "X-Forwarded-For: 192.0.2.1, 10.0.0.1\\n, 10.0.0.1\r\n");
    CHECK_CLIENT("", "X-Forwarded-For: ,, ,\r\n");
    CHECK_CLIENT("", "X-Forwarded-For: [::1, [], :, 1.2.3.4.5\r\n");
    CHECK_CLIENT("", "X-Forwarded-For: 1111111111111111111111111111111111111111111111111111111111111\r\n");
    CHECK_CLIENT("", "Forwarded: for=_hidden\r\nX-Forwarded-For: 1.2.3.4\r\n");
}

static void scheme_comes_from_the_nearest_proxy(void)
{
    CHECK_EQUAL(HEDDLE_SCHEME_UNKNOWN, scheme_of(""));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTPS, scheme_of("X-Forwarded-Proto: https\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTPS, scheme_of("X-Forwarded-Proto: HTTPS\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTP, scheme_of("X-Forwarded-Proto: http\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTP, scheme_of("X-Forwarded-Proto: https, http\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTP, scheme_of("X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTPS, scheme_of("X-Forwarded-Proto: wss\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTP, scheme_of("X-Forwarded-Proto: ws\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTPS, scheme_of("X-Forwarded-Proto: http,https , wss,\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_UNKNOWN, scheme_of("X-Forwarded-Proto: httpsx, ftp, ,\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_UNKNOWN, scheme_of("X-Forwarded-Proto:\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTPS, scheme_of("X-Forwarded-Scheme: https\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTP, scheme_of("X-Forwarded-Scheme: https\r\nX-Forwarded-Proto: http\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTPS, scheme_of("X-Forwarded-Ssl: on\r\nX-Forwarded-Proto: http\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTP, scheme_of("X-Forwarded-Ssl: off\r\nX-Forwarded-Proto: http\r\n"));
}

static void field_forwarded_is_parsed(void)
{
    CHECK_EQUAL(HEDDLE_SCHEME_HTTPS, scheme_of("Forwarded: proto=https\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTPS, scheme_of("Forwarded: for=192.0.2.60;Proto=\"https\" ; by=203.0.113.43\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTP, scheme_of("Forwarded: proto=https, for=\"[2001:db8::1]:80\";proto=http\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTP, scheme_of("Forwarded: proto=https\r\nForwarded: proto=http\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTPS, scheme_of("Forwarded: proto=https\r\nX-Forwarded-Proto: http\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTPS, scheme_of("Forwarded: for=1.2.3.4:80;proto=https\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTP, scheme_of("Forwarded: for=\"a;proto=https\\\"\";proto=http\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_UNKNOWN, scheme_of("Forwarded: for=1.2.3.4\r\n"));
    CHECK_EQUAL(HEDDLE_SCHEME_HTTPS, scheme_of("Forwarded: , ;proto=https;;\r\n"));
}

static void malformed_field_forwarded_is_ignored(void)
{
    const char *wrong[] = {"proto",           "proto=",
                           "=https",          "proto=https for=x",
                           "proto=https;for", "proto=\"https",
                           "proto=\"https\\", "proto=https;for=\"",
                           "proto=https\"",   "proto=https, {}=1",
                           "proto = https"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        char lines[200];
        snprintf(lines, sizeof(lines), "Forwarded: %s\r\n", wrong[i]);
        CHECK_EQUAL(HEDDLE_SCHEME_UNKNOWN, scheme_of(lines));
        snprintf(lines, sizeof(lines), "Forwarded: proto=https\r\nForwarded: %s\r\nX-Forwarded-Proto: http\r\n",
                 wrong[i]);
        CHECK_EQUAL(HEDDLE_SCHEME_HTTP, scheme_of(lines));
    }
}

/* When the proxy got the request, by a field with this value. */
static int64_t start_of(const char *value)
{
    char bytes[200];
    size_t size = strlen(value);
    memcpy(bytes, value, size);
    heddle_field field = {.id = HEDDLE_FIELD_X_REQUEST_START, .value = {.start = 0, .size = (uint32_t)size}};
    heddle_request_head head = {.fields = &field, .field_count = 1};
    return heddle_forwarded_start(&head, bytes);
}

static void request_start_is_parsed_in_each_unit(void)
{
    CHECK_EQUAL(INT64_C(1512379167574000000), start_of("1512379167574"));          /* Heroku */
    CHECK_EQUAL(INT64_C(1512379167574000000), start_of("t=1512379167.574"));       /* nginx */
    CHECK_EQUAL(INT64_C(1512379167000000000), start_of("t=1512379167"));
    CHECK_EQUAL(INT64_C(1512379167574123000), start_of("t=1512379167574123"));     /* HAProxy, balancers */
    CHECK_EQUAL(INT64_C(1512379167574123456), start_of("1512379167574123456"));
    CHECK_EQUAL(INT64_C(1512379167574123456), start_of("t=1512379167.574123456789"));
    CHECK_EQUAL(INT64_C(1512379167574500000), start_of("1512379167574.5"));
}

static void malformed_request_start_is_ignored(void)
{
    static const char *const wrong[] = {
        "", "t=", "x", "-1512379167574", "1512379167574 ", "1512379167.574s", "12345678", "t=t=1512379167",
        "15123791675741234567", "9223372036854775807", "99999999999999999999999", "1512379167.57.4", "0x5a24d2df",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        CHECK_EQUAL(0, start_of(wrong[i]));
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("forwarded", "scheme comes from the nearest proxy", scheme_comes_from_the_nearest_proxy);
    check_run("forwarded", "field Forwarded is parsed", field_forwarded_is_parsed);
    check_run("forwarded", "malformed field Forwarded is ignored", malformed_field_forwarded_is_ignored);
    check_run("forwarded", "client is the last address that is not a proxy",
              client_is_the_last_address_that_is_not_a_proxy);
    check_run("forwarded", "malformed client address is ignored", malformed_client_address_is_ignored);
    check_run("forwarded", "request start is parsed in each unit", request_start_is_parsed_in_each_unit);
    check_run("forwarded", "malformed request start is ignored", malformed_request_start_is_ignored);
    return check_end();
}
