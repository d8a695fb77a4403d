/* sources: http/h1/server/request_head.c http/h1/head.c http/h1/field_lines.c http/fields.c http/control_fields.c http/content_length.c http/transfer_encoding.c http/target.c */
/* sources: http/authority.c http/text.c http/h1/line_errors.c http/rejection.c http/request_limits.c */
/* wrap: heddle_field_lines_read */
/* link: -U__SSE2__ */

/* Request heads as they are parsed where there is no SSE2: everything in one command, so that the option counts. */

#include "http_request_head_test.c"
