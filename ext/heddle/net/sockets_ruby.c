/* Heddle::Net::Sockets: the Ruby object around the sockets of a worker. */

#include "net/net.h"
#include "net/sockets.h"
#include "net/wipe.h"

#include <string.h>

static void sockets_mark(void *data)
{
    heddle_sockets *sockets = data;
    if (!sockets)
        return;
    /* Pinned, all of them: C holds their addresses, our own too. */
    rb_gc_mark(sockets->attachment.object);
    rb_gc_mark(sockets->scheduler);
    rb_gc_mark(sockets->block);
    for (heddle_listener *listener = sockets->listeners; listener; listener = listener->next)
        rb_gc_mark(listener->io);
}

static void sockets_free(void *data)
{
    if (data)
        heddle_sockets_free(data);
}

static size_t sockets_size(const void *data)
{
    return data ? heddle_sockets_memory_size(data) : 0;
}

static const rb_data_type_t sockets_type = {
    .wrap_struct_name = "Heddle::Net::Sockets",
    .function = {.dmark = sockets_mark, .dfree = sockets_free, .dsize = sockets_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE sockets_allocate(VALUE klass)
{
    return TypedData_Wrap_Struct(klass, &sockets_type, NULL);
}

static heddle_sockets *sockets_of(VALUE self)
{
    heddle_sockets *sockets;
    TypedData_Get_Struct(self, heddle_sockets, &sockets_type, sockets);
    if (!sockets)
        rb_raise(rb_eArgError, "uninitialized sockets");
    return sockets;
}

/* NULL when there is nothing to do any more, or yet; raises on another thread. */
static heddle_sockets *sockets_in_use(VALUE self)
{
    heddle_sockets *sockets = sockets_of(self);
    if (sockets->closed || !sockets->opened)
        return NULL;
    heddle_sockets_check(sockets);
    return sockets;
}

static heddle_sockets *open_sockets(VALUE self)
{
    heddle_sockets *sockets = sockets_of(self);
    heddle_sockets_check(sockets);
    return sockets;
}

static const heddle_socket_set_operations *set_named(const char *name)
{
#ifdef HAVE_SYS_EPOLL_H
    if (strcmp(name, "epoll") == 0 || *name == '\0')
        return &heddle_epoll_set;
#endif
    if (strcmp(name, "selector") == 0 || *name == '\0')
        return &heddle_selector_set;
    rb_raise(rb_eArgError, "no such set of sockets here: %s", name);
}

/* Called by Sockets.new with checked values. */
static VALUE sockets_set_up(VALUE self, VALUE scheduler, VALUE block, VALUE idle_timeout, VALUE most, VALUE pooled,
                            VALUE set)
{
    heddle_loop *loop = heddle_loop_get(scheduler);
    const heddle_socket_set_operations *operations = set_named(StringValueCStr(set));
    int64_t timeout = heddle_duration(idle_timeout);
    size_t max_connections = NIL_P(most) ? 0 : NUM2SIZET(most);
    if (DATA_PTR(self))
        rb_raise(rb_eArgError, "initialized already");
    heddle_sockets *sockets = calloc(1, sizeof(*sockets));
    if (!sockets)
        rb_memerror();
    sockets->loop = loop;
    sockets->scheduler = scheduler;
    sockets->block = block;
    sockets->idle_timeout = timeout;
    sockets->max_connections = max_connections;
    sockets->set.operations = operations;
    heddle_sockets_start(sockets, self, RTEST(pooled));
    DATA_PTR(self) = sockets;
    return self;
}

/*
 * call-seq: listen(io) -> self
 *
 * Accepts connections from a TCPServer or UNIXServer. The socket stays its owner's, who closes it.
 */
static VALUE sockets_listen(VALUE self, VALUE io)
{
    heddle_sockets *sockets = open_sockets(self);
    heddle_listener_add(sockets, io);
    sockets->draining = false;
    return self;
}

/*
 * call-seq: stop_listening -> nil
 *
 * Accepts no more. The listening sockets stay open: who connects waits in the kernel's queue, for another process or
 * until they are closed.
 */
static VALUE sockets_stop_listening(VALUE self)
{
    heddle_sockets *sockets = sockets_in_use(self);
    if (sockets)
        heddle_listeners_remove_all(sockets);
    return Qnil;
}

/*
 * call-seq: pause_accept -> nil
 */
static VALUE sockets_pause_accept(VALUE self)
{
    heddle_listeners_pause(open_sockets(self), HEDDLE_PAUSED_BY_USER);
    return Qnil;
}

/*
 * call-seq: resume_accept -> nil
 */
static VALUE sockets_resume_accept(VALUE self)
{
    heddle_listeners_resume(open_sockets(self), HEDDLE_PAUSED_BY_USER);
    return Qnil;
}

/*
 * call-seq: shutdown_idle -> nil
 *
 * Closes the connections that wait for a request. After #stop_listening also those that become idle from now on.
 */
static VALUE sockets_shutdown_idle(VALUE self)
{
    heddle_sockets *sockets = sockets_in_use(self);
    if (sockets)
        heddle_sockets_shutdown_idle(sockets);
    return Qnil;
}

/*
 * call-seq: close -> nil
 *
 * Stops listening and closes every connection, those that are being served too: fibers that wait for one get
 * IOError. Idempotent.
 */
static VALUE sockets_close(VALUE self)
{
    sockets_in_use(self);
    heddle_sockets_close(sockets_of(self));
    return Qnil;
}

/*
 * call-seq: closed? -> true or false
 */
static VALUE sockets_closed_p(VALUE self)
{
    return sockets_of(self)->closed ? Qtrue : Qfalse;
}

#define COUNTER(name, expression)                                                                                     \
    static VALUE sockets_##name(VALUE self)                                                                           \
    {                                                                                                                 \
        heddle_sockets *sockets = sockets_of(self);                                                                   \
        return ULL2NUM(expression);                                                                                   \
    }

/* Open connections. */
COUNTER(connections, sockets->connections)

/* Those that the block is called with at this moment. */
COUNTER(running, sockets->running)

/* Those that wait for input, or to be served. */
COUNTER(idle, sockets->connections - sockets->running)

/* Connections accepted so far. */
COUNTER(accepted, sockets->accepted)

/* Those that were closed while idle: by their peer, for the idle time, by #shutdown_idle. */
COUNTER(closed_idle, sockets->closed_idle)

/* How often accepting has had to rest for want of descriptors or memory. */
COUNTER(accept_failures, sockets->accept_failures)

/*
 * call-seq: accepting? -> true or false
 *
 * Is a listener there and not paused: by #pause_accept, by max_connections, for want of descriptors?
 */
static VALUE sockets_accepting_p(VALUE self)
{
    heddle_sockets *sockets = sockets_of(self);
    return sockets->listeners && !sockets->paused ? Qtrue : Qfalse;
}

void Init_heddle_sockets(VALUE net)
{
    VALUE sockets_class = rb_define_class_under(net, "Sockets", rb_cObject);
    rb_define_alloc_func(sockets_class, sockets_allocate);
    rb_define_private_method(sockets_class, "set_up", sockets_set_up, 6);
    rb_define_method(sockets_class, "listen", sockets_listen, 1);
    rb_define_method(sockets_class, "stop_listening", sockets_stop_listening, 0);
    rb_define_method(sockets_class, "pause_accept", sockets_pause_accept, 0);
    rb_define_method(sockets_class, "resume_accept", sockets_resume_accept, 0);
    rb_define_method(sockets_class, "shutdown_idle", sockets_shutdown_idle, 0);
    rb_define_method(sockets_class, "close", sockets_close, 0);
    rb_define_method(sockets_class, "closed?", sockets_closed_p, 0);
    rb_define_method(sockets_class, "accepting?", sockets_accepting_p, 0);
    rb_define_method(sockets_class, "connections", sockets_connections, 0);
    rb_define_method(sockets_class, "running", sockets_running, 0);
    rb_define_method(sockets_class, "idle", sockets_idle, 0);
    rb_define_method(sockets_class, "accepted", sockets_accepted, 0);
    rb_define_method(sockets_class, "closed_idle", sockets_closed_idle, 0);
    rb_define_method(sockets_class, "accept_failures", sockets_accept_failures, 0);
}

void Init_heddle_net(VALUE heddle)
{
    VALUE net = rb_define_module_under(heddle, "Net");
    Init_heddle_wipe();
    Init_heddle_runner(net);
    Init_heddle_connection(net);
    Init_heddle_sockets(net);
}
