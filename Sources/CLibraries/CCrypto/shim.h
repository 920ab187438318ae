#ifndef CCRYPTO_SHIM_H
#define CCRYPTO_SHIM_H

#include <openssl/sha.h>
#include <openssl/ssl.h>
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

#endif
