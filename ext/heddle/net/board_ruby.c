/* Heddle::Net::Board: what the master, and whoever wants to show it, knows of the load board. */

#include "net/board_ruby.h"

#include "scheduler/loop.h"

#include <errno.h>

static void board_free(void *data)
{
    heddle_board_close(data);
    ruby_xfree(data);
}

static size_t board_size(const void *data)
{
    return sizeof(heddle_board);
}

static const rb_data_type_t board_type = {
    .wrap_struct_name = "Heddle::Net::Board",
    .function = {.dfree = board_free, .dsize = board_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE board_allocate(VALUE klass)
{
    heddle_board *board;
    VALUE object = TypedData_Make_Struct(klass, heddle_board, &board_type, board);
    *board = (heddle_board){.memory.fd = -1, .poke_fd = -1};
    return object;
}

static heddle_board *board_data(VALUE object)
{
    return rb_check_typeddata(object, &board_type);
}

heddle_board *heddle_board_of(VALUE object)
{
    heddle_board *board = board_data(object);
    if (!board->header)
        rb_raise(rb_eIOError, "this board is not open");
    return board;
}

static heddle_board_slot *slot_of(heddle_board *board, VALUE number)
{
    uint32_t slot = NUM2UINT(number);
    if (slot >= board->slot_count)
        rb_raise(rb_eArgError, "the board has no slot %u", slot);
    return &board->slots[slot];
}

/*
 * call-seq: Board.new(slots) -> board
 *
 * Memory that this process shares with those that it forks, with room for so many workers.
 */
static VALUE board_initialize(VALUE self, VALUE slots)
{
    heddle_board *board = board_data(self);
    uint32_t count = NUM2UINT(slots);
    if (count == 0 || count > 4096)
        rb_raise(rb_eArgError, "a board has 1 to 4096 slots, not %u", count);
    if (board->header)
        rb_raise(rb_eArgError, "initialized already");
    int result = heddle_board_create(board, count);
    if (result < 0)
        rb_syserr_fail(-result, "making the load board");
    return self;
}

/*
 * call-seq: Board.for_fd(memory, poke) -> board
 *
 * The one that these descriptors, of #descriptors in another process, stand for; they are its own from now on. Raises
 * Errno::EPROTO when it is of another version.
 */
static VALUE board_for_fd(VALUE klass, VALUE memory, VALUE poke)
{
    VALUE self = board_allocate(klass);
    int result = heddle_board_open(board_data(self), NUM2INT(memory), NUM2INT(poke));
    if (result < 0)
        rb_syserr_fail(-result, "opening the load board");
    return self;
}

/*
 * call-seq: descriptors -> [Integer, Integer] or nil
 *
 * Of the memory and of what makes others look; they close when a program is executed. nil where there are none.
 */
static VALUE board_descriptors(VALUE self)
{
    heddle_board *board = heddle_board_of(self);
    if (board->memory.fd < 0 || board->poke_fd < 0)
        return Qnil;
    return rb_ary_new_from_args(2, INT2FIX(board->memory.fd), INT2FIX(board->poke_fd));
}

/*
 * call-seq: take(generation, index) -> Integer or nil
 *
 * A free slot's number, for the worker of this number; nil: all are taken. By the master.
 */
static VALUE board_take(VALUE self, VALUE generation, VALUE index)
{
    uint32_t number = NUM2UINT(generation);
    if (number == 0)
        rb_raise(rb_eArgError, "a generation is 1 at least");
    int64_t slot = heddle_board_take(heddle_board_of(self), number, NUM2UINT(index));
    return slot < 0 ? Qnil : LL2NUM(slot);
}

/*
 * call-seq: free(slot) -> nil
 *
 * Its worker is no more. By the master.
 */
static VALUE board_free_slot(VALUE self, VALUE number)
{
    heddle_board *board = heddle_board_of(self);
    heddle_board_free(board, (uint32_t)(slot_of(board, number) - board->slots));
    heddle_board_poke(board);
    return Qnil;
}

/*
 * call-seq: slots -> Integer
 */
static VALUE board_slots(VALUE self)
{
    return UINT2NUM(heddle_board_of(self)->slot_count);
}

static double seconds(int64_t nanoseconds)
{
    return (double)nanoseconds / 1e9;
}

#define PUT(key, value) rb_hash_aset(hash, ID2SYM(rb_intern(key)), value)
#define WORD(word) atomic_load_explicit(&slot->word, memory_order_relaxed)

/*
 * call-seq: read(slot) -> Hash or nil
 *
 * What this slot says now: generation, index, pid, accepting, in_flight, connections, waiting, limit (nil: none), lag
 * in seconds, busy_for: for how many seconds its loop's turn has gone on, nil: it sleeps, accepted, requests. nil: the
 * slot is nobody's.
 */
static VALUE board_read(VALUE self, VALUE number)
{
    const heddle_board_slot *slot = slot_of(heddle_board_of(self), number);
    if (WORD(generation) == 0)
        return Qnil;
    int64_t tick_began = WORD(tick_began), now = heddle_clock_coarse();
    VALUE hash = rb_hash_new();
    PUT("generation", UINT2NUM(WORD(generation)));
    PUT("index", UINT2NUM(WORD(index)));
    PUT("pid", UINT2NUM(WORD(pid)));
    PUT("accepting", WORD(accepting) ? Qtrue : Qfalse);
    PUT("in_flight", UINT2NUM(WORD(in_flight)));
    PUT("connections", UINT2NUM(WORD(connections)));
    PUT("waiting", UINT2NUM(WORD(waiting)));
    PUT("limit", WORD(limit) ? UINT2NUM(WORD(limit)) : Qnil);
    PUT("lag", DBL2NUM(seconds(WORD(lag))));
    PUT("busy_for", tick_began ? DBL2NUM(seconds(now > tick_began ? now - tick_began : 0)) : Qnil);
    PUT("accepted", ULL2NUM(WORD(accepted)));
    PUT("requests", ULL2NUM(WORD(requests)));
    return hash;
}

/*
 * call-seq: note(slot, lag, waiting, limit) -> nil
 *
 * What is looked at now and then: by how many seconds the loop is late, how many requests wait, and how many may run
 * at once (nil: any number). By the slot's worker.
 */
static VALUE board_note(VALUE self, VALUE number, VALUE lag, VALUE waiting, VALUE limit)
{
    heddle_board_slot *slot = slot_of(heddle_board_of(self), number);
    HEDDLE_BOARD_SET(slot->lag, (int64_t)(NUM2DBL(lag) * 1e9));
    HEDDLE_BOARD_SET(slot->waiting, NUM2UINT(waiting));
    HEDDLE_BOARD_SET(slot->limit, NIL_P(limit) ? 0 : NUM2UINT(limit));
    return Qnil;
}

void Init_heddle_board(VALUE net)
{
    VALUE board_class = rb_define_class_under(net, "Board", rb_cObject);
    rb_define_alloc_func(board_class, board_allocate);
    rb_define_singleton_method(board_class, "for_fd", board_for_fd, 2);
    rb_define_method(board_class, "initialize", board_initialize, 1);
    rb_define_method(board_class, "descriptors", board_descriptors, 0);
    rb_define_method(board_class, "slots", board_slots, 0);
    rb_define_method(board_class, "take", board_take, 2);
    rb_define_method(board_class, "free", board_free_slot, 1);
    rb_define_method(board_class, "read", board_read, 1);
    rb_define_method(board_class, "note", board_note, 4);
}
