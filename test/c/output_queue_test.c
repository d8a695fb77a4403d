/* sources: net/output_queue.c */
/* ruby: headers */
#include "check.h"
#include "net/output_queue.h"

/* What was put in comes out, in order, however it is sent; Strings are not copied, and not forgotten when marking. */

enum {
    MOST = 1 << 22,
    LONG = HEDDLE_OUTPUT_COPIED + 1,
};

static heddle_output queue;
static char expected[MOST];
static size_t put, got; /* bytes */
static VALUE marked[64];
static int marks;
static struct RString *strings[MOST / LONG + 10000]; /* of this test */
static size_t string_count;

void rb_gc_mark(VALUE object)
{
    marked[marks++ % 64] = object;
}

/* A String as the queue sees one: its length and where its bytes are. */
static VALUE new_string(char *bytes, size_t size)
{
    struct RString *string = calloc(1, sizeof(*string));
    CHECK(string_count < sizeof(strings) / sizeof(*strings));
    strings[string_count++] = string;
    string->basic.flags = T_STRING | RSTRING_NOEMBED | RUBY_FL_FREEZE;
    string->len = (long)size;
    string->as.heap.ptr = bytes;
    return (VALUE)string;
}

static unsigned seed = 1;

static unsigned any(unsigned below)
{
    seed = seed * 1103515245 + 12345;
    return (seed >> 8) % below;
}

static void start(void)
{
    queue = (heddle_output){0};
    put = got = 0;
    marks = 0;
}

static void clear(void)
{
    heddle_output_clear(&queue);
    while (string_count)
        free(strings[--string_count]);
}

static char *make(size_t size)
{
    CHECK(put + size <= MOST);
    for (size_t i = 0; i < size; i++)
        expected[put + i] = (char)any(256);
    put += size;
    return expected + put - size;
}

static void add_bytes(size_t size)
{
    const char *bytes = make(size);
    CHECK(heddle_output_add_bytes(&queue, bytes, size));
}

static void add_reserved(size_t size, size_t more)
{
    char *room = heddle_output_reserve(&queue, size + more);
    CHECK(room != NULL);
    memcpy(room, make(size), size);
    heddle_output_added(&queue, size);
}

/* From `skipped` on. */
static VALUE add_string(size_t size, size_t skipped)
{
    char *bytes = make(size);
    VALUE string = new_string(bytes - skipped, size + skipped);
    CHECK(heddle_output_add_string(&queue, string, skipped));
    return string;
}

static size_t send_some(size_t most, int pieces)
{
    struct iovec found[64];
    int count = heddle_output_gather(&queue, found, pieces);
    size_t sent = 0;
    for (int i = 0; i < count && sent < most; i++) {
        CHECK(found[i].iov_len > 0);
        size_t size = found[i].iov_len < most - sent ? found[i].iov_len : most - sent;
        CHECK(memcmp(found[i].iov_base, expected + got + sent, size) == 0);
        sent += size;
    }
    heddle_output_advance(&queue, sent);
    got += sent;
    CHECK_EQUAL(put - got, queue.size);
    return sent;
}

static void end(void)
{
    while (queue.size)
        CHECK(send_some(SIZE_MAX, 64) > 0);
    CHECK_EQUAL(put, got);
    clear();
    CHECK(queue.bytes == NULL && queue.pieces == NULL);
}

static void empty_queue_holds_no_memory(void)
{
    struct iovec found[1];
    start();
    CHECK_EQUAL(0, heddle_output_gather(&queue, found, 1));
    heddle_output_advance(&queue, 0);
    heddle_output_mark(&queue);
    CHECK_EQUAL(0, marks);
    CHECK(heddle_output_add_bytes(&queue, "", 0));
    CHECK(queue.bytes == NULL && queue.pieces == NULL && queue.count == 0);
    end();
}

static void adjacent_bytes_are_one_piece(void)
{
    start();
    for (int i = 0; i < 1000; i++) {
        add_bytes(1 + any(50));
        add_reserved(any(20), any(100));
    }
    CHECK_EQUAL(1, queue.count - queue.first);
    end();
}

