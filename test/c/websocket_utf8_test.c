/* sources: http/websocket/utf8.c */

/* Every text of up to three bytes, and those of four bytes at the limits of each range (RFC 3629, sections 3 and 4). */

#include "check.h"
#include "http/websocket/utf8.h"

enum {
    LONGEST = 4, /* bytes of a character */
};

/* The bytes with which a range of the RFC's table begins or ends, and those beside them. */
static const uint8_t limits[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff};

/* By arithmetic: the bytes of the character that begins here; 0: that is none. */
static size_t measure_character(const uint8_t *bytes, size_t size)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (bytes[0] < 0x80)
        return 1;
    size_t length = (bytes[0] & 0xe0) == 0xc0 ? 2 : (bytes[0] & 0xf0) == 0xe0 ? 3 : (bytes[0] & 0xf8) == 0xf0 ? 4 : 0;
    if (length == 0 || length > size)
        return 0;
    uint32_t code = bytes[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (bytes[i] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code >= least[length] && code <= 0x10ffff && !surrogate ? length : 0;
}

static bool is_text(const uint8_t *bytes, size_t size)
{
    for (size_t at = 0, length; at < size; at += length) {
        length = measure_character(bytes + at, size - at);
        if (length == 0)
            return false;
    }
    return true;
}

/* Can more bytes make a text of these? They end within one character at most. */
static bool may_become_text(const uint8_t *bytes, size_t size)
{
    uint8_t longer[LONGEST * 2];
    memcpy(longer, bytes, size);
    if (is_text(bytes, size))
        return true;
    for (size_t i = 0; i < sizeof(limits); i++) {
        longer[size] = limits[i];
        for (size_t more = 1; more < LONGEST; more++) {
            longer[size + more] = 0x80;
            if (is_text(longer, size + more))
                return true;
        }
    }
    return false;
}

static void check_in_pieces(const uint8_t *bytes, size_t size)
{
    heddle_utf8 utf8 = {0};
    for (size_t i = 0; i < size; i++) {
        bool accepted = heddle_utf8_check(&utf8, (const char *)bytes + i, 1);
        CHECK_EQUAL(may_become_text(bytes, i + 1), accepted);
        if (!accepted)
            return;
    }
    CHECK_EQUAL(is_text(bytes, size), heddle_utf8_is_complete(&utf8));
}

static void check_at_once(const uint8_t *bytes, size_t size)
{
    CHECK_EQUAL(is_text(bytes, size), heddle_utf8_is_valid((const char *)bytes, size));
}

static void every_text_of_up_to_three_bytes_is_judged_correctly(void)
{
    for (uint32_t number = 0; number < 1u << 24; number++) {
        const uint8_t bytes[] = {(uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number};
        check_at_once(bytes, 3);
        if (bytes[2] == 0)
            check_at_once(bytes, 2);
    }
}

static void text_is_rejected_at_its_first_invalid_byte(void)
{
    const size_t count = sizeof(limits);
    for (uint32_t first = 0; first < 256; first++) {
        for (size_t rest = 0; rest < count * count * count; rest++) {
            const uint8_t bytes[] = {(uint8_t)first, limits[rest % count], limits[rest / count % count],
                                     limits[rest / count / count]};
            check_at_once(bytes, sizeof(bytes));
            check_in_pieces(bytes, sizeof(bytes));
        }
    }
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("UTF-8", "every text of up to three bytes is judged correctly",
              every_text_of_up_to_three_bytes_is_judged_correctly);
    check_run("UTF-8", "text is rejected at its first invalid byte", text_is_rejected_at_its_first_invalid_byte);
    return check_end();
}
