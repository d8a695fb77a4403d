#include "net/net.h"

#include "binding.h"
#include "net/connection.h"
#include "net/datagram.h"
#include "net/io_await.h"
#include "net/owned_socket.h"

#include <arpa/inet.h>
#include <ruby/io.h>

/* Heddle::Net::DatagramSocket and its Peer. lib/heddle/net/datagram_socket.rb opens the sockets. */

static VALUE peer_class;

/* -- Heddle::Net::DatagramSocket::Peer ----------------------------------------------------------------------------- */

/* The record is embedded in the Ruby object, to save an allocation for each datagram. */
static const rb_data_type_t peer_type =
    HEDDLE_TYPE("Heddle::Net::DatagramSocket::Peer",
                RUBY_TYPED_WB_PROTECTED | RUBY_TYPED_FROZEN_SHAREABLE | RUBY_TYPED_EMBEDDABLE,
                .dfree = RUBY_DEFAULT_FREE);

static VALUE make_peer(const heddle_datagram_peer *value)
{
    heddle_datagram_peer *peer;
    VALUE self = TypedData_Make_Struct(peer_class, heddle_datagram_peer, &peer_type, peer);
    *peer = *value;
    return rb_obj_freeze(self);
}

HEDDLE_RECORD_OF(peer_of, const heddle_datagram_peer, peer_type)

/* Parses an IP address. Returns false if the text is not one, for example because it contains a NUL. */
static bool read_ip_address(const char *text, size_t size, heddle_datagram_peer *peer)
{
    char copy[HEDDLE_ADDRESS_ROOM] = "";
    if (size >= sizeof(copy) || memchr(text, '\0', size))
        return false;
    memcpy(copy, text, size);
    if (inet_pton(AF_INET, copy, &peer->remote.ipv4.sin_addr) == 1)
        peer->remote.any.sa_family = AF_INET;
    else if (inet_pton(AF_INET6, copy, &peer->remote.ipv6.sin6_addr) == 1)
        peer->remote.any.sa_family = AF_INET6;
    else
        return false;
    return true;
}

static uint16_t port_of(VALUE port)
{
    VALUE number = rb_to_int(port);
    if (!FIXNUM_P(number) || FIX2LONG(number) < 0 || FIX2LONG(number) > UINT16_MAX)
        rb_raise(rb_eArgError, "port %" PRIsVALUE " is invalid: it must be 0 to 65535", number);
    return (uint16_t)FIX2LONG(number);
}

/*
 * call-seq: new(address, port) -> Peer
 *
 * Makes a peer from an IP address ("192.0.2.1", "2001:db8::1") and a port. Raises ArgumentError if either is invalid.
 */
static VALUE peer_new(VALUE class, VALUE address, VALUE port)
{
    heddle_datagram_peer peer = {0};
    uint16_t number = htons(port_of(port));
    StringValue(address);
    if (!read_ip_address(RSTRING_PTR(address), (size_t)RSTRING_LEN(address), &peer))
        rb_raise(rb_eArgError, "%+" PRIsVALUE " is not an IP address: write it like 192.0.2.1 or 2001:db8::1", address);
    if (peer.remote.any.sa_family == AF_INET6)
        peer.remote.ipv6.sin6_port = number;
    else
        peer.remote.ipv4.sin_port = number;
    return make_peer(&peer);
}

/*
 * call-seq: address_bytes -> String
 *
 * Returns the IP address as a String of 4 or 16 bytes.
 */
static VALUE peer_address_bytes(VALUE self)
{
    heddle_address address = heddle_address_of(&peer_of(self)->remote.any);
    return rb_str_new((const char *)address.bytes, address.family == AF_INET6 ? 16 : 4);
}

/*
 * call-seq: address -> String
 *
 * Returns the IP address as text, such as "192.0.2.1".
 */
static VALUE peer_address(VALUE self)
{
    char room[HEDDLE_ADDRESS_ROOM];
    heddle_address address = heddle_address_of(&peer_of(self)->remote.any);
    return rb_usascii_str_new_cstr(heddle_address_text(&address, room));
}

