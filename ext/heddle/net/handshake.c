/* The handshake stage of a connection, before its protocol begins: see handshake.h. */

#include "net/handshake.h"

#include "net/protocol.h"
#include "net/proxy_header.h"
#include "net/net.h"
#include "net/sockets.h"
#include "scheduler/take_errinfo.h"
#include "selector/assert.h"

#include <poll.h>
#include <sys/socket.h>

/*
 * The time for all handshakes of a tick, in ns. One handshake takes 0.1 to 2 ms, depending on the type of the server's
 * key, and a thousand may begin at once.
 */
static const int64_t SHARE = 2000000;

static VALUE wait_readable, wait_writable;

static void enter_stage(heddle_connection *connection, heddle_handshake_stage stage)
{
    HEDDLE_ASSERT(heddle_handshake_may_enter(connection->stage, stage));
    connection->stage = stage;
}

static void complete_handshake(heddle_connection *connection)
{
    enter_stage(connection, HEDDLE_STAGE_COMPLETE);
    /* Input after the handshake may already be buffered, and the kernel reports no further event for it. */
    heddle_transport_note(&connection->transport, HEDDLE_HAS_INPUT);
    connection->sockets->service->operations->choose_protocol(connection);
}

static void reject_handshake(heddle_connection *connection, heddle_handshake_error error)
{
    heddle_transport *transport = &connection->transport;
    heddle_tls_free(transport->tls);
    transport->tls = NULL;
    enter_stage(connection, HEDDLE_STAGE_COMPLETE);
    heddle_bytes_reset(&connection->input, 0);
    heddle_transport_note(transport, HEDDLE_HAS_INPUT);
    connection->sockets->service->operations->reject_handshake(connection, error);
}

static void handshake_due(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    if (!heddle_link_is_listed(&connection->turn_link)) {
        heddle_address_share *share = heddle_address_find_share(sockets, &connection->remote);
        if (!heddle_link_is_listed(&share->turn_link)) {
            heddle_link_init_head(&share->handshakes); /* empty, because `share` is not in the queue */
            heddle_link_push_last(&sockets->handshake_queue.due, &share->turn_link);
        }
        heddle_link_push_last(&share->handshakes, &connection->turn_link);
    }
    heddle_sockets_schedule_resume(sockets);
}

/* -- the header of a proxy --------------------------------------------------------------------------------------- */

/*
 * If the header contains the client's address, the connection now counts towards the limit of that address, and no
 * longer towards the limit of the proxy's address.
 */
static void apply_proxy_header(heddle_connection *connection, const heddle_proxy_header *header)
{
    heddle_bytes_reset(&connection->input, 0);
    if (header->source.family) {
        heddle_address_uncount(connection);
        connection->remote = header->source;
        connection->local = header->destination;
        if (!heddle_address_count(connection->sockets, connection, 1)) {
            connection->sockets->refused++;
            heddle_sockets_close_idle(connection);
            return;
        }
    }
    connection->secure = header->secure;
    if (!connection->transport.tls) {
        complete_handshake(connection);
        return;
    }
    enter_stage(connection, HEDDLE_STAGE_TLS);
    handshake_due(connection);
}

/*
 * Reads exactly the PROXY header: a TLS handshake may follow, for which OpenSSL reads the socket itself. So this
 * function peeks first, and then receives only the header.
 */
static void read_proxy_header(heddle_connection *connection)
{
    heddle_transport *transport = &connection->transport;
    heddle_bytes *input = &connection->input;
    heddle_transport_forget(transport, HEDDLE_HAS_INPUT);
    for (;;) {
        size_t had = heddle_bytes_left(input);
        if (!heddle_bytes_reserve(input, 256))
            break;
        char *room = input->bytes + input->size;
        ssize_t there;
        HEDDLE_RETRY(there, recv(transport->fd, room, input->room - input->size, MSG_PEEK | MSG_DONTWAIT));
        if (there < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            heddle_connection_want(connection, HEDDLE_READING);
            return;
        }
        if (there <= 0)
            break;
        heddle_proxy_header header;
        long size = heddle_proxy_header_parse(&header, heddle_bytes_first(input), had + (size_t)there);
        if (size < 0) {
            reject_handshake(connection, HEDDLE_NO_PROXY_HEADER);
            return;
        }
        size_t taken = size > 0 ? (size_t)size - had : (size_t)there;
        if (recv(transport->fd, room, taken, MSG_DONTWAIT) != (ssize_t)taken)
            break;
        input->size += taken;
        if (size > 0) {
            apply_proxy_header(connection, &header);
            return;
        }
    }
    heddle_sockets_close_idle(connection);
}

/* -- a TLS handshake --------------------------------------------------------------------------------------------- */

typedef enum {
    NOTHING_YET,
    END_OF_INPUT,
    PLAINTEXT, /* the client does not use TLS on this port */
    TLS_RECORD,
} first_input;

