#include "http/h2/block.h"
#include "http/method.h"
#include "http/request_limits.h"
#include "http/target.h"
#include "http/text.h"

/* The rules for a request's fields as a whole (RFC 9113, 8.1.1, 8.2.3, 8.3.1 and 8.5; RFC 8441). */

static const char *text_of(const heddle_h2_block *block, heddle_slice slice)
{
    return block->bytes->bytes + slice.start;
}

/* Is this a valid scheme (RFC 3986, 3.1)? */
static bool is_scheme(const char *text, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        char letter = text[i] | 0x20;
        bool is_letter = letter >= 'a' && letter <= 'z';
        if (!is_letter && (i == 0 || (!heddle_is(text[i], HEDDLE_DIGIT) && !strchr("+-.", text[i]))))
            return false;
    }
    return size > 0;
}

/* Does the request have all pseudo-header fields that its method requires, and none that its method forbids? */
static bool judge_pseudo(const heddle_h2_block *block, heddle_method method)
{
    bool has_url = block->has_pseudo[HEDDLE_H2_SCHEME] && block->has_pseudo[HEDDLE_H2_PATH];
    if (block->has_pseudo[HEDDLE_H2_PROTOCOL])
        return block->limits->connect_protocol && method == HEDDLE_CONNECT && has_url &&
               block->has_pseudo[HEDDLE_H2_AUTHORITY] && block->pseudo[HEDDLE_H2_PROTOCOL].size > 0;
    if (method == HEDDLE_CONNECT)
        return block->has_pseudo[HEDDLE_H2_AUTHORITY] && !block->has_pseudo[HEDDLE_H2_SCHEME] &&
               !block->has_pseudo[HEDDLE_H2_PATH];
    return has_url;
}

static bool same_host(const heddle_h2_block *block, heddle_slice a, heddle_slice b)
{
    const char *one = text_of(block, a), *other = text_of(block, b);
    if (a.size != b.size)
        return false;
    for (uint32_t i = 0; i < a.size; i++) {
        bool is_letter = (one[i] | 0x20) >= 'a' && (one[i] | 0x20) <= 'z';
        if (one[i] != other[i] && !(is_letter && (one[i] | 0x20) == (other[i] | 0x20)))
            return false;
    }
    return true;
}

/* Checks :authority and Host, which must be equal if the request has both. Adds Host if only :authority was sent. */
static bool judge_authority(heddle_h2_block *block, heddle_request_head *head)
{
    const heddle_control_fields *controls = &block->controls;
    bool has_authority = block->has_pseudo[HEDDLE_H2_AUTHORITY];
    if (controls->second_host || (!has_authority && !controls->has_host))
        return false;
    heddle_slice authority = has_authority ? block->pseudo[HEDDLE_H2_AUTHORITY] : controls->host;
    if (has_authority && controls->has_host && !same_host(block, authority, controls->host))
        return false;
    if (!heddle_target_authority(head, block->bytes->bytes, authority) || head->host.size == 0)
        return false;
    if (controls->has_host)
        return true;
    heddle_slice name = {(uint32_t)block->bytes->size, 4};
    if (!heddle_bytes_add(block->bytes, "host", 4)) {
        block->no_memory = true;
        return false;
    }
    block->fields[block->field_count++] = (heddle_field){name, authority, HEDDLE_FIELD_HOST};
    return true;
}

static bool judge_target(const heddle_h2_block *block, heddle_request_head *head)
{
    bool has_path = block->has_pseudo[HEDDLE_H2_PATH];
    heddle_slice target = block->pseudo[has_path ? HEDDLE_H2_PATH : HEDDLE_H2_AUTHORITY];
    const char *text = text_of(block, target), *end = text + target.size;
    if (target.size == 0 || heddle_find_target_end(text, end) != end || (has_path && *text != '/' && *text != '*'))
        return false;
    head->target = target;
    heddle_method method = head->method_id;
    if (has_path && method == HEDDLE_CONNECT) /* an extended CONNECT has a path, which is checked like a path of GET */
        head->method_id = HEDDLE_GET;
    heddle_rejection unused;
    bool fits = heddle_target_split(head, block->bytes->bytes, &unused) == 0;
    head->method_id = method;
    return fits;
}

