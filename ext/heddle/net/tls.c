/* The transport over TLS: see tls.h. */

#include "net/tls.h"

#include "selector/list.h"

#include <dlfcn.h>
#include <limits.h>
#include <sys/socket.h>

/* -- the library ------------------------------------------------------------------------------------------------- */

/* Constants of openssl/ssl.h. The header is not needed to compile Heddle. */
enum {
    ERROR_SSL = 1,
    ERROR_WANT_READ = 2,
    ERROR_WANT_WRITE = 3,
    ERROR_SYSCALL = 5,
    ERROR_ZERO_RETURN = 6,
};

typedef void message_callback(int sent, int version, int type, const void *bytes, size_t size, void *ssl, void *data);

#define FUNCTIONS(X)                                                                                                   \
    X("SSL_read", read, int, (void *ssl, void *memory, int size))                                                      \
    X("SSL_peek", peek, int, (void *ssl, void *memory, int size))                                                      \
    X("SSL_write", write, int, (void *ssl, const void *bytes, int size))                                               \
    X("SSL_pending", pending, int, (const void *ssl))                                                                  \
    X("SSL_shutdown", shutdown, int, (void *ssl))                                                                      \
    X("SSL_get_error", get_error, int, (const void *ssl, int result))                                                  \
    X("SSL_set_read_ahead", set_read_ahead, void, (void *ssl, int on))                                                 \
    X("SSL_set_shutdown", set_shutdown, void, (void *ssl, int mode))                                                   \
    X("SSL_set_msg_callback", set_message_callback, void, (void *ssl, message_callback *callback))                     \
    X("SSL_get_verify_mode", get_verify_mode, int, (const void *ssl))                                                  \
    X("SSL_get_version", get_version, const char *, (const void *ssl))                                                 \
    X("SSL_get0_alpn_selected", get_alpn, void, (const void *ssl, const unsigned char **name, unsigned int *size))     \
    X("ERR_clear_error", clear_error, void, (void))
HEDDLE_TLS_LIBRARY(FUNCTIONS);

static bool loaded;
static void *handle; /* a handle from dlopen; never closed, because Ruby never unloads the library */

void *heddle_tls_function(const char *name)
{
    return dlsym(handle ? handle : RTLD_DEFAULT, name);
}

const char *heddle_tls_find_functions(const heddle_tls_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *function = heddle_tls_function(entries[i].name);
        if (!function)
            return entries[i].name;
        memcpy(entries[i].place, &function, sizeof(function));
    }
    return NULL;
}

const char *heddle_tls_load(const char *path)
{
    const heddle_tls_entry functions[] = {FUNCTIONS(HEDDLE_TLS_ENTRY)};
    if (loaded)
        return NULL;
    /* `path` is NULL if the TLS library is linked into the Ruby executable. */
    if (path && !handle)
        handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    const char *missing = heddle_tls_find_functions(functions, sizeof(functions) / sizeof(*functions));
    loaded = !missing;
    return missing;
}

/* -- the record of a TLS connection -------------------------------------------------------------------------------- */

heddle_tls *heddle_tls_new(heddle_tls **list, VALUE acceptor)
{
    heddle_tls *tls = calloc(1, sizeof(*tls));
    if (!tls)
        return NULL;
    tls->acceptor = acceptor;
    tls->first = list;
    HEDDLE_LIST_ADD(*list, tls);
    return tls;
}

/*
 * The record that counts the messages of this thread's current call of the library; NULL: none. The library gets no
 * pointer to the record, because the record may be freed while the library could still use the pointer: the SSLSocket
 * may exist longer, and a callback of the handshake may close the connection.
 */
static _Thread_local heddle_tls *counting;

/*
 * In bytes: how much memory the library keeps for an ended connection until the garbage collector frees the SSLSocket.
 * The collector is notified of this memory. Otherwise a client that begins one handshake after another could fill the
 * memory before the next collection.
 */
enum {
    LEFT_TO_GC = 16384,
};

void heddle_tls_free(heddle_tls *tls)
{
    if (!tls)
        return;
    if (tls->socket)
        rb_gc_adjust_memory_usage(LEFT_TO_GC);
    if (counting == tls)
        counting = NULL;
    HEDDLE_LIST_REMOVE(*tls->first, tls);
    free(tls->unsent);
    free(tls);
}

void heddle_tls_mark(const heddle_tls *list)
{
    for (const heddle_tls *tls = list; tls; tls = tls->next) {
        rb_gc_mark(tls->acceptor);
        rb_gc_mark(tls->socket); /* if the socket were collected, it would free its SSL, which `ssl` refers to */
    }
}

/* -- limits for a peer's messages -------------------------------------------------------------------------------- */

/*
 * While records contain no data for the application, SSL_read continues to read. A key update costs the peer 27 bytes,
 * and this side some 50 us of CPU time. So a peer is disconnected if it sends many such messages, or sends its part of
 * the handshake byte by byte.
 */
