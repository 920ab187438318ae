#ifndef CCRYPTO_SHIM_H
#define CCRYPTO_SHIM_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Whether both ends have agreed on HTTP/2.
static inline int ccrypto_speaks_http2(const void *ssl) {
    const unsigned char *name = NULL;
    unsigned length = 0;
    SSL_get0_alpn_selected((const SSL *)ssl, &name, &length);
    return length == 2 && memcmp(name, "h2", 2) == 0;
}

// Whether bytes of a record are here that were not read, as they are or not yet decrypted.
static inline int ccrypto_has_pending(const void *ssl) {
    return SSL_has_pending((const SSL *)ssl);
}

/// What bounds the bytes that a TLS connection reads in one turn of the loop that drives it.
struct ccrypto_read_share {
    /// The number of the turn; outlives the connection.
    const uint64_t *turn;
    uint64_t seen;
    size_t count;
    size_t limit;
    /// Whether the end of the connection is an error where no close alert came before.
    int requires_alert;
};

static inline long ccrypto_share_callback(
    BIO *bio, int operation, const char *data, size_t size, int argument, long more, int result, size_t *processed) {
    (void)data, (void)size, (void)argument, (void)more;
    struct ccrypto_read_share *share = (struct ccrypto_read_share *)(void *)BIO_get_callback_arg(bio);
    switch (operation) {
    case BIO_CB_READ:
        if (share->seen != *share->turn) {
            share->seen = *share->turn;
            share->count = 0;
        }
        if (share->count < share->limit) return result;
        // As if nothing had come: the socket stays readable, and the next turn goes on.
        BIO_clear_retry_flags(bio);
        BIO_set_retry_read(bio);
        return -1;
    case BIO_CB_READ | BIO_CB_RETURN:
        if (result > 0 && processed) share->count += *processed;
        // After an alert nothing is read. libcurl passes the end on as that of the data, whatever OpenSSL's option is.
        if (result == 0 && share->requires_alert && !BIO_should_retry(bio)) {
            ERR_raise(ERR_LIB_SSL, SSL_R_UNEXPECTED_EOF_WHILE_READING);
            return -1;
        }
        return result;
    case BIO_CB_FREE: free(share); return result;
    default: return result;
    }
}

/// Lets a connection read at most about `limit` bytes while `turn` has one value; does nothing the second time.
///
/// Its library may read frame after frame in one call for as long as the peer sends. Unless HTTP/2 is spoken, whose
/// frames say where a body ends, the end of the connection is an error where no close alert came before.
static inline void ccrypto_limit_reads(const void *ssl, const uint64_t *turn, size_t limit) {
    BIO *bio = SSL_get_rbio((const SSL *)ssl);
    if (!bio || BIO_get_callback_ex(bio)) return;
    struct ccrypto_read_share *share = (struct ccrypto_read_share *)calloc(1, sizeof(*share));
    if (!share) return;
    share->turn = turn;
    share->limit = limit;
    share->requires_alert = !ccrypto_speaks_http2(ssl);
    BIO_set_callback_arg(bio, (char *)share);
    BIO_set_callback_ex(bio, ccrypto_share_callback);
}
#endif
