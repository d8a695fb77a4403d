#include "http/transfer_encoding.h"

#include "http/text.h"

void heddle_transfer_encoding_note(heddle_transfer_encoding *encoding, const char *at, const char *end)
{
    size_t size;
    const char *coding;
    encoding->present = true;
    while ((coding = heddle_next_element(&at, end, &size))) {
        encoding->codings++;
        encoding->early_chunked |= encoding->last_chunked;
        encoding->last_chunked = heddle_is_word(coding, size, "chunked");
        encoding->malformed |= heddle_find_token_end(coding, coding + size) < coding + size;
    }
}

int heddle_transfer_encoding_check(const heddle_transfer_encoding *encoding, int malformed, int unknown,
                                   heddle_rejection *rejection)
{
    if (encoding->codings == 1 && encoding->last_chunked)
        return 0;
    if (encoding->codings == 0 || encoding->malformed)
        return heddle_reject(rejection, malformed, "the Transfer-Encoding is not a list of codings");
    if (encoding->early_chunked)
        return heddle_reject(rejection, malformed, "chunked is not the last transfer coding, or is applied twice");
    return heddle_reject(rejection, unknown, "the only transfer coding that this %s supports is chunked",
                         unknown == 501 ? "server" : "client");
}