enum {
    /*
     * the maximum number of records of a handshake, or of TLS messages after it; clients update keys only after many GB
     */
    OVERHEAD = 128,
    RECORDS_A_RECV = 64, /* the maximum number of records that one recv reads; a record may contain a single byte */
};

/* Constants of openssl/ssl.h. */
enum {
    RECEIVED_SHUTDOWN = 2,
    RECORD_HEADER = 0x100,
    INNER_TYPE = 0x101,
};

/*
 * Returns whether this is a received record of the handshake or, after the handshake, a message of TLS itself in either
 * direction.
 */
static bool is_overhead(const heddle_tls *tls, int sent, int type)
{
    return tls->ssl ? type != RECORD_HEADER && type != INNER_TYPE : type == RECORD_HEADER && !sent;
}

static void count_message(int sent, int version, int type, const void *bytes, size_t size, void *ssl, void *data)
{
    heddle_tls *tls = counting;
    if (!tls)
        return;
    if (type == RECORD_HEADER && !sent)
        tls->records++;
    if (!is_overhead(tls, sent, type) || tls->overhead++ < OVERHEAD)
        return;
    tls->broken = true;
    library.set_shutdown(ssl, RECEIVED_SHUTDOWN); /* after this the library reads no further record */
}

void heddle_tls_count(heddle_tls *tls)
{
    counting = tls;
}

void heddle_tls_begin_handshake(heddle_tls *tls)
{
    tls->serves = true;
    library.set_message_callback(RTYPEDDATA_GET_DATA(tls->socket), count_message);
}

void heddle_tls_begin(heddle_transport *transport)
{
    heddle_tls *tls = transport->tls;
    tls->ssl = RTYPEDDATA_GET_DATA(tls->socket);
    tls->acceptor = 0;
    tls->overhead = 0;
    if (!tls->serves)
        library.set_message_callback(tls->ssl, count_message);
    tls->asks = library.get_verify_mode(tls->ssl) != 0;
    tls->version = library.get_version(tls->ssl);
    const unsigned char *protocol;
    unsigned int size;
    library.get_alpn(tls->ssl, &protocol, &size);
    tls->chose_h2 = size == 2 && memcmp(protocol, "h2", 2) == 0;
    library.set_read_ahead(tls->ssl, 1); /* reads a record with one system call instead of two */
    transport->operations = &heddle_tls_transport;
}

/* -- reading ----------------------------------------------------------------------------------------------------- */

/* Translates the error of SSL_read. Returns 0 at the end of the input, or -errno. */
static ssize_t translate_read_error(heddle_tls *tls, int result)
{
    int error = errno;
    if (tls->broken) {
        library.clear_error();
        return -EPROTO;
    }
    switch (library.get_error(tls->ssl, result)) {
    case ERROR_WANT_READ:
        return -EAGAIN;
    case ERROR_WANT_WRITE:
        tls->read_wants_room = true;
        return -EAGAIN;
    case ERROR_ZERO_RETURN:
        return 0;
    case ERROR_SYSCALL:
        tls->broken = error != 0;
        return -error; /* `error` is 0 if the peer has left without close_notify, as browsers do */
    default:
        tls->broken = true;
        library.clear_error();
        return -EPROTO;
    }
}

static ssize_t tls_recv(heddle_transport *transport, void *memory, size_t size)
{
    heddle_tls *tls = transport->tls;
    size_t used = 0;
    unsigned records = tls->records;
    if (tls->broken)
        return -ECONNRESET;
    tls->read_wants_room = false;
    tls->paused = false;
    /*
     * SSL_read returns at most one record (16 KiB), so this loop calls it until the memory is full. If the memory is
     * not full in the end, there must be no more bytes, or `paused` must be set.
     */
    while (used < size) {
        if (tls->serves && tls->records - records >= RECORDS_A_RECV && used) {
            tls->paused = true;
            break;
        }
        size_t room = size - used < INT_MAX ? size - used : INT_MAX;
        errno = 0;
        library.clear_error();
        counting = tls;
        int result = library.read(tls->ssl, (char *)memory + used, (int)room);
        counting = NULL;
        if (result > 0) {
            used += (size_t)result;
            continue;
        }
        ssize_t why = translate_read_error(tls, result);
        if (used == 0)
            return why;
        if (why != -EAGAIN)
            heddle_transport_note(transport, HEDDLE_HAS_INPUT); /* the next call of recv reports the error or the end */
        break;
    }
    return (ssize_t)used;
}

ssize_t heddle_tls_peek(heddle_transport *transport)
{
    heddle_tls *tls = transport->tls;
    char byte;
    if (tls->broken)
        return -ECONNRESET;
    tls->read_wants_room = false;
    errno = 0;
    library.clear_error();
    counting = tls;
    int result = library.peek(tls->ssl, &byte, 1);
    counting = NULL;
    return result > 0 ? result : translate_read_error(tls, result);
}

