/* sources: http/websocket/frame_reader.c http/websocket/frame_head.c http/websocket/utf8.c http/websocket/permessage_deflate.c */
/* link: -DHEDDLE_ZLIB=1 -lz */

/* Every case of test/http/web_socket/cases.txt, in one piece, in pieces of 7 bytes, and byte by byte. */

#include "check.h"
#include "http/websocket/permessage_deflate.h"

#include <ctype.h>
#include <zlib.h>

enum {
    LINE = 1024,
    ROOM = 1 << 20,
};

static char sent[ROOM], expected[ROOM], found[ROOM];
static size_t sent_size, expected_size, found_size;
static char case_name[LINE];
static heddle_deflater *deflater;

static void put(char *to, size_t *size, const void *bytes, size_t count)
{
    CHECK(*size + count <= ROOM);
    memcpy(to + *size, bytes, count);
    *size += count;
}

static size_t put_hex(char *to, size_t *size, const char *text)
{
    size_t used = 0;
    while (isxdigit((unsigned char)text[used]) && isxdigit((unsigned char)text[used + 1])) {
        unsigned byte;
        sscanf(text + used, "%2x", &byte);
        put(to, size, &(uint8_t){(uint8_t)byte}, 1);
        used += 2;
    }
    return used;
}

static void put_letters(char *to, size_t *size, long count)
{
    for (uint32_t state = 1; count > 0; count--) {
        state = state * 1103515245 + 12345;
        put(to, size, &(char){(char)('a' + (state >> 16) % 26)}, 1);
    }
}

/* Hex, "text", NUMBER*HEX, or NUMBER~, joined by +. */
static size_t put_payload(char *to, size_t *size, const char *text)
{
    size_t before = *size;
    for (;;) {
        const char *star = strpbrk(text, "*~");
        if (*text == '"') {
            const char *end = strchr(text + 1, '"');
            put(to, size, text + 1, (size_t)(end - text - 1));
            text = end + 1;
        } else if (star && strspn(text, "0123456789") == (size_t)(star - text)) {
            unsigned byte;
            if (*star == '~') {
                put_letters(to, size, atol(text));
                text = star + 1;
                if (*text++ != '+')
                    return *size - before;
                continue;
            }
            CHECK(sscanf(star + 1, "%2x", &byte) == 1);
            for (long count = atol(text); count > 0; count--)
                put(to, size, &(uint8_t){(uint8_t)byte}, 1);
            text = star + 3;
        } else {
            text += put_hex(to, size, text);
        }
        if (*text++ != '+')
            return *size - before;
    }
}

static void put_payload_frame(unsigned first, char *payload, size_t size, bool masked)
{
    static const uint8_t mask[] = {0x37, 0xfa, 0x21, 0x3d};
    char head[HEDDLE_WEBSOCKET_HEAD];
    size_t used = heddle_websocket_write_head(head, HEDDLE_WEBSOCKET_TEXT, false, size, masked ? mask : NULL);
    head[0] = (char)(uint8_t)first;
    put(sent, &sent_size, head, used);
    if (masked)
        heddle_websocket_mask(payload, size, mask, 0);
    put(sent, &sent_size, payload, size);
}

static void put_frame(const char *text, bool masked)
{
    static char payload[ROOM];
    unsigned first;
    size_t size = 0;
    CHECK(sscanf(text, "%2x", &first) == 1);
    put_payload(payload, &size, text + 3);
    put_payload_frame(first, payload, size, masked);
}

