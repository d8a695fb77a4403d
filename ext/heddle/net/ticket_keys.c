/*
 * Heddle::Net::TLS::TicketKeys: the keys that encrypt TLS session tickets. All processes of a server share them, so a
 * client can resume its session with any worker.
 */

#include "net/net.h"

#include "binding.h"
#include "net/shared_memory.h"
#include "net/tls.h"
#include "selector/clock.h"

#include <fcntl.h>
#include <sys/mman.h>

/* -- the library ------------------------------------------------------------------------------------------------- */

/* The layout of OSSL_PARAM in openssl/core.h, and constants of openssl/params.h, from OpenSSL 3.0 on. */
typedef struct {
    const char *key;
    unsigned int type;
    void *data;
    size_t size, returned;
} parameter;

enum {
    UTF8_STRING = 4,
    OCTET_STRING = 5,
};

typedef int ticket_callback(void *ssl, unsigned char *name, unsigned char *iv, void *cipher, void *mac, int sealing);

/* The arguments are a context, a cipher, an engine, a key and an initialization vector. */
#define CIPHER_ARGUMENTS (void *, const void *, void *, const unsigned char *, const unsigned char *)
#define FUNCTIONS(X)                                                                                                   \
    X("SSL_CTX_set_tlsext_ticket_key_evp_cb", set_callback, int, (void *context, ticket_callback *callback))           \
    X("RAND_bytes", random, int, (unsigned char *bytes, int size))                                                     \
    X("EVP_aes_256_cbc", aes_256_cbc, const void *, (void))                                                            \
    X("EVP_EncryptInit_ex", encrypt, int, CIPHER_ARGUMENTS)                                                            \
    X("EVP_DecryptInit_ex", decrypt, int, CIPHER_ARGUMENTS)                                                            \
    X("EVP_MAC_CTX_set_params", set_mac, int, (void *mac, const parameter *parameters))
HEDDLE_TLS_LIBRARY(FUNCTIONS);

static bool load_functions(void)
{
    const heddle_tls_entry functions[] = {FUNCTIONS(HEDDLE_TLS_ENTRY)};
    static int found = -1;
    if (found < 0) /* 0: OpenSSL before 3, or another library; each context then has its own keys */
        found = !heddle_tls_find_functions(functions, sizeof(functions) / sizeof(*functions));
    return found == 1;
}

/* -- the ring of keys ---------------------------------------------------------------------------------------------- */

enum {
    KEY_LIFE = 3600, /* seconds until the next key is made */
    SLOTS = 4,
    /* the number of newest keys that are used; the remaining slot is written next, so readers need no lock */
    VALID = SLOTS - 1,
    NAME = 16,
    IV = 16,
};

typedef struct {
    unsigned char name[NAME], cipher[32], mac[32];
} ticket_key;

typedef struct {
    uint64_t magic;
    _Atomic uint64_t count;  /* the number of keys made so far */
    _Atomic int64_t renewed; /* when the newest key was made: CLOCK_MONOTONIC in seconds */
    ticket_key keys[SLOTS];
} ticket_ring;

static const uint64_t MAGIC = UINT64_C(0x6865646474696301); /* "heddtic", and a version */

static heddle_shared_memory memory = {.fd = -1};
static ticket_ring *ring; /* in the shared memory */
static pid_t owner; /* the process that renews the keys */

static void set_memory(void)
{
#ifdef MADV_DONTDUMP
    madvise(memory.start, memory.size, MADV_DONTDUMP);
#endif
    ring = memory.start;
    owner = getpid();
}

/* Makes the next key. Returns 0. Changes nothing and returns -EIO if no random bytes are available. */
static int make_key(void)
{
    uint64_t count = atomic_load(&ring->count);
    if (library.random((unsigned char *)&ring->keys[count % SLOTS], sizeof(ticket_key)) != 1)
        return -EIO;
    atomic_store(&ring->count, count + 1);
    return 0;
}

static int create_keys(void)
{
    int result = heddle_shared_memory_create(&memory, "heddle-tickets", sizeof(*ring));
    if (result < 0)
        return result;
    set_memory();
    ring->magic = MAGIC;
    return 0;
}

/*
 * Makes the ring and the first key, unless they exist already. Returns 0 or -errno. After an error the ring may exist
 * without a key.
 */
static int ensure_key(void)
{
    int result = ring ? 0 : create_keys();
    if (result < 0 || atomic_load(&ring->count))
        return result;
    result = make_key();
    if (result == 0)
        atomic_store(&ring->renewed, heddle_clock_now() / HEDDLE_SECOND);
    return result;
}

/*
 * Returns the newest key, or NULL if there is none. A slot that was never written is all zeros and must not be used as
 * a key.
 */
static const ticket_key *find_newest_key(void)
{
    uint64_t count = atomic_load(&ring->count);
    return count ? &ring->keys[(count - 1) % SLOTS] : NULL;
}

static const ticket_key *find_key(const unsigned char *name)
{
    uint64_t count = atomic_load(&ring->count);
    for (uint64_t i = 0; i < VALID && i < count; i++) {
        const ticket_key *key = &ring->keys[(count - 1 - i) % SLOTS];
        if (memcmp(key->name, name, NAME) == 0)
            return key;
    }
    return NULL;
}

/* -- a ticket ---------------------------------------------------------------------------------------------------- */

