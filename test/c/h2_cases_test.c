/* sources: http/h2/[a-z]*.c http/text.c http/fields.c http/control_fields.c http/content_length.c http/transfer_encoding.c http/target.c http/authority.c http/rejection.c http/request_limits.c */

/* Every case of test/http/h2/cases.txt, fed to the session: in one piece, and byte by byte. */

#include "h2_owner.h"

#include <ctype.h>

enum {
    LINE = 1024,
    FRAME = 1 << 18,
};

static const char *const type_names[] = {"DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE",
                                         "PING", "GOAWAY", "WINDOW_UPDATE", "CONTINUATION"};
static const char *const error_names[] = {
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
    "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
};

typedef struct {
    uint8_t bytes[FRAME];
    size_t size;
} message;

static test_owner *owner;
static message sent;
static bool byte_by_byte;
static char case_name[LINE];

#define FAIL(...)                                                                                                     \
    do {                                                                                                              \
        printf("    %s: ", case_name);                                                                                \
        printf(__VA_ARGS__);                                                                                          \
        printf("\n");                                                                                                 \
        fflush(stdout);                                                                                               \
        _exit(1);                                                                                                     \
    } while (0)

static int find_name(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return (int)i;
    }
    return -1;
}

/* -- payloads ------------------------------------------------------------------------------------------------------ */

