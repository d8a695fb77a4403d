/* Heddle::Net::Sockets: the Ruby object of the listeners and connections of one loop. */

#include "net/sockets_ruby.h"

#include "binding.h"
#include "net/networks.h"

#include <fcntl.h>
#include <ruby/io.h>
#include <sys/socket.h>

static void sockets_mark(void *data)
{
    heddle_sockets *sockets = data;
    if (!sockets)
        return;
    /* Marked as pinned, because C code refers to these objects by address. */
    rb_gc_mark(sockets->attachment.object);
    rb_gc_mark(sockets->scheduler);
    rb_gc_mark(sockets->block);
    rb_gc_mark(sockets->service_object);
    rb_gc_mark(sockets->proxies);
    rb_gc_mark(sockets->runners.waiting_for_end);
    rb_gc_mark(sockets->balance.object);
    rb_gc_mark(sockets->balance.pool_follower);
    heddle_link *unsent = &sockets->unsent;
    for (heddle_link *link = heddle_link_first(unsent); link; link = heddle_link_after(unsent, link))
        heddle_output_mark(&HEDDLE_CONTAINER_OF(link, heddle_connection, unsent_link)->output);
    for (heddle_listener *listener = sockets->listeners; listener; listener = listener->next) {
        rb_gc_mark(listener->io);
        rb_gc_mark(listener->acceptor);
        rb_gc_mark(listener->proxies);
    }
    heddle_tls_mark(sockets->tls_records);
}

static void sockets_free(void *data)
{
    if (data)
        heddle_sockets_free(data);
}

static const rb_data_type_t sockets_type =
    HEDDLE_TYPE("Heddle::Net::Sockets", 0, .dmark = sockets_mark, .dfree = sockets_free);

const rb_data_type_t heddle_service_type = {.wrap_struct_name = "Heddle::Net::Service"};

static VALUE sockets_allocate(VALUE klass)
{
    return TypedData_Wrap_Struct(klass, &sockets_type, NULL);
}

heddle_sockets *heddle_sockets_of(VALUE self)
{
    heddle_sockets *sockets = rb_check_typeddata(self, &sockets_type);
    if (!sockets)
        rb_raise(rb_eArgError, "this Sockets object is not initialized");
    return sockets;
}

heddle_sockets *heddle_sockets_in_use(VALUE self)
{
    heddle_sockets *sockets = heddle_sockets_of(self);
    if (sockets->closed || !sockets->opened)
        return NULL;
    heddle_sockets_check(sockets);
    return sockets;
}

heddle_sockets *heddle_sockets_open(VALUE self)
{
    heddle_sockets *sockets = heddle_sockets_of(self);
    heddle_sockets_check(sockets);
    return sockets;
}

static const heddle_event_set_operations *set_named(const char *name)
{
#ifdef HAVE_SYS_EPOLL_H
    if (strcmp(name, "epoll") == 0 || *name == '\0')
        return &heddle_epoll_set;
#endif
    if (strcmp(name, "selector") == 0 || *name == '\0')
        return &heddle_selector_set;
    rb_raise(rb_eArgError, "unknown event set %s (known: epoll, selector)", name);
}

/* Called by Sockets.new, which has checked `block` and `most`. */
static VALUE sockets_set_up(VALUE self, VALUE scheduler, VALUE block, VALUE most, VALUE set, VALUE service_object,
                            VALUE handshake_timeout, VALUE proxies)
{
    heddle_loop *loop = heddle_loop_get(scheduler);
    heddle_service *service = rb_check_typeddata(service_object, &heddle_service_type);
    const heddle_event_set_operations *operations = set_named(StringValueCStr(set));
    int64_t limit = heddle_parse_duration(handshake_timeout);
    if (!NIL_P(proxies))
        rb_check_typeddata(proxies, &heddle_networks_type);
    size_t max_connections = NIL_P(most) ? 0 : NUM2SIZET(most);
    if (DATA_PTR(self))
        rb_raise(rb_eArgError, "this Sockets object is already initialized");
    heddle_sockets *sockets = calloc(1, sizeof(*sockets));
    if (!sockets)
        rb_memerror();
    sockets->loop = loop;
    sockets->scheduler = scheduler;
    sockets->block = block;
    sockets->service_object = service_object;
    sockets->service = service;
    heddle_service_retain(service);
    sockets->handshake_queue.timeout = limit;
    sockets->max_connections = max_connections;
    sockets->proxies = proxies;
    sockets->set.operations = operations;
    heddle_sockets_start(sockets, self);
    DATA_PTR(self) = sockets;
    return self;
}

/* Called by Sockets#listen. */
static VALUE sockets_add_listener(VALUE self, VALUE io, VALUE acceptor, VALUE proxies, VALUE own_user)
{
    heddle_sockets *sockets = heddle_sockets_open(self);
    if (!NIL_P(proxies))
        rb_check_typeddata(proxies, &heddle_networks_type);
    heddle_listener_add(sockets, io, acceptor, proxies, RTEST(own_user));
    sockets->draining = false;
    return self;
}

