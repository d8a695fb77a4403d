/*
 * Heddle::Net::SharedText: a string in memory that the processes of a server share. One process writes it; all can read
 * it.
 */

#include "net/net.h"

#include "binding.h"
#include "net/shared_memory.h"

#include <sys/mman.h>

/*
 * The memory begins with this record. Two slots of `limit` bytes follow. The lowest bit of `version` is the index of
 * the slot with the current string.
 */
typedef struct {
    _Atomic uint64_t version; /* increases with each string; 0: no string was written yet */
    _Atomic uint64_t sizes[2];
} text_head;

typedef struct {
    heddle_shared_memory memory;
    size_t limit;
} shared_text;

static void text_free(void *data)
{
    heddle_shared_memory_close(&((shared_text *)data)->memory);
    ruby_xfree(data);
}

static const rb_data_type_t text_type = HEDDLE_TYPE("Heddle::Net::SharedText", 0, .dfree = text_free);

static VALUE text_allocate(VALUE klass)
{
    shared_text *text;
    VALUE object = TypedData_Make_Struct(klass, shared_text, &text_type, text);
    text->memory.fd = -1;
    return object;
}

static shared_text *text_of(VALUE object)
{
    shared_text *text = rb_check_typeddata(object, &text_type);
    if (!text->memory.start)
        rb_raise(rb_eIOError, "this SharedText is not initialized");
    return text;
}

static char *place_of(const shared_text *text, uint64_t version)
{
    return (char *)text->memory.start + sizeof(text_head) + (version & 1) * text->limit;
}

/*
 * call-seq: SharedText.new(limit) -> text
 *
 * Allocates shared memory for a string of at most +limit+ bytes. Pages that were never written take no memory.
 */
static VALUE text_initialize(VALUE self, VALUE limit)
{
    shared_text *text = rb_check_typeddata(self, &text_type);
    size_t bytes = NUM2SIZET(limit);
    if (text->memory.start)
        rb_raise(rb_eTypeError, "this SharedText is already initialized");
    int result = heddle_shared_memory_create(&text->memory, "heddle-text", sizeof(text_head) + 2 * bytes);
    if (result < 0)
        rb_syserr_fail(-result, "making shared memory for a text");
    text->limit = bytes;
#ifdef MADV_DONTDUMP
    madvise(text->memory.start, text->memory.size, MADV_DONTDUMP);
#endif
    return self;
}

/*
 * call-seq: write(string) -> true or false
 *
 * Replaces the string. Returns false, and keeps the old string, if the new one is too long. Readers get the old string
 * until the new one is complete, even if this process is killed meanwhile. Only one process may call this.
 */
static VALUE text_write(VALUE self, VALUE string)
{
    shared_text *text = text_of(self);
    text_head *head = text->memory.start;
    size_t size = (size_t)RSTRING_LEN(StringValue(string));
    if (size > text->limit)
        return Qfalse;
    uint64_t version = atomic_load(&head->version) + 1;
    memcpy(place_of(text, version), RSTRING_PTR(string), size);
    atomic_store(&head->sizes[version & 1], size);
    atomic_store(&head->version, version);
    return Qtrue;
}

/*
 * call-seq: read -> String or nil
 *
 * Returns the latest string, or nil if there is none yet.
 */
static VALUE text_read(VALUE self)
{
    const shared_text *text = text_of(self);
    const text_head *head = text->memory.start;
    uint64_t version;
    while ((version = atomic_load(&head->version))) {
        size_t size = atomic_load(&head->sizes[version & 1]);
        if (size > text->limit)
            continue;
        VALUE string = rb_str_new(place_of(text, version), (long)size);
        atomic_thread_fence(memory_order_seq_cst);
        /* The writer increases the version before it refills this slot. An unchanged version means an intact copy. */
        if (atomic_load(&head->version) == version)
            return string;
    }
    return Qnil;
}

/*
 * call-seq: version -> Integer
 *
 * Returns a number that increases with each string that is written.
 */
static VALUE text_version(VALUE self)
{
    const text_head *head = text_of(self)->memory.start;
    return ULL2NUM(atomic_load(&head->version));
}

void Init_heddle_shared_text(VALUE net)
{
    VALUE text = heddle_define_class(net, "SharedText", text_allocate);
    rb_define_method(text, "initialize", text_initialize, 1);
    rb_define_method(text, "write", text_write, 1);
    rb_define_method(text, "read", text_read, 0);
    rb_define_method(text, "version", text_version, 0);
}
