/* Decodes the chunked transfer coding (RFC 9112, section 7.1). */

#include "http/h1/line_errors.h"
#include "http/message.h"
#include "http/request_limits.h"
#include "http/text.h"

enum {
    MOST_DIGITS = 16, /* hexadecimal digits of a chunk's size: 64 bits */
    LINE_END = 2,
};

typedef enum {
    SIZE,
    SPACE,         /* white space after the size; an extension must follow */
    EXTENSION,
    SIZE_LINE_END, /* after the CR of the line with the size */
    DATA,
    DATA_CR,
    DATA_LF,
    FIRST_TRAILER, /* at the start of the line after the last chunk */
    NEXT_TRAILER,
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    LAST_LF,
    DONE,
} chunked_state;

void heddle_chunked_start(heddle_chunked *chunked, uint32_t header_bytes, uint32_t header_lines)
{
    *chunked = (heddle_chunked){.state = SIZE, .header_bytes = header_bytes, .header_lines = header_lines};
}

static int reject_size(heddle_rejection *rejection)
{
    return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "a chunk's size is malformed");
}

static int parse_digit(char digit)
{
    return digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10;
}

/* Handles a byte of the size, or of the white space after it. */
static int take_size(heddle_chunked *chunked, char byte, heddle_rejection *rejection)
{
    if (chunked->state == SIZE && heddle_is(byte, HEDDLE_HEX) && chunked->digits < MOST_DIGITS) {
        chunked->remaining = chunked->remaining << 4 | (uint64_t)parse_digit(byte);
        chunked->digits++;
        return 0;
    }
    if (chunked->digits == 0)
        return reject_size(rejection);
    if (byte == '\r' && chunked->state == SIZE)
        chunked->state = SIZE_LINE_END;
    else if (byte == ';')
        chunked->state = EXTENSION;
    else if (heddle_is_space(byte))
        chunked->state = SPACE;
    else
        return reject_size(rejection);
    return 0;
}

static int take_extension(heddle_chunked *chunked, char byte, heddle_rejection *rejection)
{
    if (byte == '\r')
        chunked->state = SIZE_LINE_END;
    else if (heddle_is_control(byte))
        return reject_size(rejection);
    return 0;
}

/* Called when the size of a chunk is known: checks it against the limits. */
static int begin_chunk(heddle_chunked *chunked, const heddle_http_limits *limits, heddle_rejection *rejection)
{
    chunked->digits = 0;
    if (chunked->remaining == 0) {
        chunked->state = FIRST_TRAILER;
        return 0;
    }
    if (chunked->remaining > limits->body || chunked->data > limits->body - chunked->remaining)
        return heddle_reject_large_body(rejection, limits->body);
    chunked->data += chunked->remaining;
    chunked->framing += LINE_END; /* the line end after the data */
    if (chunked->framing > chunked->data && chunked->framing - chunked->data > limits->chunk_overhead)
        return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "the body has too much chunk framing: use larger chunks");
    chunked->state = DATA;
    return 0;
}

/* Handles one byte of the line with a chunk's size. */
static int take_size_line(heddle_chunked *chunked, char byte, const heddle_http_limits *limits,
                          heddle_rejection *rejection)
{
    chunked->framing++;
    if (chunked->state == SIZE_LINE_END)
        return byte == '\n' ? begin_chunk(chunked, limits, rejection) : reject_size(rejection);
    int result = chunked->state == EXTENSION ? take_extension(chunked, byte, rejection)
                                             : take_size(chunked, byte, rejection);
    if (result == 0 && (chunked->state == SPACE || chunked->state == EXTENSION) &&
        ++chunked->extensions > limits->chunk_extension)
        return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "the chunk extensions of the body are too long");
    return result;
}

static int take_data_end(heddle_chunked *chunked, char byte, heddle_rejection *rejection)
{
    if (byte != (chunked->state == DATA_CR ? '\r' : '\n'))
        return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "a chunk does not end with CR LF after its stated size");
    chunked->state = chunked->state == DATA_CR ? DATA_LF : SIZE;
    return 0;
}

static int start_trailer(heddle_chunked *chunked, char byte, heddle_rejection *rejection)
{
    if (byte == '\r')
        chunked->state = LAST_LF;
    else if (heddle_is(byte, HEDDLE_TOKEN))
        chunked->state = TRAILER_NAME;
    else
        return heddle_reject_field(rejection, HEDDLE_BAD_REQUEST, &byte, &byte + 1);
    return 0;
}

