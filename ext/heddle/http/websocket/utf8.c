#include "http/websocket/utf8.h"

/* Skips ASCII at the beginning, in words of eight bytes. */
static size_t skip_ascii(const char *bytes, size_t size)
{
    size_t used = 0;
    while (size - used >= 8) {
        uint64_t word;
        memcpy(&word, bytes + used, 8);
        if (word & UINT64_C(0x8080808080808080))
            break;
        used += 8;
    }
    return used;
}

/*
 * Begins a character of several bytes (RFC 3629, section 4). The range of the second byte excludes overlong forms,
 * surrogates and everything above U+10FFFF.
 */
static bool begin_character(heddle_utf8 *utf8, uint8_t byte)
{
    utf8->lowest = 0x80;
    utf8->highest = 0xbf;
    if (byte >= 0xc2 && byte <= 0xdf) {
        utf8->missing = 1;
    } else if (byte >= 0xe0 && byte <= 0xef) {
        utf8->missing = 2;
        if (byte == 0xe0)
            utf8->lowest = 0xa0;
        else if (byte == 0xed)
            utf8->highest = 0x9f;
    } else if (byte >= 0xf0 && byte <= 0xf4) {
        utf8->missing = 3;
        if (byte == 0xf0)
            utf8->lowest = 0x90;
        else if (byte == 0xf4)
            utf8->highest = 0x8f;
    } else {
        return false;
    }
    return true;
}

bool heddle_utf8_check(heddle_utf8 *utf8, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size;) {
        uint8_t byte = (uint8_t)bytes[i];
        if (utf8->missing) {
            if (byte < utf8->lowest || byte > utf8->highest)
                return false;
            utf8->missing--;
            utf8->lowest = 0x80;
            utf8->highest = 0xbf;
            i++;
        } else if (byte < 0x80) {
            size_t skipped = skip_ascii(bytes + i, size - i);
            i += skipped ? skipped : 1;
        } else {
            if (!begin_character(utf8, byte))
                return false;
            i++;
        }
    }
    return true;
}

bool heddle_utf8_is_valid(const char *text, size_t size)
{
    heddle_utf8 utf8 = {0};
    return heddle_utf8_check(&utf8, text, size) && heddle_utf8_is_complete(&utf8);
}
