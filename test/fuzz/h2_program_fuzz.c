/* sources: http/h2/headers_writer.c http/h2/block_fields.c http/h2/request_head.c http/h2/session_client.c
   http/h2/drain.c http/h2/flow_control.c http/h2/frame.c http/h2/limits.c http/h2/hpack_decoder.c
   http/h2/hpack_encoder.c http/h2/hpack_table.c http/h2/huffman.c http/h2/output.c http/h2/priority.c
   http/h2/header_blocks.c http/h2/session.c http/h2/settings.c http/h2/streams.c http/h2/tables.c http/text.c
   http/fields.c http/control_fields.c http/content_length.c http/transfer_encoding.c http/target.c http/authority.c
   http/rejection.c http/request_limits.c */

/* Sessions of HTTP/2 in every state: see h2_program.h. */

#include "h2_program.h"

static void program_pause_failures(bool pause)
{
    (void)pause;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 2)
        run_program(data, size);
    return 0;
}