static first_input peek_input(const heddle_connection *connection)
{
    char byte;
    ssize_t result = recv(connection->transport.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (result < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? NOTHING_YET : END_OF_INPUT;
    if (result == 0)
        return END_OF_INPUT;
    if (connection->sockets->service->operations->is_plaintext(byte))
        return PLAINTEXT;
#ifdef POLLRDHUP
    /*
     * A client that has closed its side after its first message can't complete the handshake, so a signature for it
     * would be wasted.
     */
    struct pollfd end = {.fd = connection->transport.fd, .events = POLLRDHUP};
    if (poll(&end, 1, 0) > 0)
        return END_OF_INPUT;
#endif
    return TLS_RECORD;
}

static VALUE make_socket(VALUE data)
{
    heddle_connection *connection = (heddle_connection *)data;
    heddle_tls *tls = connection->transport.tls;
    tls->socket = rb_funcall(tls->acceptor, rb_intern("socket"), 1, INT2NUM(connection->transport.fd));
    heddle_tls_begin_handshake(tls);
    return Qnil;
}

/*
 * Calls Ruby's openssl, which continues the handshake as far as it can without waiting. Returns :wait_readable or
 * :wait_writable (the event to wait for), the socket if the handshake is complete, or nil if it has failed.
 */
static VALUE step_handshake(VALUE data)
{
    heddle_tls *tls = ((heddle_connection *)data)->transport.tls;
    heddle_tls_count(tls);
    return rb_funcall(tls->acceptor, rb_intern("handshake"), 1, tls->socket);
}

static VALUE call_protected(VALUE (*function)(VALUE), heddle_connection *connection)
{
    int state = 0;
    VALUE result = rb_protect(function, (VALUE)connection, &state);
    heddle_tls_count(NULL);
    if (!state)
        return result;
    heddle_take_errinfo();
    return Qundef;
}

static void note_failure(heddle_connection *connection)
{
    connection->sockets->failed_handshakes++;
    connection->transport.tls->broken = true;
    heddle_sockets_close_idle(connection);
}

/* Performs one step of the TLS handshake. */
static HEDDLE_LAST_USE void continue_tls(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    heddle_tls *tls = connection->transport.tls;
    if (!tls->socket) {
        first_input first = peek_input(connection);
        if (first == NOTHING_YET) {
            heddle_connection_want(connection, HEDDLE_READING);
            return;
        }
        if (first == END_OF_INPUT) {
            heddle_sockets_close_idle(connection);
            return;
        }
        if (first == PLAINTEXT) {
            reject_handshake(connection, HEDDLE_NO_TLS);
            return;
        }
    }
    uint64_t identity = heddle_sockets_identity(sockets, connection);
    VALUE result = tls->socket ? Qnil : call_protected(make_socket, connection);
    if (result != Qundef)
        result = call_protected(step_handshake, connection);
    if (heddle_sockets_at(sockets, identity) != connection)
        return;
    if (result == wait_readable) {
        heddle_connection_want(connection, HEDDLE_READING);
    } else if (result == wait_writable) {
        heddle_connection_want(connection, HEDDLE_WRITING);
    } else if (result != tls->socket) {
        note_failure(connection);
    } else {
        sockets->handshakes++;
        connection->secure = true;
        heddle_tls_begin(&connection->transport);
        complete_handshake(connection);
    }
}

void heddle_handshake_run_queued(heddle_sockets *sockets)
{
    heddle_link *due = &sockets->handshake_queue.due, *link = heddle_link_first(due);
    if (!link)
        return;
    int64_t end = heddle_clock_now() + SHARE;
    for (; link; link = heddle_link_first(due)) {
        heddle_address_share *share = HEDDLE_CONTAINER_OF(link, heddle_address_share, turn_link);
        heddle_link_remove(link);
        heddle_link *first = heddle_link_first(&share->handshakes);
        if (!first)
            continue; /* the connections of this address were closed */
        heddle_link_remove(first);
        if (heddle_link_first(&share->handshakes))
            heddle_link_push_last(due, link);
        continue_tls(HEDDLE_CONTAINER_OF(first, heddle_connection, turn_link));
        if (sockets->closed)
            return;
        if (heddle_clock_now() >= end)
            break;
    }
    if (heddle_link_first(due))
        heddle_sockets_schedule_resume(sockets);
}

/* -- the whole stage --------------------------------------------------------------------------------------------- */

bool heddle_handshake_begin(heddle_connection *connection, const heddle_listener *listener)
{
    bool proxied = heddle_networks_include(listener->proxies, &connection->remote);
    if (!proxied && NIL_P(listener->acceptor))
        return false;
    heddle_sockets *sockets = connection->sockets;
    enter_stage(connection, proxied ? HEDDLE_STAGE_PROXY_HEADER : HEDDLE_STAGE_TLS);
    if (!NIL_P(listener->acceptor)) {
        connection->transport.tls = heddle_tls_new(&sockets->tls_records, listener->acceptor);
        if (!connection->transport.tls) {
            heddle_sockets_close_idle(connection);
            return true;
        }
    }
    heddle_connection_set_time_limit(connection, sockets->handshake_queue.timeout);
    heddle_connection_want(connection, HEDDLE_READING);
    return true;
}

void heddle_handshake_handle_event(heddle_connection *connection)
{
    if (connection->stage == HEDDLE_STAGE_PROXY_HEADER)
        read_proxy_header(connection);
    else
        handshake_due(connection);
}

bool heddle_handshake_is_idle(const heddle_connection *connection)
{
    const heddle_tls *tls = connection->transport.tls;
    return !heddle_bytes_left(&connection->input) && !(tls && tls->socket);
}

/*
 * call-seq: Heddle::Native.load_tls(path) -> nil or String
 *
 * Finds the functions of the TLS library with which the shared object at +path+ is linked. If +path+ is nil, finds them
 * in any TLS library that is loaded. Returns nil, or the name of a function or library that is missing.
 */
static VALUE load_tls(VALUE native, VALUE path)
{
    const char *missing = heddle_tls_load(NIL_P(path) ? NULL : StringValueCStr(path));
    return missing ? rb_str_new_cstr(missing) : Qnil;
}

void Init_heddle_handshake(VALUE net)
{
    wait_readable = ID2SYM(rb_intern("wait_readable"));
    wait_writable = ID2SYM(rb_intern("wait_writable"));
    rb_define_singleton_method(rb_path2class("Heddle::Native"), "load_tls", load_tls, 1);
    VALUE tls = rb_define_class_under(net, "TLS", rb_cObject);
    Init_heddle_server_names(tls);
    Init_heddle_ticket_keys(tls);
}
