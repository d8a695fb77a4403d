#include "http/h1/field_lines.h"

#include "http/field_names.h"
#include "http/text.h"

#ifdef __SSE2__
/* Compares 16 bytes with the name, ignoring case. Returns one bit for each byte, which is 1 if the byte is equal. */
static inline unsigned compare_letters(__m128i bytes, const char *name)
{
    __m128i wanted = _mm_loadu_si128((const __m128i *)name);
    __m128i letters = _mm_cmpgt_epi8(wanted, _mm_set1_epi8('a' - 1));
    __m128i lower = _mm_or_si128(bytes, _mm_and_si128(letters, _mm_set1_epi8(0x20)));
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(lower, wanted));
}

/*
 * Recognizes a known name with two loads of 16 bytes. Returns HEDDLE_FIELD_OTHER if the name is unknown or malformed,
 * or if fewer than 32 bytes are left to read.
 */
static inline unsigned find_known_name(const char *name, const char *end, size_t *size)
{
    if (end - name < 32)
        return HEDDLE_FIELD_OTHER;
    __m128i low = _mm_loadu_si128((const __m128i *)name), high = _mm_loadu_si128((const __m128i *)(name + 16));
    __m128i colon = _mm_set1_epi8(':');
    unsigned colons = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(low, colon)) |
                      (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(high, colon)) << 16;
    if (!(colons >> HEDDLE_FIELD_SHORTEST))
        return HEDDLE_FIELD_OTHER;
    *size = (size_t)__builtin_ctz(colons);
    if (*size < HEDDLE_FIELD_SHORTEST)
        return HEDDLE_FIELD_OTHER;
    unsigned id = heddle_field_candidate(name, *size);
    const char *wanted = heddle_known_names[id].name;
    unsigned same = compare_letters(low, wanted) | compare_letters(high, wanted + 16) << 16;
    return heddle_known_names[id].size == *size && !(~same & ((1u << *size) - 1)) ? id : HEDDLE_FIELD_OTHER;
}
#endif

/* Returns the id of the field name that begins at `name`, and sets `*size` to its size. */
static inline unsigned read_name(const char *name, const char *end, size_t *size)
{
#ifdef __SSE2__
    unsigned id = find_known_name(name, end, size);
    if (id != HEDDLE_FIELD_OTHER)
        return id;
#endif
    *size = (size_t)(heddle_find_token_end(name, end) - name);
    return heddle_field_find(name, *size);
}

static bool is_dropped(const heddle_field_lines *lines, const heddle_field *field)
{
    return !lines->keep_underscores && field->id == HEDDLE_FIELD_OTHER &&
           memchr(lines->bytes + field->name.start, '_', field->name.size);
}

/* Returns the value without the white space around it. In a folded value, CR and LF are white space, too. */
static inline heddle_slice trim_value(const char *bytes, const char *start, const char *end)
{
    while (start < end && ((uint8_t)end[-1] <= ' '))
        end--;
    while (start < end && ((uint8_t)*start <= ' '))
        start++;
    return (heddle_slice){(uint32_t)(start - bytes), (uint32_t)(end - start)};
}

int64_t heddle_field_lines_read(heddle_field_lines *lines, uint32_t start)
{
    const char *bytes = lines->bytes, *at = bytes + start, *end = bytes + lines->end;
    for (;;) {
        lines->line = (uint32_t)(at - bytes);
        if (at == end)
            return HEDDLE_LINES_INCOMPLETE;
        if (*at == '\r') {
            if (end - at < 2)
                return HEDDLE_LINES_INCOMPLETE;
            return at[1] == '\n' ? at + 2 - bytes : HEDDLE_LINES_MALFORMED;
        }

        size_t name_size;
        unsigned id = read_name(at, end, &name_size);
        heddle_field field = {.name = {(uint32_t)(at - bytes), (uint32_t)name_size}, .id = (uint16_t)id};
        at += name_size;
        if (at == end)
            return HEDDLE_LINES_INCOMPLETE;
        if (*at != ':' || name_size == 0)
            return HEDDLE_LINES_MALFORMED;

        const char *value = ++at;
        for (;;) {
            at = heddle_find_control(at, end);
            if (at == end || (*at == '\r' && end - at < 2))
                return HEDDLE_LINES_INCOMPLETE;
            if (*at != '\r' || at[1] != '\n')
                return HEDDLE_LINES_MALFORMED;
            if (!lines->unfold)
                break;
            if (end - at < 3)
                return HEDDLE_LINES_INCOMPLETE;
            if (!heddle_is_space(at[2]))
                break;
            lines->folded = true;
            at += 2;
            if (++lines->line_count > lines->room)
                return HEDDLE_LINES_TOO_MANY;
        }
        field.value = trim_value(bytes, value, at);
        at += 2;

        if (++lines->line_count > lines->room)
            return HEDDLE_LINES_TOO_MANY;
        if (is_dropped(lines, &field))
            continue;
        lines->fields[lines->field_count++] = field;
        if (field.id != HEDDLE_FIELD_OTHER)
            heddle_control_fields_note(&lines->controls, bytes, &field);
    }
}