/*
 * call-seq: port -> Integer
 */
HEDDLE_DEFINE_METHOD(peer_port, "port", INT2FIX(heddle_address_of(&peer_of(self)->remote.any).port))

/* -- the object ---------------------------------------------------------------------------------------------------- */

typedef struct {
    heddle_datagram_socket socket;
    heddle_owned_socket owned;
    heddle_address local;
} datagram_object;

static void release_resources(datagram_object *object)
{
    heddle_owned_socket_release(&object->owned);
    heddle_datagram_release_memory(&object->socket);
    object->socket.fd = -1;
}

static void datagram_free(void *data)
{
    release_resources(data);
    xfree(data);
}

static size_t datagram_size(const void *data)
{
    const datagram_object *object = data;
    return sizeof(*object) + heddle_datagram_memory_size(&object->socket);
}

static const rb_data_type_t datagram_type =
    HEDDLE_TYPE("Heddle::Net::DatagramSocket", RUBY_TYPED_DECL_MARKING,
                .dmark = HEDDLE_REFERENCES(offsetof(datagram_object, owned.io)), .dfree = datagram_free,
                .dsize = datagram_size);

HEDDLE_RECORD_OF(datagram_data, datagram_object, datagram_type)

static datagram_object *open_datagram(VALUE self)
{
    datagram_object *object = datagram_data(self);
    heddle_owned_socket_check(&object->owned, "socket");
    return object;
}

/*
 * call-seq: adopt(socket, max_size, wildcard) -> DatagramSocket
 *
 * Makes a DatagramSocket from a bound Socket, and takes ownership of the Socket. +max_size+ is how many bytes of a
 * datagram are kept. +wildcard+ is true if the kernel reports the local address of each datagram.
 */
static VALUE datagram_adopt(VALUE class, VALUE io, VALUE max_size, VALUE wildcard)
{
    long size = NUM2LONG(max_size);
    if (size < 1 || size > HEDDLE_DATAGRAM_LARGEST)
        rb_raise(rb_eArgError, "max_size %ld is invalid: it must be 1 to %d bytes", size, HEDDLE_DATAGRAM_LARGEST);
    datagram_object *object;
    VALUE self = TypedData_Make_Struct(class, datagram_object, &datagram_type, object);
    object->socket.fd = rb_io_descriptor(io);
    object->socket.is_wildcard = RTEST(wildcard);
    object->socket.max_size = (size_t)size;
    object->local = heddle_address_of_socket(object->socket.fd);
    if (object->local.family == 0)
        rb_sys_fail("reading the address of a datagram socket");
    heddle_owned_socket_adopt(&object->owned, io);
    return self;
}

/*
 * call-seq: close -> nil
 *
 * Closes the socket. Does nothing if it is closed already. A fiber or thread that waits in #receive gets IOError.
 */
static VALUE datagram_close(VALUE self)
{
    datagram_object *object = datagram_data(self);
    VALUE io = object->owned.io;
    if (NIL_P(io))
        return Qnil;
    release_resources(object);
    rb_io_close(io);
    return Qnil;
}

#define METHODS(X)                                                                                                     \
    /* Returns true in a forked child, too. */                                                                         \
    X(datagram_closed_p, "closed?", heddle_owned_socket_is_open(&datagram_data(self)->owned) ? Qfalse : Qtrue)         \
    /* Returns the IP address that the socket is bound to. */                                                          \
    X(datagram_address, "address", heddle_address_string(&datagram_data(self)->local))                                 \
    /* Returns the port that the socket is bound to. */                                                                \
    X(datagram_port, "port", INT2FIX(datagram_data(self)->local.port))                                                 \
    /* How many datagrams could not be sent so far, because the kernel's buffer was full, there was no route, or       \
     * they were too large. */                                                                                         \
    X(datagram_unsent, "unsent", ULL2NUM(datagram_data(self)->socket.unsent))
METHODS(HEDDLE_DEFINE_METHOD)

