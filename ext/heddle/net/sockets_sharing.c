/*
 * The methods of Heddle::Net::Sockets for servers with several processes: handoff of connections, and the scoreboard.
 */

#include "net/sockets_ruby.h"

#include "net/scoreboard_ruby.h"

#include <ruby/io.h>

int heddle_sockets_add_session(heddle_sockets *sockets, int fd, const heddle_address *remote,
                               const heddle_address *local, bool secure, const char *description, size_t size)
{
    heddle_service *service = sockets->service;
    int state = 0;
    VALUE loaded = service->operations->load_session(service, rb_str_new(description, (long)size), &state);
    if (state) {
        close(fd);
        rb_jump_tag(state);
    }
    if (NIL_P(loaded) || sockets->closed) /* other fibers may have closed the sockets meanwhile */
        return -EPROTO;
    return heddle_sockets_add_shared(sockets, fd, remote, local, secure, NULL, 0, loaded);
}

/*
 * call-seq: hand_off_idle(socket) -> true or false
 *
 * Hands off the idle connections to another process, which receives them with #accept_handoff from the other end of
 * this SEQPACKET socket. Leaves out connections that can't be handed off, such as most of those with TLS. Returns false
 * if the socket is full before all were sent.
 */
static VALUE sockets_hand_off_idle(VALUE self, VALUE io)
{
    heddle_sockets *sockets = heddle_sockets_in_use(self);
    if (!sockets)
        return Qtrue;
    int result = heddle_handoff_send_idle(sockets, rb_io_descriptor(rb_io_get_io(io)));
    if (result == -EAGAIN || result == -ENOBUFS || result == -ETOOMANYREFS)
        return Qfalse;
    if (result < 0)
        rb_syserr_fail(-result, "handing off connections");
    return Qtrue;
}

/*
 * call-seq: accept_handoff(socket) -> true, false or nil
 *
 * Receives one connection that another process has handed off. Returns true if one was received, even if it then had to
 * be closed. Returns nil if there is none. Returns false, and receives nothing, if this process has no room for a
 * connection, has just handed off the next one itself, or is a reserve that does not serve.
 */
static VALUE sockets_accept_handoff(VALUE self, VALUE io)
{
    heddle_sockets *sockets = heddle_sockets_open(self);
    int result = heddle_handoff_receive(sockets, rb_io_descriptor(rb_io_get_io(io)));
    if (result == -EAGAIN)
        return Qnil;
    if (result == -EDQUOT)
        /* during the pause, the scoreboard shows the other workers that this one does not accept */
        heddle_listeners_pause_for(sockets, HEDDLE_PAUSED_FULL, HEDDLE_FULL_BACK_OFF);
    if (result == -EDQUOT || result == -EMFILE || result == -EBUSY)
        return Qfalse;
    if (result < 0 && result != -EPROTO && result != -ENOMEM && result != -EPERM)
        rb_syserr_fail(-result, "receiving a handoff");
    return Qtrue;
}

/*
 * call-seq: enable_handoff(socket) -> true or false
 *
 * Enables the handoff of connections while this loop is blocked or has too much to do. Other processes receive the
 * connections with #accept_handoff from the other end of this SEQPACKET socket. Called after #join. Returns false if
 * this system does not support the handoff, or if it is already enabled.
 */
static VALUE sockets_enable_handoff(VALUE self, VALUE io)
{
    heddle_sockets *sockets = heddle_sockets_open(self);
    int result = heddle_handoff_begin(sockets, rb_io_descriptor(rb_io_get_io(io)));
    if (result == -ENOTSUP)
        return Qfalse;
    if (result < 0)
        rb_syserr_fail(-result, "enabling handoff");
    return Qtrue;
}

/*
 * call-seq: stand_by(rank) -> self
 *
 * Makes this worker a reserve (a standby worker) of this rank, which is 1 or more. It accepts neither clients nor
 * handoffs, except while all workers and all reserves of a lower rank are blocked. Called before #listen and #join.
 */
static VALUE sockets_stand_by(VALUE self, VALUE rank)
{
    heddle_sockets *sockets = heddle_sockets_open(self);
    uint32_t number = NUM2UINT(rank);
    if (number == 0)
        rb_raise(rb_eArgError, "the rank of a reserve must be at least 1, but is 0");
    if (sockets->listeners || sockets->balance.slot)
        rb_raise(rb_eArgError, "stand_by must be called before listen and join");
    heddle_reserve_enable(sockets, number);
    return self;
}

/*
 * call-seq: reserve -> :parked, :serving or nil
 *
 * Returns the state of this reserve, or nil if this worker is not a reserve.
 */
static VALUE sockets_reserve(VALUE self)
{
    const heddle_reserve *reserve = &heddle_sockets_of(self)->reserve;
    return reserve->rank ? ID2SYM(rb_intern(reserve->serves ? "serving" : "parked")) : Qnil;
}

/*
 * call-seq: join(scoreboard, slot) -> self
 *
 * Makes this process one of several workers that listen on the same sockets. It publishes its load in this slot of the
 * scoreboard, and leaves new connections to workers that have clearly less to do.
 */
static VALUE sockets_join(VALUE self, VALUE object, VALUE number)
{
    heddle_sockets *sockets = heddle_sockets_open(self);
    heddle_scoreboard *scoreboard = heddle_scoreboard_of(object);
    uint32_t slot = NUM2UINT(number);
    if (slot >= scoreboard->slot_count)
        rb_raise(rb_eArgError, "the scoreboard has no slot %u", slot);
    if (sockets->balance.slot)
        rb_raise(rb_eArgError, "these sockets already have a slot of a scoreboard");
    heddle_balance_join(sockets, object, scoreboard, slot);
    return self;
}

/*
 * call-seq: wake_at_pool_change(fiber) -> nil
 *
 * From now on wakes this fiber, if it is parked, whenever the shares of pools may have changed: a worker has returned a
 * share, or has begun or stopped to wait for one. Called after #join.
 */
static VALUE sockets_wake_at_pool_change(VALUE self, VALUE fiber)
{
    heddle_sockets_open(self)->balance.pool_follower = fiber;
    return Qnil;
}

void Init_heddle_sockets_sharing(VALUE sockets_class)
{
    rb_define_const(sockets_class, "HANDOFF_VERSION", INT2FIX(HEDDLE_HANDOFF_VERSION));
    rb_define_method(sockets_class, "hand_off_idle", sockets_hand_off_idle, 1);
    rb_define_method(sockets_class, "accept_handoff", sockets_accept_handoff, 1);
    rb_define_method(sockets_class, "enable_handoff", sockets_enable_handoff, 1);
    rb_define_method(sockets_class, "join", sockets_join, 2);
    rb_define_method(sockets_class, "wake_at_pool_change", sockets_wake_at_pool_change, 1);
    rb_define_method(sockets_class, "stand_by", sockets_stand_by, 1);
    rb_define_method(sockets_class, "reserve", sockets_reserve, 0);
}