static int set_mac_key(void *mac, const ticket_key *key)
{
    char digest[] = "SHA256";
    unsigned char secret[sizeof(key->mac)];
    memcpy(secret, key->mac, sizeof(secret));
    const parameter parameters[] = {
        {"key", OCTET_STRING, secret, sizeof(secret), 0},
        {"digest", UTF8_STRING, digest, sizeof(digest) - 1, 0},
        {NULL, 0, NULL, 0, 0},
    };
    return library.set_mac(mac, parameters) == 1;
}

/*
 * The callback for SSL_CTX_set_tlsext_ticket_key_evp_cb(3). With `sealing`, prepares the encryption of a ticket, and
 * returns 1 to send the ticket or 0 to send none. Otherwise prepares the decryption of the client's ticket, and returns
 * 1 to accept it, 2 to accept it and also send a new one, or 0 to ignore it, so that a full handshake follows. In both
 * cases returns -1 after an error.
 */
static int handle_ticket(void *ssl, unsigned char *name, unsigned char *iv, void *cipher, void *mac, int sealing)
{
    const ticket_key *key;
    if (sealing) {
        key = find_newest_key();
        if (!key)
            return 0; /* the connection continues without a ticket */
        memcpy(name, key->name, NAME);
        if (library.random(iv, IV) != 1 || library.encrypt(cipher, library.aes_256_cbc(), NULL, key->cipher, iv) != 1 ||
            !set_mac_key(mac, key))
            return -1;
        return 1;
    }
    key = find_key(name);
    if (!key)
        return 0;
    if (library.decrypt(cipher, library.aes_256_cbc(), NULL, key->cipher, iv) != 1 || !set_mac_key(mac, key))
        return -1;
    return key == find_newest_key() ? 1 : 2;
}

/* -- methods of Ruby --------------------------------------------------------------------------------------------- */

/*
 * call-seq: TicketKeys.use(context) -> true or false
 *
 * Makes this SSLContext, which must be set up, encrypt its tickets with the shared keys. Makes the keys if there are
 * none. Returns false if the TLS library does not support this; the context then has its own keys.
 */
static VALUE keys_use(VALUE self, VALUE context)
{
    if (!load_functions())
        return Qfalse;
    int result = ensure_key();
    if (result < 0)
        rb_syserr_fail(-result, "making the keys of session tickets");
    void *native = RTYPEDDATA_GET_DATA(context);
    return native && library.set_callback(native, handle_ticket) == 1 ? Qtrue : Qfalse;
}

/*
 * call-seq: TicketKeys.renew(age = 3600) -> true or false
 *
 * Makes a new key if the newest one is at least +age+ seconds old. Returns true if it has made one. The two keys before
 * the newest one still decrypt their tickets. So a ticket is valid for at least two hours if this is called with the
 * default. Only the process that has made or adopted the keys renews them; in others, this returns false.
 */
static VALUE keys_renew(int argc, VALUE *argv, VALUE self)
{
    int64_t age = rb_check_arity(argc, 0, 1) ? NUM2LL(argv[0]) : KEY_LIFE;
    if (!ring || owner != getpid())
        return Qfalse;
    int64_t renewed = atomic_load(&ring->renewed), now = heddle_clock_now() / HEDDLE_SECOND;
    /* During a restart the old and the new master both use the ring, so this is a compare-and-swap. */
    if (now - renewed < age || !atomic_compare_exchange_strong(&ring->renewed, &renewed, now))
        return Qfalse;
    if (make_key() == 0)
        return Qtrue;
    atomic_store(&ring->renewed, renewed); /* the next call tries again */
    return Qfalse;
}

/*
 * call-seq: TicketKeys.descriptor -> Integer or nil
 *
 * Returns the descriptor of the keys' memory, which is close-on-exec. Returns nil if there are no keys, or if only
 * forked processes can share them.
 */
HEDDLE_DEFINE_METHOD(keys_descriptor, "descriptor", ring && memory.fd >= 0 ? INT2NUM(memory.fd) : Qnil)

/*
 * call-seq: TicketKeys.adopt(descriptor) -> true or false
 *
 * Uses the keys of another process, by the descriptor that .descriptor has returned there, and takes ownership of the
 * descriptor. Returns false if the memory can't be mapped or is of another version, if this TLS library can't use the
 * keys, or if this process already has keys.
 */
static VALUE keys_adopt(VALUE self, VALUE number)
{
    int fd = NUM2INT(number);
    if (ring || !load_functions()) {
        close(fd);
        return Qfalse;
    }
    if (heddle_shared_memory_open(&memory, fd, sizeof(*ring)) < 0)
        return Qfalse;
    if (memory.size != sizeof(*ring) || ((ticket_ring *)memory.start)->magic != MAGIC) {
        heddle_shared_memory_close(&memory);
        return Qfalse;
    }
    set_memory();
    rb_update_max_fd(fd);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return Qtrue;
}

void Init_heddle_ticket_keys(VALUE tls)
{
    VALUE keys = rb_define_module_under(tls, "TicketKeys");
    rb_define_singleton_method(keys, "use", keys_use, 1);
    rb_define_singleton_method(keys, "renew", keys_renew, -1);
    rb_define_singleton_method(keys, "descriptor", keys_descriptor, 0);
    rb_define_singleton_method(keys, "adopt", keys_adopt, 1);
}
