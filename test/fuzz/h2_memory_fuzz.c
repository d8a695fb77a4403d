/* sources: http/h2/headers_writer.c http/h2/block_fields.c http/h2/request_head.c http/h2/session_client.c
   http/h2/drain.c http/h2/flow_control.c http/h2/frame.c http/h2/limits.c http/h2/hpack_decoder.c
   http/h2/hpack_encoder.c http/h2/hpack_table.c http/h2/huffman.c http/h2/output.c http/h2/priority.c
   http/h2/header_blocks.c http/h2/session.c http/h2/settings.c http/h2/streams.c http/h2/tables.c http/text.c
   http/fields.c http/control_fields.c http/content_length.c http/transfer_encoding.c http/target.c http/authority.c
   http/rejection.c http/request_limits.c -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc */

/*
 * Sessions of HTTP/2 without memory: see h2_program.h. The input's first two bytes say which allocation fails, and
 * whether all later ones do.
 */

#include "h2_program.h"

static struct {
    long count, at;
    bool all, paused;
} failures = {.paused = true};

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static void program_pause_failures(bool pause)
{
    failures.paused = pause;
}

static bool fails(void)
{
    if (failures.paused)
        return false;
    long number = failures.count++;
    return number == failures.at || (failures.all && number > failures.at);
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4)
        return 0;
    failures.count = 0;
    failures.at = data[0] | (data[1] & 3) << 8;
    failures.all = data[1] >> 7;
    run_program(data + 2, size - 2);
    failures.paused = true;
    return 0;
}
