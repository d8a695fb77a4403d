#pragma once

/*
 * Collects, line by line, the fields of a head that control the message and its connection (RFC 9112, 6 and 9; RFC
 * 9110, 7.6 to 7.8 and 10.1.1). Several lines with the same name form one list. The caller checks the result when the
 * head is complete.
 */

#include "http/content_length.h"
#include "http/transfer_encoding.h"

typedef struct {
    heddle_slice host; /* the value of the first Host line */
    bool has_host, second_host;
    heddle_content_length content_length;
    heddle_transfer_encoding transfer_encoding;
    bool close, keep_alive, upgrade_named;  /* Connection contains `close`, `keep-alive`, `upgrade` */
    bool upgrade_offered;                   /* Upgrade contains a protocol */
    bool continue_expected, more_expected;  /* Expect contains `100-continue`; Expect contains another expectation */
} heddle_control_fields;

/* Evaluates one field line. Fields that control neither the message nor the connection are ignored. */
void heddle_control_fields_note(heddle_control_fields *controls, const char *bytes, const heddle_field *field);

/* May the connection be kept open after this message (RFC 9112, 9.3)? `minor`: its version is HTTP/1.minor. */
bool heddle_control_fields_keep_alive(const heddle_control_fields *controls, uint8_t minor);
