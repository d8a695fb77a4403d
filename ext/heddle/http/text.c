#include "http/text.h"

enum {
    TOKEN = HEDDLE_TOKEN,
    NAME = HEDDLE_NAME,
    BOTH = TOKEN | NAME,
    LETTER_HEX = BOTH | HEDDLE_HEX,
    DIGIT = BOTH | HEDDLE_HEX | HEDDLE_DIGIT,
};

const uint8_t heddle_characters[256] = {
    ['!'] = BOTH,   ['#'] = TOKEN,  ['$'] = BOTH,   ['%'] = TOKEN,  ['&'] = BOTH,   ['\''] = BOTH,  ['('] = NAME,
    [')'] = NAME,   ['*'] = BOTH,   ['+'] = BOTH,   [','] = NAME,   ['-'] = BOTH,   ['.'] = BOTH,
    ['0'] = DIGIT,  ['1'] = DIGIT,  ['2'] = DIGIT,  ['3'] = DIGIT,  ['4'] = DIGIT,  ['5'] = DIGIT,  ['6'] = DIGIT,
    ['7'] = DIGIT,  ['8'] = DIGIT,  ['9'] = DIGIT,  [';'] = NAME,   ['='] = NAME,
    ['A'] = LETTER_HEX, ['B'] = LETTER_HEX, ['C'] = LETTER_HEX, ['D'] = LETTER_HEX, ['E'] = LETTER_HEX,
    ['F'] = LETTER_HEX,
    ['G'] = BOTH,   ['H'] = BOTH,   ['I'] = BOTH,   ['J'] = BOTH,   ['K'] = BOTH,   ['L'] = BOTH,   ['M'] = BOTH,
    ['N'] = BOTH,   ['O'] = BOTH,   ['P'] = BOTH,   ['Q'] = BOTH,   ['R'] = BOTH,   ['S'] = BOTH,   ['T'] = BOTH,
    ['U'] = BOTH,   ['V'] = BOTH,   ['W'] = BOTH,   ['X'] = BOTH,   ['Y'] = BOTH,   ['Z'] = BOTH,
    ['^'] = TOKEN,  ['_'] = BOTH,   ['`'] = TOKEN,
    ['a'] = LETTER_HEX, ['b'] = LETTER_HEX, ['c'] = LETTER_HEX, ['d'] = LETTER_HEX, ['e'] = LETTER_HEX,
    ['f'] = LETTER_HEX,
    ['g'] = BOTH,   ['h'] = BOTH,   ['i'] = BOTH,   ['j'] = BOTH,   ['k'] = BOTH,   ['l'] = BOTH,   ['m'] = BOTH,
    ['n'] = BOTH,   ['o'] = BOTH,   ['p'] = BOTH,   ['q'] = BOTH,   ['r'] = BOTH,   ['s'] = BOTH,   ['t'] = BOTH,
    ['u'] = BOTH,   ['v'] = BOTH,   ['w'] = BOTH,   ['x'] = BOTH,   ['y'] = BOTH,   ['z'] = BOTH,
    ['|'] = TOKEN,  ['~'] = BOTH,
};

bool heddle_is_word(const char *text, size_t size, const char *word)
{
    for (size_t i = 0; i < size; i++) {
        char character = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 0x20) : text[i];
        if (character != word[i] || character == '\0') /* word is shorter, or text has a NUL */
            return false;
    }
    return word[size] == '\0';
}

static bool is_between(char character)
{
    return heddle_is_space(character) || character == ',' || character == '\r' || character == '\n';
}

const char *heddle_next_element(const char **at, const char *end, size_t *size)
{
    const char *start = *at;
    while (start < end && is_between(*start))
        start++;
    if (start == end) {
        *at = end;
        return NULL;
    }
    const char *stop = memchr(start, ',', (size_t)(end - start));
    if (!stop)
        stop = end;
    *at = stop;
    while (is_between(stop[-1]))
        stop--;
    *size = (size_t)(stop - start);
    return start;
}
