#include "http/h2/block.h"
#include "http/text.h"

/* The rules for a single field of a request or response (RFC 9113, 8.2 and 8.3). */

static const char *const pseudo_names[HEDDLE_H2_PSEUDO_FIELDS] = {
    [HEDDLE_H2_METHOD] = ":method",
    [HEDDLE_H2_SCHEME] = ":scheme",
    [HEDDLE_H2_AUTHORITY] = ":authority",
    [HEDDLE_H2_PATH] = ":path",
    [HEDDLE_H2_PROTOCOL] = ":protocol",
    [HEDDLE_H2_STATUS] = ":status",
};

static bool is_text(const heddle_hpack_field *field, const char *text)
{
    return field->name_size == strlen(text) && memcmp(field->name, text, field->name_size) == 0;
}

static bool is_lower_token(const char *name, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        if (!heddle_is(name[i], HEDDLE_TOKEN) || (name[i] >= 'A' && name[i] <= 'Z'))
            return false;
    }
    return size > 0;
}

/* Is this a valid value? It must not contain control characters, or begin or end with white space. */
static bool is_value(const char *value, uint32_t size)
{
    if (size == 0)
        return true;
    return heddle_find_control(value, value + size) == value + size && !heddle_is_space(*value) &&
           !heddle_is_space(value[size - 1]);
}

bool heddle_h2_is_about_connection(heddle_field_id id, const char *name, size_t size)
{
    switch (id) {
    case HEDDLE_FIELD_CONNECTION:
    case HEDDLE_FIELD_KEEP_ALIVE:
    case HEDDLE_FIELD_TRANSFER_ENCODING:
    case HEDDLE_FIELD_UPGRADE:
        return true;
    default:
        return id == HEDDLE_FIELD_OTHER && heddle_is_word(name, size, "proxy-connection");
    }
}

static bool is_allowed(const heddle_hpack_field *field, heddle_field_id id)
{
    if (id == HEDDLE_FIELD_TE)
        return field->value_size == 8 && heddle_is_word(field->value, 8, "trailers");
    return !heddle_h2_is_about_connection(id, field->name, field->name_size);
}

static heddle_slice keep_text(heddle_h2_block *block, const char *text, uint32_t size)
{
    heddle_slice slice = {(uint32_t)block->bytes->size, size};
    if (!heddle_bytes_add(block->bytes, text, size))
        block->no_memory = true;
    return slice;
}

static void take_pseudo(heddle_h2_block *block, const heddle_hpack_field *field)
{
    for (unsigned i = 0; i < HEDDLE_H2_PSEUDO_FIELDS; i++) {
        if (!is_text(field, pseudo_names[i]))
            continue;
        if (block->trailers || block->has_pseudo[i] || block->line_count > 0 ||
            block->response != (i == HEDDLE_H2_STATUS))
            break;
        block->has_pseudo[i] = true;
        block->pseudo[i] = keep_text(block, field->value, field->value_size);
        return;
    }
    block->malformed = "a pseudo-header field is unknown, occurs twice, follows other fields, or is not allowed here";
}

static void take_regular(heddle_h2_block *block, const heddle_hpack_field *field, heddle_field_id id)
{
    if (block->trailers && !block->response)
        return;
    if (id == HEDDLE_FIELD_OTHER && !block->limits->keep_underscores && memchr(field->name, '_', field->name_size))
        return;
    heddle_field *kept = &block->fields[block->field_count++];
    kept->name = keep_text(block, field->name, field->name_size);
    kept->value = keep_text(block, field->value, field->value_size);
    kept->id = (uint16_t)id;
    if (block->no_memory)
        return;
    if (id == HEDDLE_FIELD_PRIORITY)
        heddle_h2_parse_priority(field->value, field->value_size, &block->urgency, &block->incremental);
    else if (id != HEDDLE_FIELD_OTHER)
        heddle_control_fields_note(&block->controls, block->bytes->bytes, kept);
}

/*
 * Counts a field. Returns false if a limit is exceeded. Each field, even a malformed one, counts with its decoded size.
 * If its encoded size counted, one-byte references to a large field of HPACK's table would be a cheap way to fill
 * memory (RFC 9113, 10.5.1).
 */
static bool count_field(heddle_h2_block *block, const heddle_hpack_field *field, bool is_pseudo, bool is_crumb)
{
    const heddle_h2_limits *limits = block->limits;
    block->list_size += (uint64_t)field->name_size + field->value_size + HEDDLE_HPACK_OVERHEAD;
    if (!is_pseudo)
        block->line_count++;
    block->crumbs += is_crumb;
    uint32_t spared = block->crumbs < limits->crumb_count ? block->crumbs : limits->crumb_count;
    if (block->list_size > limits->header_limit || block->line_count - spared > limits->header_count)
        block->too_large = true;
    return !block->too_large;
}

void heddle_h2_block_field(heddle_h2_block *block, const heddle_hpack_field *field)
{
    bool is_named = field->name_size > 0, is_pseudo = is_named && *field->name == ':';
    heddle_field_id id = is_named && !is_pseudo ? heddle_field_find(field->name, field->name_size) : HEDDLE_FIELD_OTHER;
    if (!count_field(block, field, is_pseudo, id == HEDDLE_FIELD_COOKIE) || block->malformed || block->no_memory)
        return;
    if (!is_value(field->value, field->value_size))
        block->malformed = "a field's value has control characters, or begins or ends with white space";
    else if (is_pseudo)
        take_pseudo(block, field);
    else if (!is_lower_token(field->name, field->name_size))
        block->malformed = "a field's name is empty, or has uppercase letters or characters that are not allowed";
    else if (!is_allowed(field, id))
        block->malformed = "a field such as Connection or Upgrade, which HTTP/2 does not allow";
    else
        take_regular(block, field, id);
}