static void short_strings_are_copied_and_long_strings_are_kept(void)
{
    start();
    static char own[LONG];
    VALUE copied = new_string(own, HEDDLE_OUTPUT_COPIED), kept = new_string(own, LONG);
    CHECK(heddle_output_add_string(&queue, copied, 0));
    CHECK(heddle_output_add_string(&queue, kept, 1)); /* what is left of it is short */
    CHECK(heddle_output_add_string(&queue, kept, 0));
    struct iovec found[3];
    CHECK_EQUAL(2, heddle_output_gather(&queue, found, 3));
    CHECK(found[0].iov_base != own && found[0].iov_len == 2 * HEDDLE_OUTPUT_COPIED);
    CHECK(found[1].iov_base == own && found[1].iov_len == LONG);
    heddle_output_mark(&queue);
    CHECK_EQUAL(1, marks);
    CHECK(marked[0] == kept);
    clear();
}

static void string_is_marked_until_its_last_byte_is_sent(void)
{
    start();
    VALUE first = add_string(LONG, 5), second = add_string(LONG, 0);
    send_some(LONG - 1, 2);
    heddle_output_mark(&queue);
    CHECK_EQUAL(2, marks);
    CHECK(marked[0] == first && marked[1] == second);
    send_some(1, 1);
    heddle_output_mark(&queue);
    CHECK_EQUAL(3, marks);
    CHECK(marked[2] == second);
    end();
    heddle_output_mark(&queue);
    CHECK_EQUAL(3, marks);
}

static void pieces_do_not_exceed_the_requested_number(void)
{
    start();
    for (int i = 0; i < 10; i++) {
        add_bytes(3);
        add_string(LONG, 0);
    }
    struct iovec found[5];
    CHECK_EQUAL(5, heddle_output_gather(&queue, found, 5));
    CHECK_EQUAL(3 + LONG, send_some(SIZE_MAX, 2));
    end();
}

/* A peer that is always a little behind: neither bytes nor pieces may grow with what was sent in all. */
static void queue_that_is_never_empty_does_not_grow(void)
{
    start();
    add_bytes(1000);
    for (int i = 0; i < 3000; i++) {
        add_bytes(1 + any(300));
        if (i % 16 == 0)
            add_string(LONG, any(10));
        while (queue.size > 1000)
            send_some(queue.size - 1000, 64);
        CHECK(queue.size > 0);
        if (put > MOST - 2 * LONG)
            break;
    }
    CHECK(put > 100 * 1000);
    CHECK(queue.room <= 8192);
    CHECK(queue.piece_room <= 16);
    end();
}

static void random_operations_match_a_model(void)
{
    for (unsigned round = 0; round < 300; round++) {
        start();
        seed = round;
        for (int step = 0; step < 200 && put < MOST - 2 * LONG; step++) {
            switch (any(5)) {
            case 0:
                add_bytes(any(3000));
                break;
            case 1:
                add_reserved(any(500), any(500));
                break;
            case 2:
                add_string(any(4) ? any(200) : LONG + any(2000), any(100));
                break;
            default:
                send_some(any(3) ? any(6000) : any(40000), 1 + (int)any(8));
            }
            CHECK_EQUAL(put - got, queue.size);
        }
        end();
    }
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("output queue", "empty queue holds no memory", empty_queue_holds_no_memory);
    check_run("output queue", "adjacent bytes are one piece", adjacent_bytes_are_one_piece);
    check_run("output queue", "short strings are copied and long strings are kept",
              short_strings_are_copied_and_long_strings_are_kept);
    check_run("output queue", "string is marked until its last byte is sent",
              string_is_marked_until_its_last_byte_is_sent);
    check_run("output queue", "pieces do not exceed the requested number", pieces_do_not_exceed_the_requested_number);
    check_run("output queue", "queue that is never empty does not grow", queue_that_is_never_empty_does_not_grow);
    check_run("output queue", "random operations match a model", random_operations_match_a_model);
    return check_end();
}
