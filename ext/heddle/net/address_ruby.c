/* Converts addresses to Ruby Strings. */

#include "net/connection.h"

#include <ruby/encoding.h>

VALUE heddle_address_string(const heddle_address *address)
{
    char room[HEDDLE_ADDRESS_ROOM];
    const char *text = heddle_address_text(address, room);
    return text ? rb_enc_interned_str_cstr(text, rb_usascii_encoding()) : Qnil;
}