static size_t tls_pending(heddle_transport *transport)
{
    heddle_tls *tls = transport->tls;
    int pending = tls->broken ? 0 : library.pending(tls->ssl);
    return pending > 0 ? (size_t)pending : 0;
}

/* -- writing ----------------------------------------------------------------------------------------------------- */

enum {
    RECORD = 16384, /* the largest record in bytes (RFC 8446, 5.1), which the library sends in one call */
};

/*
 * After EAGAIN the same bytes must be passed to SSL_write again, until it has sent the record that contains them. So
 * this function saves the bytes.
 */
static ssize_t save_unsent_record(heddle_tls *tls, const char *bytes, size_t size)
{
    if (tls->unsent)
        return -EAGAIN;
    tls->unsent = malloc(size);
    if (!tls->unsent)
        return -ENOMEM;
    memcpy(tls->unsent, bytes, size);
    tls->unsent_size = (int)size;
    return -EAGAIN;
}

static ssize_t handle_write_error(heddle_tls *tls, int result, const char *bytes, size_t size)
{
    int error = errno;
    switch (library.get_error(tls->ssl, result)) {
    case ERROR_WANT_READ:
        tls->write_wants_input = true;
        return save_unsent_record(tls, bytes, size);
    case ERROR_WANT_WRITE:
        return save_unsent_record(tls, bytes, size);
    case ERROR_SYSCALL:
        tls->broken = true;
        return error ? -error : -EPIPE;
    default:
        tls->broken = true;
        library.clear_error();
        return -EPROTO;
    }
}

static ssize_t write_record(heddle_tls *tls, const char *bytes, size_t size)
{
    tls->write_wants_input = false;
    if (tls->unsent) {
        /* A record is partly sent. Only the same bytes can continue it. */
        if (size < (size_t)tls->unsent_size || memcmp(bytes, tls->unsent, (size_t)tls->unsent_size) != 0)
            return -EPROTO;
        bytes = tls->unsent;
        size = (size_t)tls->unsent_size;
    }
    errno = 0;
    library.clear_error();
    int result = library.write(tls->ssl, bytes, (int)size);
    if (result <= 0)
        return handle_write_error(tls, result, bytes, size);
    free(tls->unsent);
    tls->unsent = NULL;
    tls->written += (uint64_t)result;
    return result;
}

typedef struct {
    const struct iovec *pieces;
    int count;
    size_t offset; /* offset in the first piece */
} place;

static void advance_position(place *at, size_t bytes)
{
    while (at->count) {
        size_t left = at->pieces->iov_len - at->offset;
        if (bytes < left) {
            at->offset += bytes;
            return;
        }
        bytes -= left;
        at->pieces++;
        at->count--;
        at->offset = 0;
    }
}

/*
 * Returns the bytes of the next record. Short pieces are copied into one record: a record for each piece would cost the
 * peer more than the copy costs here.
 */
static struct iovec gather_record(const place *at)
{
    static _Thread_local char gathered[RECORD];
    place from = *at;
    size_t left = from.pieces->iov_len - from.offset, used = 0;
    if (left >= RECORD || from.count == 1)
        return (struct iovec){(char *)from.pieces->iov_base + from.offset, left < RECORD ? left : RECORD};
    while (from.count && used < RECORD) {
        left = from.pieces->iov_len - from.offset;
        size_t size = left < RECORD - used ? left : RECORD - used;
        memcpy(gathered + used, (char *)from.pieces->iov_base + from.offset, size);
        used += size;
        advance_position(&from, size);
    }
    return (struct iovec){gathered, used};
}

static ssize_t tls_send(heddle_transport *transport, const struct iovec *pieces, int count)
{
    heddle_tls *tls = transport->tls;
    place at = {.pieces = pieces, .count = count};
    ssize_t sent = 0;
    if (tls->broken)
        return -EPIPE;
    /*
     * Continues until the kernel accepts no more. A waiting writer gets only edge-triggered events. So if not all bytes
     * are sent, the kernel's buffer must be full.
     */
    for (advance_position(&at, 0); at.count; ) {
        struct iovec record = gather_record(&at);
        ssize_t result = write_record(tls, record.iov_base, record.iov_len);
        if (result == -EAGAIN)
            return sent ? sent : result;
        if (result < 0)
            return result;
        sent += result;
        advance_position(&at, (size_t)result);
    }
    return sent;
}

/* -- ending ------------------------------------------------------------------------------------------------------ */

void heddle_tls_send_close_notify(heddle_transport *transport)
{
    heddle_tls *tls = transport->tls;
    if (!tls->ssl || tls->broken || tls->unsent || tls->close_notify_sent)
        return;
    tls->close_notify_sent = true;
    library.clear_error();
    if (library.shutdown(tls->ssl) < 0)
        /* the kernel's buffer may be full; a peer that reads nothing does not need close_notify */
        library.clear_error();
}

const heddle_transport_operations heddle_tls_transport = {
    .recv = tls_recv,
    .send = tls_send,
    .pending = tls_pending,
};
