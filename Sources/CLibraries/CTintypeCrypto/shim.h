// SPDX-License-Identifier: Apache-2.0

#ifndef CCRYPTO_SHIM_H
#define CCRYPTO_SHIM_H

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

// Whether the two peers have agreed on HTTP/2.
static inline int ccrypto_speaks_http2(const void *ssl) {
    const unsigned char *name = NULL;
    unsigned length = 0;
    SSL_get0_alpn_selected((const SSL *)ssl, &name, &length);
    return length == 2 && memcmp(name, "h2", 2) == 0;
}

// Whether the connection holds unread bytes of a record, decrypted or not.
static inline int ccrypto_has_pending(const void *ssl) {
    return SSL_has_pending((const SSL *)ssl);
}

/// A limit on the bytes that a TLS connection reads in one turn of the event loop that drives it.
struct ccrypto_read_share {
    /// The number of the turn. It must outlive the connection.
    const uint64_t *turn;
    uint64_t seen;
    size_t count;
    size_t limit;
    /// Whether the end of the connection is an error if no close alert came first.
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
        // Pretend that no data has arrived. The socket stays readable, so the next turn continues.
        BIO_clear_retry_flags(bio);
        BIO_set_retry_read(bio);
        return -1;
    case BIO_CB_READ | BIO_CB_RETURN:
        if (result > 0 && processed) share->count += *processed;
        // OpenSSL reads nothing after an alert, so no alert came. libcurl would report this end as the normal end of
        // the data, whatever OpenSSL's option says.
        if (result == 0 && share->requires_alert && !BIO_should_retry(bio)) {
            ERR_raise(ERR_LIB_SSL, SSL_R_UNEXPECTED_EOF_WHILE_READING);
            return -1;
        }
        return result;
    case BIO_CB_FREE: free(share); return result;
    default: return result;
    }
}

/// Limits a connection to about `limit` bytes for each value of `turn`. A second call does nothing.
///
/// Without the limit, libcurl can read frame after frame in one call for as long as the peer sends. Unless the peers
/// speak HTTP/2, whose frames mark the end of a body, the end of the connection is an error if no close alert came
/// first.
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

// MARK: Views that show the data of a TLS connection before its user reads it

enum { CCRYPTO_KEPT_SESSIONS = 4 };

/// A layer between OpenSSL and the BIO of the connection's user. The user reads only bytes that `ccrypto_look` has
/// seen.
struct ccrypto_view {
    int descriptor;
    /// Whether `ccrypto_look` is running. The user's BIO works only within the user's own calls, so it must not be
    /// called now.
    int is_looking;
    /// Whether no more data can come. The user's BIO reports how the connection ended.
    int has_ended;
    // The limit of one turn, as in `ccrypto_read_share`.
    const uint64_t *turn;
    uint64_t seen;
    size_t count;
    size_t limit;
    SSL *ssl;
    /// Stores a session for the user. Like the user's BIO, it works only within the user's own calls.
    int (*store)(SSL *, SSL_SESSION *);
    SSL_SESSION *sessions[CCRYPTO_KEPT_SESSIONS];
    int session_count;
};

/// Passes the sessions that arrived during a look to the user.
static inline void ccrypto_view_store_sessions(struct ccrypto_view *view) {
    while (view->session_count > 0) {
        SSL_SESSION *session = view->sessions[--view->session_count];
        if (!view->store(view->ssl, session)) SSL_SESSION_free(session);
    }
}

static inline int ccrypto_view_receive(struct ccrypto_view *view, char *bytes, int size) {
    if (view->seen != *view->turn) {
        view->seen = *view->turn;
        view->count = 0;
    }
    if (view->count >= view->limit) return 0;
    ssize_t count = recv(view->descriptor, bytes, (size_t)size, MSG_DONTWAIT);
    if (count > 0) {
        view->count += (size_t)count;
        return (int)count;
    }
    view->has_ended = count == 0 || (errno != EAGAIN && errno != EINTR);
    return 0;
}

static inline int ccrypto_view_read(BIO *bio, char *bytes, int size) {
    struct ccrypto_view *view = (struct ccrypto_view *)BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (view->is_looking) {
        int count = view->has_ended ? 0 : ccrypto_view_receive(view, bytes, size);
        if (count > 0) return count;
    } else {
        ccrypto_view_store_sessions(view);
        if (view->has_ended) {
            int result = BIO_read(BIO_next(bio), bytes, size);
            BIO_copy_next_retry(bio);
            return result;
        }
    }
    // Pretend that no data has arrived. The socket stays readable, so the next look continues.
    BIO_set_retry_read(bio);
    return -1;
}

