/*
 * Heddle::HTTP::SpooledBody: a request's body in a file. Its methods call no scheduler hook and check for no
 * interrupts. So a native library can read a body in a callback, and no other fiber runs on the thread meanwhile.
 */

#include "binding.h"
#include "http/body/spool_ruby.h"

#include <ruby/thread.h>

/* Bytes. A read of at most this size keeps the GVL, because releasing the GVL would cost more time than it saves. */
static const size_t SMALL_READ = 262144;
enum {
    LINE_BLOCK = 16384, /* bytes that are read at a time to find the end of a line */
};

static VALUE spooled_body_class;

static void body_free(void *data)
{
    heddle_body_spool_release(data);
}

static const rb_data_type_t body_type =
    HEDDLE_TYPE("Heddle::HTTP::SpooledBody", 0, .dfree = body_free);

VALUE heddle_spooled_body(heddle_body_spool *spool)
{
    VALUE object = TypedData_Wrap_Struct(spooled_body_class, &body_type, NULL);
    spool->holders++;
    spool->kept = true;
    RTYPEDDATA_DATA(object) = spool;
    return object;
}

HEDDLE_RECORD_OF(spool_of, heddle_body_spool, body_type)

typedef struct {
    heddle_body_spool *spool;
    uint64_t offset;
    char *memory;
    size_t size;
    ssize_t result;
    bool done;
} reading;

static void *read_in_place(void *data)
{
    reading *one = data;
    one->result = heddle_body_spool_read(one->spool, one->offset, one->memory, one->size);
    one->done = true;
    return NULL;
}

/* Returns the number of bytes that were read. Raises SystemCallError, or IOError if the request has ended. */
static size_t read_at(heddle_body_spool *spool, uint64_t offset, char *memory, size_t size)
{
    reading one = {.spool = spool, .offset = offset, .memory = memory, .size = size};
    if (!heddle_body_spool_begin_read(spool))
        rb_raise(rb_eIOError, "the request has ended, and its body is closed");
    /*
     * INTR_FAIL: if an interrupt is pending, rb_nogvl returns without reading. Then the bytes are read with the GVL.
     * The interrupt is handled later, because handling it may switch fibers.
     */
    if (size > SMALL_READ)
        rb_nogvl(read_in_place, &one, NULL, NULL, RB_NOGVL_INTR_FAIL);
    if (!one.done)
        read_in_place(&one);
    heddle_body_spool_end_read(spool);
    if (one.result < 0)
        rb_syserr_fail((int)-one.result, "reading the body of a request");
    return (size_t)one.result;
}

/* The size of the whole body in bytes. */
HEDDLE_DEFINE_METHOD(body_bytesize, "bytesize", ULL2NUM(spool_of(self)->size))

/*
 * call-seq: byteslice(offset, length) -> String
 *
 * Returns up to +length+ bytes of the body from +offset+ on; an empty String if +offset+ is not within the body.
 */
static VALUE body_byteslice(VALUE self, VALUE offset, VALUE length)
{
    heddle_body_spool *spool = spool_of(self);
    uint64_t start = NUM2ULL(offset), size = NUM2ULL(length);
    if (start >= spool->size)
        return rb_str_new(NULL, 0);
    if (size > spool->size - start)
        size = spool->size - start;
    if (size > LONG_MAX)
        rb_raise(rb_eArgError, "a String can't have %" PRIu64 " bytes", size);
    VALUE bytes = rb_str_new(NULL, (long)size);
    size_t got = read_at(spool, start, RSTRING_PTR(bytes), (size_t)size);
    rb_str_set_len(bytes, (long)got);
    RB_GC_GUARD(self);
    return bytes;
}

/*
 * call-seq: byteindex(text, offset) -> Integer or nil
 *
 * Like String#byteindex, but +text+ must be a String of one byte.
 */
static VALUE body_byteindex(VALUE self, VALUE text, VALUE offset)
{
    heddle_body_spool *spool = spool_of(self);
    uint64_t start = NUM2ULL(offset);
    char block[LINE_BLOCK];
    StringValue(text);
    if (RSTRING_LEN(text) != 1)
        rb_raise(rb_eArgError, "byteindex can only find one byte, not %ld bytes", RSTRING_LEN(text));
    for (size_t size = 1024; start < spool->size; size = LINE_BLOCK) { /* most lines are short */
        size_t got = read_at(spool, start, block, size);
        const char *found = memchr(block, RSTRING_PTR(text)[0], got);
        if (found)
            return ULL2NUM(start + (uint64_t)(found - block));
        if (got == 0)
            break;
        start += got;
    }
    return Qnil;
}

void Init_heddle_spooled_body(VALUE http)
{
    spooled_body_class = heddle_define_class(http, "SpooledBody", NULL);
    rb_define_method(spooled_body_class, "bytesize", body_bytesize, 0);
    rb_define_method(spooled_body_class, "byteslice", body_byteslice, 2);
    rb_define_method(spooled_body_class, "byteindex", body_byteindex, 2);
}