static void put(message *to, const void *bytes, size_t size)
{
    CHECK(to->size + size <= sizeof(to->bytes));
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

static void put_number(message *to, uint64_t value, unsigned bytes)
{
    while (bytes-- > 0)
        put(to, &(uint8_t){(uint8_t)(value >> 8 * bytes)}, 1);
}

static void put_field(message *to, const char *name, size_t name_size, const char *value)
{
    put_number(to, 0, 1);
    put_number(to, name_size, 1);
    put(to, name, name_size);
    put_number(to, strlen(value), 1);
    put(to, value, strlen(value));
}

static void put_request(message *to, const char *method)
{
    put_field(to, ":method", 7, method);
    put(to, "\x84\x86\x41\x09localhost", 13);
}

static bool is_hex(const char *word)
{
    size_t digits = strspn(word, "0123456789abcdef");
    return digits > 0 && digits % 2 == 0 && (word[digits] == '\0' || word[digits] == '*');
}

static void put_hex(message *to, const char *word)
{
    const char *star = strchr(word, '*');
    unsigned times = star ? (unsigned)atoi(star + 1) : 1;
    for (; times > 0; times--) {
        for (const char *at = word; isxdigit((unsigned char)*at); at += 2) {
            unsigned byte;
            sscanf(at, "%2x", &byte);
            put_number(to, byte, 1);
        }
    }
}

static void put_word(message *to, const char *word)
{
    unsigned setting;
    unsigned long value;
    const char *equals = strchr(word + (*word == ':'), '=');
    if (strcmp(word, "get") == 0)
        put_request(to, "GET");
    else if (strcmp(word, "post") == 0)
        put_request(to, "POST");
    else if (strcmp(word, "head") == 0)
        put_request(to, "HEAD");
    else if (*word == '#')
        put_number(to, strtoul(word + 1, NULL, 10), 4);
    else if (is_hex(word))
        put_hex(to, word);
    else if (equals)
        put_field(to, word, (size_t)(equals - word), equals + 1);
    else if (sscanf(word, "%u:%lu", &setting, &value) == 2)
        put_number(to, (uint64_t)setting << 32 | value, 6);
    else
        FAIL("what is %s?", word);
}

/* Words, and "text" with blanks. */
static void put_words(message *to, const char *at)
{
    char word[LINE];
    int used;
    while (at += strspn(at, " "), *at) {
        if (*at == '"') {
            const char *end = strchr(at + 1, '"');
            put(to, at + 1, (size_t)(end - at - 1));
            at = end + 1;
        } else {
            CHECK(sscanf(at, "%1023s%n", word, &used) == 1);
            put_word(to, word);
            at += used;
        }
    }
}

static uint8_t parse_flags(char *flags)
{
    uint8_t result = 0;
    for (char *name = strtok(flags, "+"); name; name = strtok(NULL, "+")) {
        result |= strcmp(name, "es") == 0    ? HEDDLE_H2_END_STREAM
                  : strcmp(name, "eh") == 0  ? HEDDLE_H2_END_HEADERS
                  : strcmp(name, "pad") == 0 ? HEDDLE_H2_PADDED
                  : strcmp(name, "pri") == 0 ? HEDDLE_H2_HAS_PRIORITY
                  : strcmp(name, "ack") == 0 ? HEDDLE_H2_ACK
                                             : (uint8_t)strtoul(name, NULL, 16);
    }
    return result;
}

/* -- sending ------------------------------------------------------------------------------------------------------- */

static void feed(const message *bytes)
{
    size_t step = byte_by_byte ? 1 : bytes->size;
    for (size_t at = 0; at < bytes->size; at += step)
        owner_feed(owner, bytes->bytes + at, step);
}

static void send_frame(const char *line)
{
    static message payload;
    char type[LINE], flags[LINE];
    unsigned stream;
    int used;
    payload.size = sent.size = 0;
    CHECK(sscanf(line, "%1023s %1023s %u%n", type, flags, &stream, &used) == 3);
    put_words(&payload, line + used);
    int known = find_name(type_names, sizeof(type_names) / sizeof(*type_names), type);
    uint8_t header[HEDDLE_H2_HEADER_SIZE];
    heddle_h2_put_header(header, (uint32_t)payload.size, known >= 0 ? (unsigned)known : strtoul(type, NULL, 16),
                         parse_flags(flags), stream);
    put(&sent, header, sizeof(header));
    put(&sent, payload.bytes, payload.size);
    feed(&sent);
}

static void send_preface(void)
{
    sent.size = 0;
    put(&sent, HEDDLE_H2_PREFACE, HEDDLE_H2_PREFACE_SIZE);
    feed(&sent);
    send_frame("SETTINGS - 0");
    send_frame("SETTINGS ack 0");
}

/* -- expecting ----------------------------------------------------------------------------------------------------- */

static bool is_named(unsigned error, const char *codes)
{
    return error < sizeof(error_names) / sizeof(*error_names) && strstr(codes, error_names[error]);
}

/* Is the frame what the line expects? */
static bool is_expected(const char *line, const heddle_h2_frame *frame, const uint8_t *payload)
{
    unsigned stream, size;
    if (strncmp(line, "stream_error ", 13) == 0 && frame->type == HEDDLE_H2_RST_STREAM)
        return is_named(heddle_h2_get_32(payload), line + 13);
    if (strstr(line, "_error ") && frame->type == HEDDLE_H2_GOAWAY)
        return !heddle_h2_is_open(owner->session) && is_named(heddle_h2_get_32(payload + 4), line);
    if (sscanf(line, "answer %u", &stream) == 1)
        return frame->stream == stream && frame->type <= HEDDLE_H2_HEADERS && frame->flags & HEDDLE_H2_END_STREAM;
    if (sscanf(line, "data %u %u", &stream, &size) == 2)
        return frame->type == HEDDLE_H2_DATA && frame->stream == stream && frame->length == size;
    if (strcmp(line, "ping") == 0)
        return frame->type == HEDDLE_H2_PING && frame->flags & HEDDLE_H2_ACK && memcmp(payload, "are you?", 8) == 0;
    if (strcmp(line, "settings") == 0 || strcmp(line, "ack") == 0)
        return frame->type == HEDDLE_H2_SETTINGS && (frame->flags & HEDDLE_H2_ACK) == (*line == 'a');
    return false;
}

static void expect(const char *line)
{
    static uint8_t payload[HEDDLE_H2_FRAME_SIZE];
    heddle_h2_frame frame;
    if (strcmp(line, "ping") == 0)
        send_frame("PING - 0 \"are you?\"");
    owner_pull(owner);
    if (strcmp(line, "end") == 0) {
        if (heddle_h2_is_open(owner->session))
            FAIL("the connection goes on");
        return;
    }
    char seen[LINE] = "";
    while (owner_next(owner, &frame, payload)) {
        if (is_expected(line, &frame, payload))
            return;
        size_t used = strlen(seen);
        snprintf(seen + used, sizeof(seen) - used, " %u on %u of %u bytes,", frame.type, frame.stream, frame.length);
    }
    FAIL("no %s, but frames%s", line, seen);
}

/* -- cases --------------------------------------------------------------------------------------------------------- */

static FILE *open_cases(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s", __FILE__);
    snprintf(strrchr(path, '/'), 64, "/../http/h2/cases.txt");
    FILE *cases = fopen(path, "r");
    CHECK(cases);
    return cases;
}

static void run_line(const char *line)
{
    unsigned count;
    if (*line == '>') {
        send_frame(line + 2);
    } else if (*line == '!') {
        sent.size = 0;
        put_words(&sent, line + 2);
        feed(&sent);
    } else if (*line == '<') {
        expect(line + 2);
    } else if (sscanf(line, "requests %u", &count) == 1) {
        char frame[LINE];
        for (unsigned i = 0; i < count; i++) {
            snprintf(frame, sizeof(frame), "HEADERS es+eh %u get", 2 * i + 1);
            send_frame(frame);
        }
    } else {
        FAIL("what is %s?", line);
    }
}

/* How many cases there were. */
static unsigned run_cases(const char *group)
{
    FILE *cases = open_cases();
    char line[LINE];
    unsigned count = 0;
    bool begun = true;
    while (fgets(line, sizeof(line), cases)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line == '#' || *line == '\0')
            continue;
        if (*line == '=') {
            if (owner)
                owner_free(owner);
            owner = NULL;
            snprintf(case_name, sizeof(case_name), "%s", line + 2);
            begun = false;
            if (strncmp(case_name, group, strlen(group)) != 0)
                continue;
            count++;
            owner = owner_new();
            owner_connect(owner);
        } else if (!owner) {
            continue;
        } else if (strcmp(line, "raw") == 0) {
            begun = true;
        } else {
            if (!begun)
                send_preface();
            begun = true;
            run_line(line);
        }
    }
    if (owner)
        owner_free(owner);
    owner = NULL;
    fclose(cases);
    return count;
}

static void run_both_ways(const char *group, unsigned count)
{
    CHECK_EQUAL(count, run_cases(group));
    byte_by_byte = true;
    CHECK_EQUAL(count, run_cases(group));
}

static void generic_cases(void) { run_both_ways("generic/", 44); }
static void http2_cases(void) { run_both_ways("http2/", 95); }
static void hpack_cases(void) { run_both_ways("hpack/", 8); }
static void more_cases(void) { run_both_ways("more/", 52); }

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("h2 cases", "generic: what any endpoint accepts", generic_cases);
    check_run("h2 cases", "http2: RFC 9113", http2_cases);
    check_run("h2 cases", "hpack: RFC 7541", hpack_cases);
    check_run("h2 cases", "more than h2spec", more_cases);
    return check_end();
}