/*
 * call-seq: adopt(socket) -> self
 *
 * Serves a connected stream socket that other code has accepted. The descriptor is duplicated, so the caller may close
 * its socket.
 */
static VALUE sockets_adopt(VALUE self, VALUE io)
{
    io = rb_io_get_io(io);
    heddle_sockets *sockets = heddle_sockets_open(self);
    int fd = fcntl(rb_io_descriptor(io), F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        rb_sys_fail("adopting a socket");
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    heddle_address remote = heddle_address_of_peer(fd), local = heddle_address_of_socket(fd);
    int result = heddle_sockets_add(sockets, fd, &remote, &local, NULL);
    if (result < 0) {
        close(fd);
        rb_syserr_fail(-result, "adopting a socket");
    }
    sockets->accepted++;
    return self;
}

/*
 * call-seq: stop_listening -> nil
 *
 * Stops accepting connections. The listening sockets remain open: new connections wait in the kernel's queue until
 * another process accepts them or the sockets are closed.
 */
static VALUE sockets_stop_listening(VALUE self)
{
    heddle_sockets *sockets = heddle_sockets_in_use(self);
    if (sockets) {
        heddle_listeners_remove_all(sockets);
        heddle_reserve_disable(sockets);
    }
    return Qnil;
}

/*
 * call-seq: accept_rest -> nil
 *
 * Accepts the connections that wait in the kernel's queues, up to max_connections but whatever the load is, and then
 * stops accepting. Called before the listening sockets are closed, because that would also close the connections in
 * their queues.
 */
static VALUE sockets_accept_rest(VALUE self)
{
    heddle_sockets *sockets = heddle_sockets_in_use(self);
    if (sockets)
        heddle_listeners_drain(sockets);
    return Qnil;
}

/*
 * call-seq: leave -> nil
 *
 * Prepares for the server's stop. From now on health checks get 503, and each HTTP/1.1 connection ends after its next
 * response. Connections are still accepted.
 */
static VALUE sockets_leave(VALUE self)
{
    heddle_sockets *sockets = heddle_sockets_in_use(self);
    if (sockets)
        sockets->leaving = true;
    return Qnil;
}

/*
 * call-seq: cut_slow_readers(budget, rate, seconds) -> Integer
 *
 * Disconnects clients that received fewer than +rate+ bytes per second of a response in the last +seconds+. Then, while
 * more than +budget+ bytes of responses wait, disconnects the slowest clients. Returns the number of disconnected
 * clients.
 */
static VALUE sockets_cut_slow_readers(VALUE self, VALUE budget, VALUE rate, VALUE seconds)
{
    heddle_sockets *sockets = heddle_sockets_in_use(self);
    if (!sockets)
        return INT2FIX(0);
    return SIZET2NUM(heddle_sockets_cut_slow_readers(sockets, NUM2ULL(budget), NUM2DBL(rate),
                                                     heddle_parse_duration(seconds)));
}

/*
 * call-seq: shutdown_idle(seconds = 0) -> nil
 *
 * Closes the connections that have waited for a request for more than +seconds+. Idle connections of HTTP/2, WebSockets
 * and event streams are closed at once, because their clients can be notified first. If +seconds+ is 0 and
 * #stop_listening was called, also closes connections when they become idle later.
 */
static VALUE sockets_shutdown_idle(int count, VALUE *arguments, VALUE self)
{
    rb_check_arity(count, 0, 1);
    int64_t age = count ? heddle_parse_duration(arguments[0]) : 0;
    heddle_sockets *sockets = heddle_sockets_in_use(self);
    if (sockets)
        heddle_sockets_shutdown_idle(sockets, age);
    return Qnil;
}

/*
 * call-seq: closed? -> true or false
 */
HEDDLE_DEFINE_METHOD(sockets_closed_p, "closed?", heddle_sockets_of(self)->closed ? Qtrue : Qfalse)

/*
 * call-seq: running_requests -> [[Fiber, Array], ...]
 *
 * Returns the fibers that serve an item now, each with the protocol's description of the item, but only those whose
 * item has one. Any thread may call this, so a status command works even while the loop is blocked.
 */
static VALUE sockets_running_requests(VALUE self)
{
    heddle_sockets *sockets = heddle_sockets_of(self);
    bool in_use = sockets->opened && !sockets->closed && !sockets->abandoned;
    return in_use ? heddle_runners_list_work(sockets) : rb_ary_new();
}

/*
 * call-seq: ended? -> true or false
 *
 * Returns whether no connection is left, and no runner (a pooled fiber) serves an item.
 */
HEDDLE_DEFINE_METHOD(sockets_ended_p, "ended?", heddle_runners_are_done(heddle_sockets_of(self)) ? Qtrue : Qfalse)

/* -- admission ---------------------------------------------------------------------------------------------------- */

/*
 * call-seq: limit = Integer or nil
 *
 * Sets how many items (requests and callbacks) may be served at once; nil: no limit. If more are being served already,
 * all of them continue. Health checks don't count.
 */
static VALUE sockets_set_limit(VALUE self, VALUE limit)
{
    heddle_sockets *sockets = heddle_sockets_open(self);
    size_t value = NIL_P(limit) ? 0 : NUM2SIZET(limit);
    if (!NIL_P(limit) && value == 0)
        rb_raise(rb_eArgError, "the limit is 0: it must be at least 1, or nil for no limit");
    heddle_admission_set_limit(sockets, value);
    return limit;
}

/*
 * call-seq: queue(limit, timeout) -> nil
 *
 * Sets how many items (at least 1) may wait while the limit is reached, and for how many seconds (nil: no limit). If
 * the queue is full, or if an item waits for too long, the item's protocol rejects it.
 */
static VALUE sockets_queue(VALUE self, VALUE limit, VALUE timeout)
{
    heddle_sockets *sockets = heddle_sockets_open(self);
    size_t queue_limit = NUM2SIZET(limit);
    int64_t queue_timeout = heddle_parse_duration(timeout);
    if (queue_limit == 0)
        rb_raise(rb_eArgError, "the limit of the queue is 0: it must be at least 1");
    sockets->admission.queue_limit = queue_limit;
    sockets->admission.queue_timeout = queue_timeout;
    heddle_admission_request(sockets);
    return Qnil;
}

/*
 * call-seq: end_queue -> nil
 *
 * Rejects all waiting items.
 */
static VALUE sockets_end_queue(VALUE self)
{
    heddle_sockets *sockets = heddle_sockets_in_use(self);
    if (sockets)
        heddle_admission_end_queue(sockets);
    return Qnil;
}

#define METHODS(X)                                                                                                     \
    /* Returns false if there is no listener or accepting is paused, for example at max_connections. */                \
    X(sockets_accepting_p, "accepting?",                                                                               \
      heddle_sockets_of(self)->listeners && !heddle_sockets_of(self)->paused ? Qtrue : Qfalse)                         \
    /* Stops listening and closes every connection. Fibers that wait on a connection get IOError. Idempotent. */       \
    X(sockets_close, "close", (heddle_sockets_in_use(self), heddle_sockets_close(heddle_sockets_of(self)), Qnil))      \
    /* The fibers that serve an item now. */                                                                           \
    X(sockets_serving, "serving",                                                                                      \
      heddle_sockets_in_use(self) ? heddle_runners_list_fibers(heddle_sockets_of(self)) : rb_ary_new())                \
    /* How many items may be served at once; nil: any number. */                                                       \
    X(sockets_limit, "limit",                                                                                          \
      heddle_sockets_of(self)->admission.limit ? SIZET2NUM(heddle_sockets_of(self)->admission.limit) : Qnil)
METHODS(HEDDLE_DEFINE_METHOD)

#define METHODS_1(X)                                                                                                   \
    /* From now on wakes this fiber, if it is parked, whenever no connection is left and no item is served. */         \
    X(sockets_wake_at_end, "wake_at_end", fiber, (heddle_sockets_open(self)->runners.waiting_for_end = fiber, Qnil))
METHODS_1(HEDDLE_DEFINE_METHOD_1)

void Init_heddle_sockets(VALUE net)
{
    VALUE class = heddle_define_class(net, "Sockets", sockets_allocate);
    METHODS(HEDDLE_REGISTER_METHOD)
    METHODS_1(HEDDLE_REGISTER_METHOD_1)
    rb_define_private_method(class, "set_up", sockets_set_up, 7);
    rb_define_private_method(class, "add_listener", sockets_add_listener, 4);
    rb_define_method(class, "adopt", sockets_adopt, 1);
    rb_define_method(class, "stop_listening", sockets_stop_listening, 0);
    rb_define_method(class, "accept_rest", sockets_accept_rest, 0);
    rb_define_method(class, "leave", sockets_leave, 0);
    rb_define_method(class, "cut_slow_readers", sockets_cut_slow_readers, 3);
    rb_define_method(class, "shutdown_idle", sockets_shutdown_idle, -1);
    rb_define_method(class, "running_requests", sockets_running_requests, 0);
    rb_define_method(class, "ended?", sockets_ended_p, 0);
    rb_define_method(class, "closed?", sockets_closed_p, 0);
    rb_define_method(class, "limit=", sockets_set_limit, 1);
    rb_define_method(class, "queue", sockets_queue, 2);
    rb_define_method(class, "end_queue", sockets_end_queue, 0);
    Init_heddle_sockets_sharing(class);
    Init_heddle_sockets_statistics(class);
}