static inline int ccrypto_view_write(BIO *bio, const char *bytes, int size) {
    struct ccrypto_view *view = (struct ccrypto_view *)BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (!view->is_looking) {
        ccrypto_view_store_sessions(view);
        int result = BIO_write(BIO_next(bio), bytes, size);
        BIO_copy_next_retry(bio);
        return result;
    }
    // OpenSSL responds to an alert or a change of keys.
    ssize_t count = send(view->descriptor, bytes, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
    return (int)count;
}

static inline long ccrypto_view_control(BIO *bio, int command, long number, void *pointer) {
    return BIO_ctrl(BIO_next(bio), command, number, pointer);
}

static inline int ccrypto_view_destroy(BIO *bio) {
    struct ccrypto_view *view = (struct ccrypto_view *)BIO_get_data(bio);
    if (view) {
        while (view->session_count > 0) SSL_SESSION_free(view->sessions[--view->session_count]);
        free(view);
    }
    BIO_set_data(bio, NULL);
    return 1;
}

/// Returns the methods of a view, which all views can share, or NULL if memory runs out.
static inline BIO_METHOD *ccrypto_make_view_method(void) {
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_FILTER, "tintype view");
    if (!method) return NULL;
    BIO_meth_set_read(method, ccrypto_view_read);
    BIO_meth_set_write(method, ccrypto_view_write);
    BIO_meth_set_ctrl(method, ccrypto_view_control);
    BIO_meth_set_destroy(method, ccrypto_view_destroy);
    return method;
}

static inline int ccrypto_view_keep_session(SSL *ssl, SSL_SESSION *session) {
    BIO *bio = SSL_get_rbio(ssl);
    if (!bio || strcmp(BIO_method_name(bio), "tintype view") != 0) return 0;
    struct ccrypto_view *view = (struct ccrypto_view *)BIO_get_data(bio);
    if (!view->store) return 0;
    if (!view->is_looking) return view->store(ssl, session);
    if (view->session_count == CCRYPTO_KEPT_SESSIONS) return 0;
    view->sessions[view->session_count++] = session;
    return 1;
}

/// Puts a view on a connection, so that the user can read only data that `ccrypto_look` has seen.
///
/// `descriptor` must be the socket directly below TLS, with no other layer between them. Returns a view that lives
/// until the connection is freed, or NULL if memory runs out.
static inline struct ccrypto_view *ccrypto_view_connection(
    void *tls, int descriptor, const void *method, const uint64_t *turn, size_t limit) {
    SSL *ssl = (SSL *)tls;
    BIO *below = SSL_get_rbio(ssl);
    struct ccrypto_view *view = (struct ccrypto_view *)calloc(1, sizeof(*view));
    BIO *bio = view && below ? BIO_new((const BIO_METHOD *)method) : NULL;
    if (!bio) {
        free(view);
        return NULL;
    }
    view->descriptor = descriptor;
    view->turn = turn;
    view->limit = limit;
    view->ssl = ssl;
    // libcurl creates a separate context for each connection.
    SSL_CTX *context = SSL_get_SSL_CTX(ssl);
    view->store = SSL_CTX_sess_get_new_cb(context);
    if (view->store == ccrypto_view_keep_session) view->store = NULL;
    if (view->store) SSL_CTX_sess_set_new_cb(context, ccrypto_view_keep_session);
    BIO_set_data(bio, view);
    BIO_set_init(bio, 1);
    BIO_up_ref(below);
    BIO_push(bio, below);
    SSL_set_bio(ssl, bio, bio);
    return view;
}

/// Copies up to `size` bytes of the next record's plaintext. The bytes stay unread for the connection's user.
///
/// Returns the number of bytes, or 0 if no record has arrived or the previous one is still unread.
static inline int ccrypto_look(struct ccrypto_view *view, void *bytes, int size) {
    if (SSL_pending(view->ssl) > 0) return 0;
    view->is_looking = 1;
    int count = SSL_peek(view->ssl, bytes, size);
    view->is_looking = 0;
    // The user will meet the same error. Clear this one, so that OpenSSL does not report it for another connection.
    ERR_clear_error();
    return count > 0 ? count : 0;
}

/// Returns the number of decrypted bytes of a record that are still unread.
static inline int ccrypto_pending(const struct ccrypto_view *view) {
    return SSL_pending(view->ssl);
}
#endif