static bool judge_length(const heddle_h2_block *block, bool ended, heddle_request_head *head)
{
    const heddle_control_fields *controls = &block->controls;
    head->content_length = ended ? HEDDLE_NO_BODY : HEDDLE_CHUNKED_BODY;
    if (!controls->content_length.present)
        return true;
    int64_t length = heddle_content_length_read(&controls->content_length, block->bytes->bytes);
    if (controls->content_length.differs || length < 0 || (ended && length > 0))
        return false;
    head->content_length = length;
    return true;
}

/* Joins the cookie fields (crumbs), so that the application gets a single one (RFC 9113, 8.2.3). */
static void join_crumbs(heddle_h2_block *block)
{
    heddle_slice joined = {(uint32_t)block->bytes->size, 0};
    uint32_t kept = 0;
    heddle_field *first = NULL;
    if (block->crumbs < 2)
        return;
    /*
     * Reserves room first, because the crumbs are slices of the same bytes, which must not move while they are copied.
     */
    if (!heddle_bytes_reserve(block->bytes, block->bytes->size + block->crumbs * 2)) {
        block->no_memory = true;
        return;
    }
    for (uint32_t i = 0; i < block->field_count; i++) {
        heddle_field *field = &block->fields[i];
        if (field->id != HEDDLE_FIELD_COOKIE) {
            block->fields[kept++] = *field;
            continue;
        }
        heddle_slice crumb = field->value;
        if (first) {
            heddle_bytes_add(block->bytes, "; ", 2);
        } else {
            first = &block->fields[kept];
            block->fields[kept++] = *field;
        }
        heddle_bytes_add(block->bytes, text_of(block, crumb), crumb.size);
    }
    joined.size = (uint32_t)block->bytes->size - joined.start;
    first->value = joined;
    block->field_count = kept;
}

/* Returns a text that says why the request is malformed, or NULL. */
static const char *find_violation(heddle_h2_block *block, bool ended, heddle_request_head *head)
{
    const char *method = text_of(block, head->method), *method_end = method + head->method.size;
    heddle_slice scheme = block->pseudo[HEDDLE_H2_SCHEME];
    if (block->malformed)
        return block->malformed;
    if (method == method_end || heddle_find_token_end(method, method_end) != method_end)
        return "the :method is missing, or is not a valid token";
    if (!judge_pseudo(block, head->method_id))
        return "a pseudo-header field is missing, or is not allowed with this method";
    if (block->has_pseudo[HEDDLE_H2_SCHEME] && !is_scheme(text_of(block, scheme), scheme.size))
        return "the :scheme is not valid";
    if (!judge_authority(block, head))
        return ":authority and Host are missing, differ, or are not host[:port], or Host occurs twice";
    if (!judge_target(block, head))
        return "the :path is not valid";
    if (!judge_length(block, ended, head))
        return "the Content-Length is not a number, or contradicts the end of the stream";
    return NULL;
}

heddle_h2_block_result heddle_h2_request_judge(heddle_h2_block *block, bool ended, heddle_h2_request *request,
                                               heddle_rejection *rejection)
{
    *request = (heddle_h2_request){.ended = ended};
    heddle_request_head *head = &request->head;
    if (block->has_pseudo[HEDDLE_H2_METHOD]) {
        head->method = block->pseudo[HEDDLE_H2_METHOD];
        head->method_id = heddle_method_find(text_of(block, head->method), head->method.size);
    }
    if (block->too_large) {
        heddle_reject(rejection, HEDDLE_HEAD_TOO_LARGE, "the header fields are too many or too large");
        return HEDDLE_H2_REJECTED;
    }
    head->dropped = block->line_count != block->field_count; /* before Host is added and cookies are joined */
    block->malformed = find_violation(block, ended, head);
    if (block->malformed)
        return HEDDLE_H2_MALFORMED;
    join_crumbs(block);
    if (heddle_judge_request(head->content_length, block->limits->body_limit, block->controls.more_expected,
                             rejection) < 0)
        return HEDDLE_H2_REJECTED;

    head->minor = 1;
    head->keep_alive = true;
    head->expects_continue = block->controls.continue_expected && !ended;
    head->fields = block->fields;
    head->field_count = head->field_room = (uint16_t)block->field_count;
    head->line_count = (uint16_t)block->line_count;
    head->size = head->field_bytes = (uint32_t)block->bytes->size;
    request->bytes = block->bytes->bytes;
    request->size = block->bytes->size;
    head->protocol = block->pseudo[HEDDLE_H2_PROTOCOL];
    return HEDDLE_H2_ACCEPTED;
}