/* "N FIRST PAYLOAD" */
static void put_deflated(const char *text)
{
    static char payload[ROOM], deflated[ROOM];
    unsigned first, most;
    size_t size = 0;
    z_stream stream = {0};
    CHECK(sscanf(text, "%u %2x", &most, &first) == 2);
    put_payload(payload, &size, strchr(text, ' ') + 4);
    CHECK(deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    stream.next_in = (unsigned char *)payload;
    stream.avail_in = (unsigned)size;
    stream.next_out = (unsigned char *)deflated;
    stream.avail_out = ROOM;
    CHECK(deflate(&stream, Z_SYNC_FLUSH) == Z_OK);
    size = ROOM - stream.avail_out - 4;
    deflateEnd(&stream);
    for (size_t at = 0; at < size; at += most) {
        bool last = size - at <= most;
        put_payload_frame((at ? 0 : first & 0x7f) | (last ? 0x80 : 0), deflated + at, last ? size - at : most, true);
    }
}

static void expect(const char *text)
{
    size_t word = strcspn(text, " ");
    put(expected, &expected_size, text, word);
    put(expected, &expected_size, " ", 1);
    if (strncmp(text, "close", 5) == 0 || strncmp(text, "fail", 4) == 0)
        put(expected, &expected_size, text + word + 1, strlen(text + word + 1));
    else
        put_payload(expected, &expected_size, text + word + 1);
    put(expected, &expected_size, "\n", 1);
}

static void note(const char *what, const char *bytes, size_t size)
{
    put(found, &found_size, what, strlen(what));
    put(found, &found_size, " ", 1);
    put(found, &found_size, bytes, size);
    put(found, &found_size, "\n", 1);
}

static void note_code(const char *what, unsigned code)
{
    char text[16];
    note(what, text, (size_t)snprintf(text, sizeof(text), "%u", code));
}

/* Each piece in memory of its own, so that ASan sees whoever reads beyond it. */
static void feed(size_t step)
{
    heddle_websocket_reader reader;
    heddle_websocket_limits limits = {.message = 262144, .fragments = 1000};
    heddle_websocket_message *message;
    bool ended = false;
    heddle_websocket_reader_start(&reader, true);
    reader.allows_deflate = strncmp(case_name, "12.", 3) == 0 || strncmp(case_name, "13.", 3) == 0;
    found_size = 0;
    for (size_t at = 0; at < sent_size && !ended; at += step) {
        size_t size = sent_size - at < step ? sent_size - at : step, offset = 0;
        char *piece = malloc(size);
        memcpy(piece, sent + at, size);
        for (bool more = true; more && !ended;) {
            size_t used;
            heddle_websocket_event event = heddle_websocket_read(&reader, &limits, piece + offset, size - offset, &used);
            offset += used;
            if (event == HEDDLE_WEBSOCKET_HAS_MESSAGE && reader.message->compressed)
                event = heddle_websocket_inflate(&deflater, &reader, &limits);
            switch (event) {
            case HEDDLE_WEBSOCKET_NO_EVENT:
                CHECK_EQUAL(size, offset);
                more = false;
                break;
            case HEDDLE_WEBSOCKET_HAS_MESSAGE:
                message = heddle_websocket_take_message(&reader);
                note(message->text ? "text" : "binary", message->bytes, message->size);
                free(message);
                break;
            case HEDDLE_WEBSOCKET_HAS_PING:
                note("ping", reader.control, reader.control_size);
                break;
            case HEDDLE_WEBSOCKET_HAS_PONG:
                note("pong", reader.control, reader.control_size);
                break;
            case HEDDLE_WEBSOCKET_HAS_CLOSE:
                note_code("close", reader.code);
                ended = true;
                break;
            case HEDDLE_WEBSOCKET_FAILED:
                CHECK(reader.failure != NULL);
                note_code("fail", reader.code);
                ended = true;
                break;
            case HEDDLE_WEBSOCKET_NO_MEMORY:
                CHECK(false);
            }
        }
        free(piece);
    }
    heddle_websocket_reader_end(&reader);
    if (found_size == expected_size && memcmp(found, expected, found_size) == 0)
        return;
    printf("    %s, %zu bytes at a time: read %.*s, not %.*s\n", case_name, step, (int)(found_size < 200 ? found_size : 200),
           found, (int)(expected_size < 200 ? expected_size : 200), expected);
    fflush(stdout);
    _exit(1);
}

static void end_case(unsigned *cases)
{
    if (!*case_name)
        return;
    CHECK(sent_size > 0 && expected_size > 0);
    feed(sent_size);
    feed(7);
    feed(1);
    sent_size = expected_size = 0;
    *case_name = 0;
    ++*cases;
}

static void every_case_gives_the_expected_events(void)
{
    char line[LINE];
    unsigned cases = 0;
    FILE *file = fopen("test/http/web_socket/cases.txt", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = 0;
        const char *text = line + strspn(line, " ");
        if (*line == '#' || !*text)
            continue;
        if (text == line) {
            end_case(&cases);
            strcpy(case_name, line);
        } else if (strncmp(text, "> ", 2) == 0) {
            put_frame(text + 2, true);
        } else if (strncmp(text, ">z", 2) == 0) {
            put_deflated(text + 2);
        } else if (strncmp(text, ">unmasked ", 10) == 0) {
            put_frame(text + 10, false);
        } else if (strncmp(text, ">raw ", 5) == 0) {
            for (text += 5; *text; text += strspn(text, " "))
                text += put_hex(sent, &sent_size, text);
        } else {
            CHECK(strncmp(text, "< ", 2) == 0);
            expect(text + 2);
        }
    }
    end_case(&cases);
    fclose(file);
    heddle_deflater_free(deflater);
    CHECK(cases > 150);
}

static void masks_work_at_every_alignment(void)
{
    static const uint8_t mask[] = {1, 2, 4, 8};
    for (size_t size = 0; size < 40; size++) {
        for (uint64_t offset = 0; offset < 8; offset++) {
            char bytes[40] = {0};
            heddle_websocket_mask(bytes, size, mask, offset);
            for (size_t i = 0; i < size; i++)
                CHECK_EQUAL(mask[(offset + i) & 3], bytes[i]);
        }
    }
}

static void long_reason_is_cut_between_characters(void)
{
    char payload[HEDDLE_WEBSOCKET_CONTROL], reason[124];
    memset(reason, 'a', sizeof(reason));
    memcpy(reason + 122, "ü", 2);
    CHECK_EQUAL(124, heddle_websocket_write_close(payload, 1000, reason, sizeof(reason)));
    CHECK_EQUAL(0, heddle_websocket_write_close(payload, HEDDLE_WEBSOCKET_NO_STATUS, NULL, 0));
}

/* A million empty fragments cost nothing: the limit ends them. */
static void number_of_fragments_is_limited(void)
{
    heddle_websocket_reader reader;
    heddle_websocket_limits limits = {.message = 262144, .fragments = 1000};
    heddle_websocket_event event = HEDDLE_WEBSOCKET_NO_EVENT;
    unsigned frames = 0;
    heddle_websocket_reader_start(&reader, true);
    while (event == HEDDLE_WEBSOCKET_NO_EVENT && frames < 1000000) {
        char frame[] = {frames ? 0x00 : 0x02, (char)0x80, 0, 0, 0, 0};
        size_t used;
        event = heddle_websocket_read(&reader, &limits, frame, sizeof(frame), &used);
        frames++;
    }
    CHECK_EQUAL(1001, frames);
    CHECK_EQUAL(HEDDLE_WEBSOCKET_FAILED, event);
    CHECK_EQUAL(HEDDLE_WEBSOCKET_TOO_BIG, reader.code);
    heddle_websocket_reader_end(&reader);
}

static void message_is_deflated_only_if_it_becomes_smaller(void)
{
    static char text[HEDDLE_DEFLATE_MOST + 1], deflated[HEDDLE_DEFLATE_MOST + 1];
    const size_t sizes[] = {0, HEDDLE_DEFLATE_LEAST - 1, HEDDLE_DEFLATE_LEAST, 5000, HEDDLE_DEFLATE_MOST, sizeof(text)};
    heddle_deflater *own = NULL;
    size_t filled = 0;
    put_letters(text, &filled, 5000);
    for (unsigned i = 0; i < 6; i++) {
        heddle_websocket_reader reader = {0};
        heddle_websocket_limits limits = {.message = sizeof(text), .fragments = 1};
        size_t size = heddle_websocket_deflate(&own, text, sizes[i], deflated);
        CHECK((size > 0) == (i >= 2 && i <= 4));
        if (!size)
            continue;
        CHECK(size < sizes[i]);
        reader.message = malloc(sizeof(*reader.message) + size);
        *reader.message = (heddle_websocket_message){.size = size, .compressed = true};
        memcpy(reader.message->bytes, deflated, size);
        heddle_websocket_event event = heddle_websocket_inflate(&own, &reader, &limits);
        CHECK_EQUAL(i == 4 ? HEDDLE_WEBSOCKET_FAILED : HEDDLE_WEBSOCKET_HAS_MESSAGE, event); /* zeros: too much of too little */
        if (event == HEDDLE_WEBSOCKET_HAS_MESSAGE) {
            CHECK_EQUAL(sizes[i], reader.message->size);
            CHECK(memcmp(text, reader.message->bytes, sizes[i]) == 0);
        }
        heddle_websocket_reader_end(&reader);
    }
    for (size_t i = 0, state = 1; i < 4096; i++, state = state * 6364136223846793005u + 1442695040888963407u)
        text[i] = (char)(state >> 56);
    CHECK_EQUAL(0, heddle_websocket_deflate(&own, text, 4096, deflated)); /* it would not be smaller */
    heddle_deflater_free(own);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("WebSocket frames", "every case gives the expected events", every_case_gives_the_expected_events);
    check_run("WebSocket frames", "masks work at every alignment", masks_work_at_every_alignment);
    check_run("WebSocket frames", "long reason is cut between characters", long_reason_is_cut_between_characters);
    check_run("WebSocket frames", "number of fragments is limited", number_of_fragments_is_limited);
    check_run("WebSocket frames", "message is deflated only if it becomes smaller",
              message_is_deflated_only_if_it_becomes_smaller);
    return check_end();
}
