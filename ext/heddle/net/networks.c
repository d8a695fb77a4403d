#include "binding.h"
#include "net/networks.h"

/* IPv4 networks are stored as IPv4-mapped IPv6 networks (RFC 4291, 2.5.5.2), so that one list serves both. */
typedef struct {
    uint8_t bytes[16];
    uint8_t bits; /* the length of the prefix, 0 to 128 */
} heddle_network;

typedef struct {
    bool local; /* the set contains the clients of Unix sockets */
    size_t count;
    heddle_network *networks;
} heddle_networks;

static bool have_same_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(a, b, whole) != 0)
        return false;
    return rest == 0 || ((a[whole] ^ b[whole]) & (uint8_t)(0xFF << (8 - rest))) == 0;
}

static bool contains_address(const heddle_networks *networks, const heddle_address *address)
{
    uint8_t bytes[16] = {[10] = 0xFF, [11] = 0xFF};
    if (address->family == AF_UNIX)
        return networks->local;
    if (address->family == AF_INET)
        memcpy(bytes + 12, address->bytes, 4);
    else if (address->family == AF_INET6)
        memcpy(bytes, address->bytes, 16);
    else
        return false;
    for (size_t i = 0; i < networks->count; i++) {
        if (have_same_prefix(networks->networks[i].bytes, bytes, networks->networks[i].bits))
            return true;
    }
    return false;
}

/* -- Heddle::Net::Networks --------------------------------------------------------------------------------------- */

static void networks_free(void *data)
{
    heddle_networks *networks = data;
    xfree(networks->networks);
    xfree(networks);
}

const rb_data_type_t heddle_networks_type =
    HEDDLE_TYPE("Heddle::Net::Networks", RUBY_TYPED_WB_PROTECTED | RUBY_TYPED_FROZEN_SHAREABLE, .dfree = networks_free);

HEDDLE_ALLOCATE(networks_allocate, heddle_networks, heddle_networks_type)

HEDDLE_RECORD_OF(networks_of, heddle_networks, heddle_networks_type)

/* Called by Networks.new. Each pair has the address as 4 or 16 bytes, and the length of the prefix in bits. */
static VALUE networks_set_up(VALUE self, VALUE pairs, VALUE local)
{
    heddle_networks *networks = networks_of(self);
    Check_Type(pairs, T_ARRAY);
    rb_check_frozen(self);
    networks->local = RTEST(local);
    networks->networks = ALLOC_N(heddle_network, RARRAY_LEN(pairs) ? RARRAY_LEN(pairs) : 1);
    for (long i = 0; i < RARRAY_LEN(pairs); i++) {
        VALUE pair = RARRAY_AREF(pairs, i), bytes = rb_ary_entry(pair, 0);
        unsigned bits = NUM2UINT(rb_ary_entry(pair, 1));
        heddle_network network = {.bytes = {[10] = 0xFF, [11] = 0xFF}};
        Check_Type(bytes, T_STRING);
        long size = RSTRING_LEN(bytes);
        if ((size != 4 && size != 16) || bits > 8 * (unsigned)size)
            rb_raise(rb_eArgError,
                     "an address of %ld bytes with a prefix of %u bits is invalid: use 4 bytes with up to 32 bits, "
                     "or 16 bytes with up to 128 bits",
                     size, bits);
        memcpy(network.bytes + (16 - size), RSTRING_PTR(bytes), (size_t)size);
        network.bits = (uint8_t)(bits + 128 - 8 * (unsigned)size);
        networks->networks[networks->count++] = network;
    }
    return rb_obj_freeze(self);
}

bool heddle_networks_include(VALUE networks, const heddle_address *address)
{
    return !NIL_P(networks) && contains_address(RTYPEDDATA_GET_DATA(networks), address);
}

/* Called by Networks#include? with an address of 4 or 16 bytes, or nil for a Unix socket. */
static VALUE networks_have(VALUE self, VALUE bytes)
{
    heddle_address address = {.family = AF_UNIX};
    if (!NIL_P(bytes)) {
        Check_Type(bytes, T_STRING);
        address.family = RSTRING_LEN(bytes) == 4 ? AF_INET : AF_INET6;
        memcpy(address.bytes, RSTRING_PTR(bytes), RSTRING_LEN(bytes) == 4 ? 4 : RSTRING_LEN(bytes) == 16 ? 16 : 0);
    }
    return contains_address(networks_of(self), &address) ? Qtrue : Qfalse;
}

void Init_heddle_networks(VALUE net)
{
    VALUE networks_class = heddle_define_class(net, "Networks", networks_allocate);
    rb_define_private_method(networks_class, "set_up", networks_set_up, 2);
    rb_define_private_method(networks_class, "have?", networks_have, 1);
}