static int take_trailer_name(heddle_chunked *chunked, char byte, heddle_rejection *rejection)
{
    if (byte == ':')
        chunked->state = TRAILER_VALUE;
    else if (heddle_is_space(byte))
        return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "a header line has white space before the colon");
    else if (byte == '\r')
        return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "a header line has no colon");
    else if (!heddle_is(byte, HEDDLE_TOKEN))
        return heddle_reject_field(rejection, HEDDLE_BAD_REQUEST, &byte, &byte + 1);
    return 0;
}

static int end_trailer(heddle_chunked *chunked, char byte, const heddle_http_limits *limits,
                       heddle_rejection *rejection)
{
    if (byte != '\n')
        return heddle_reject_control(rejection, HEDDLE_BAD_REQUEST, '\r');
    if (++chunked->header_lines > limits->header_count) {
        return heddle_reject(rejection, HEDDLE_HEAD_TOO_LARGE, "there are more than %u header and trailer lines",
                             limits->header_count);
    }
    chunked->state = NEXT_TRAILER;
    return 0;
}

/* Handles one byte after the last chunk: trailers are checked and discarded (RFC 9112, 7.1.2). */
static int take_trailers(heddle_chunked *chunked, char byte, const heddle_http_limits *limits,
                         heddle_rejection *rejection)
{
    /*
     * The empty line counts against the limit only if there are trailers. So a request may have a head of exactly the
     * allowed size and a chunked body.
     */
    bool counts = chunked->state != LAST_LF && (chunked->state != FIRST_TRAILER || byte != '\r');
    if (counts)
        chunked->header_bytes += chunked->state == NEXT_TRAILER && byte == '\r' ? LINE_END : 1;
    if (counts && chunked->header_bytes > limits->header) {
        return heddle_reject(rejection, HEDDLE_HEAD_TOO_LARGE,
                             "the header and trailer lines together are longer than %zu bytes", limits->header);
    }
    switch ((chunked_state)chunked->state) {
    case FIRST_TRAILER:
    case NEXT_TRAILER:
        return start_trailer(chunked, byte, rejection);
    case TRAILER_NAME:
        return take_trailer_name(chunked, byte, rejection);
    case TRAILER_VALUE:
        if (byte == '\r')
            chunked->state = TRAILER_LF;
        else if (heddle_is_control(byte))
            return heddle_reject_control(rejection, HEDDLE_BAD_REQUEST, byte);
        return 0;
    case TRAILER_LF:
        return end_trailer(chunked, byte, limits, rejection);
    default:
        if (byte != '\n')
            return heddle_reject_control(rejection, HEDDLE_BAD_REQUEST, '\r');
        chunked->state = DONE;
        chunked->done = true;
        return 0;
    }
}

static size_t take_data(heddle_chunked *chunked, const char *bytes, size_t size, char *output)
{
    size_t taken = chunked->remaining < size ? (size_t)chunked->remaining : size;
    if (output != bytes)
        memmove(output, bytes, taken);
    chunked->remaining -= taken;
    if (chunked->remaining == 0)
        chunked->state = DATA_CR;
    return taken;
}

int64_t heddle_chunked_decode(heddle_chunked *chunked, const char *bytes, size_t size, char *output, size_t *length,
                              const heddle_http_limits *limits, heddle_rejection *rejection)
{
    size_t at = 0;
    *length = 0;
    if (chunked->failed)
        return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "an earlier part of the body was malformed");
    while (at < size && chunked->state != DONE) {
        int result;
        if (chunked->state == DATA) {
            size_t taken = take_data(chunked, bytes + at, size - at, output + *length);
            at += taken;
            *length += taken;
            continue;
        }
        if (chunked->state < DATA)
            result = take_size_line(chunked, bytes[at], limits, rejection);
        else if (chunked->state <= DATA_LF)
            result = take_data_end(chunked, bytes[at], rejection);
        else
            result = take_trailers(chunked, bytes[at], limits, rejection);
        if (result < 0) {
            chunked->failed = true;
            return -1;
        }
        at++;
    }
    return (int64_t)at;
}