/* -- receiving ----------------------------------------------------------------------------------------------------- */

/* Waits until there are datagrams. Returns how many were received. */
static int await_datagrams(VALUE self)
{
    for (;;) {
        datagram_object *object = open_datagram(self);
        int count = heddle_datagram_receive(&object->socket);
        if (count >= 0)
            return count;
        if (count == -EAGAIN)
            heddle_await_io(object->owned.io, HEDDLE_READABLE, -1);
        else if (count == -ENOMEM)
            rb_memerror();
        else if (!heddle_datagram_is_late_error(count))
            rb_syserr_fail(-count, "receiving datagrams");
    }
}

/*
 * Returns an Array with the block arguments for each datagram. All datagrams are copied before the block gets the first
 * one, because the block may receive again or close the socket.
 */
static VALUE copy_datagrams(const heddle_datagram_socket *socket, int count)
{
    VALUE datagrams = rb_ary_new_capa(count);
    for (int i = 0; i < count; i++) {
        const heddle_datagram *datagram = heddle_datagram_at(socket, i);
        VALUE bytes = rb_str_new(datagram->bytes, (long)datagram->size);
        rb_ary_push(datagrams, rb_ary_new_from_args(3, bytes, make_peer(&datagram->peer),
                                                    datagram->truncated ? Qtrue : Qfalse));
    }
    return datagrams;
}

/*
 * call-seq: receive { |bytes, peer, truncated| } -> Integer
 *
 * Waits until there are datagrams, and yields each of them. One call yields at most 64 datagrams. +truncated+ is true
 * if the datagram was larger than max_size; then its end is lost. Returns the number of datagrams.
 *
 * In a Heddle loop the other ready fibers run before this method returns.
 *
 * Raises IOError if the socket is closed before or during the call, also if the block closes it.
 */
static VALUE datagram_receive(VALUE self)
{
    rb_need_block();
    int count = await_datagrams(self);
    VALUE datagrams = copy_datagrams(&datagram_data(self)->socket, count);
    for (int i = 0; i < count; i++)
        rb_yield_splat(RARRAY_AREF(datagrams, i));
    heddle_await_tick(open_datagram(self)->owned.io);
    RB_GC_GUARD(datagrams);
    return INT2FIX(count);
}

/* -- sending ------------------------------------------------------------------------------------------------------- */

/*
 * call-seq: send(bytes, peer) -> true or false
 *
 * Sends a datagram to a Peer. If the Peer comes from #receive, the reply is sent from the local address at which its
 * datagram arrived. Never waits. Returns false if the kernel has not accepted the datagram; #unsent counts such
 * datagrams. Raises IOError if the socket is closed.
 */
static VALUE datagram_send(VALUE self, VALUE bytes, VALUE peer)
{
    datagram_object *object = open_datagram(self);
    StringValue(bytes);
    bool sent = heddle_datagram_send(&object->socket, RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes), peer_of(peer));
    RB_GC_GUARD(bytes);
    RB_GC_GUARD(peer);
    return sent ? Qtrue : Qfalse;
}

void Init_heddle_datagram(VALUE net)
{
    VALUE class = heddle_define_class(net, "DatagramSocket", NULL);
    rb_define_const(class, "LARGEST", INT2FIX(HEDDLE_DATAGRAM_LARGEST)); /* bytes */
    rb_define_private_method(rb_singleton_class(class), "adopt", datagram_adopt, 3);
    rb_define_method(class, "close", datagram_close, 0);
    METHODS(HEDDLE_REGISTER_METHOD)
    rb_define_method(class, "receive", datagram_receive, 0);
    rb_define_method(class, "send", datagram_send, 2);

    peer_class = heddle_define_class(class, "Peer", NULL);
    rb_define_singleton_method(peer_class, "new", peer_new, 2);
    rb_define_method(peer_class, "address_bytes", peer_address_bytes, 0);
    rb_define_method(peer_class, "address", peer_address, 0);
    rb_define_method(peer_class, "port", peer_port, 0);
}
