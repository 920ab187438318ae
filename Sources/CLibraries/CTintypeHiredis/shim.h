// SPDX-License-Identifier: Apache-2.0

#ifndef CHIREDIS_SHIM_H
#define CHIREDIS_SHIM_H

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <string.h>

/// Refuses replies that hiredis would answer with `assert`, which ends the process: a reply that no command has asked
/// for, and a message of a channel with elements of wrong types. Also refuses replies with more elements or bytes than
/// any reply has, for which hiredis would allocate and visit gigabytes.
///
/// hiredis calls these functions while it parses. A refused reply fails the connection.
typedef struct {
    redisAsyncContext *context;
    const redisReplyObjectFunctions *original;
    redisReplyObjectFunctions functions;
    /// The elements and the bytes of the reply so far.
    size_t elements;
    size_t bytes;
    /// Whether a reply was refused.
    int refused;
    /// Whether it was refused for its size.
    int isTooLarge;
} chiredis_guard;

enum {
    CHIREDIS_MOST_ELEMENTS = 1 << 20,
    CHIREDIS_MOST_BYTES = 128 << 20,
};

/// Counts a part of a reply, and returns whether the reply is small enough so far.
static inline int chiredis_count(const redisReadTask *task, size_t elements, size_t bytes) {
    chiredis_guard *guard = task->privdata;
    if (task->parent == NULL) guard->elements = guard->bytes = 0;
    guard->elements += elements;
    guard->bytes += bytes;
    if (guard->elements <= CHIREDIS_MOST_ELEMENTS && guard->bytes <= CHIREDIS_MOST_BYTES) return 1;
    guard->refused = guard->isTooLarge = 1;
    return 0;
}

/// Whether hiredis can handle the object of `type` that it has just parsed.
static inline int chiredis_admits(const redisReadTask *task, int type, int elements) {
    chiredis_guard *guard = task->privdata;
    const redisAsyncContext *context = guard->context;
    // The reply belongs to a command.
    if (context->replies.head != NULL) return 1;
    int admits = 1;
    if (task->parent == NULL) {
        int isMessage = (context->c.flags & REDIS_SUBSCRIBED) && type == REDIS_REPLY_ARRAY && elements >= 3;
        // hiredis reports an error that no command has caused, and closes the connection.
        admits = isMessage || type == REDIS_REPLY_ERROR;
    } else if (task->parent->parent == NULL && task->idx < 2) {
        admits = type == REDIS_REPLY_STRING;
    } else if (task->parent->parent == NULL && task->idx == 2 && type != REDIS_REPLY_INTEGER) {
        const redisReply *message = task->parent->obj;
        admits = strstr(message->element[0]->str, "message") != NULL;
    }
    if (!admits) guard->refused = 1;
    return admits;
}

static inline void *chiredis_create_string(const redisReadTask *task, char *text, size_t length) {
    const chiredis_guard *guard = task->privdata;
    if (!chiredis_count(task, 0, length)) return NULL;
    return chiredis_admits(task, task->type, 0) ? guard->original->createString(task, text, length) : NULL;
}

static inline void *chiredis_create_array(const redisReadTask *task, int elements) {
    const chiredis_guard *guard = task->privdata;
    if (!chiredis_count(task, elements > 0 ? (size_t)elements : 0, 0)) return NULL;
    return chiredis_admits(task, REDIS_REPLY_ARRAY, elements) ? guard->original->createArray(task, elements) : NULL;
}

static inline void *chiredis_create_integer(const redisReadTask *task, long long value) {
    const chiredis_guard *guard = task->privdata;
    return chiredis_admits(task, REDIS_REPLY_INTEGER, 0) ? guard->original->createInteger(task, value) : NULL;
}

static inline void *chiredis_create_nil(const redisReadTask *task) {
    const chiredis_guard *guard = task->privdata;
    return chiredis_admits(task, REDIS_REPLY_NIL, 0) ? guard->original->createNil(task) : NULL;
}

/// Lets `guard` check the replies of `context`. The guard must outlive the context.
static inline void chiredis_install(chiredis_guard *guard, redisAsyncContext *context) {
    redisReader *reader = context->c.reader;
    guard->context = context;
    guard->original = reader->fn;
    guard->functions = *reader->fn;
    guard->functions.createString = chiredis_create_string;
    guard->functions.createArray = chiredis_create_array;
    guard->functions.createInteger = chiredis_create_integer;
    guard->functions.createNil = chiredis_create_nil;
    guard->refused = guard->isTooLarge = 0;
    reader->fn = &guard->functions;
    reader->privdata = guard;
}

/// Whether the incomplete part of a reply is a line of more than `limit` bytes. hiredis searches all of it for its end
/// whenever bytes arrive.
static inline int chiredis_has_endless_line(const redisAsyncContext *context, size_t limit) {
    const redisReader *reader = context->c.reader;
    if (reader->ridx < 0 || reader->len - reader->pos <= limit) return 0;
    // A text follows a line with its length.
    int isText = reader->rstack[reader->ridx].type == REDIS_REPLY_STRING;
    return !isText || memchr(reader->buf + reader->pos, '\n', 64) == NULL;
}

/// Returns the number of bytes that the context has not written to its socket.
static inline size_t chiredis_unwritten(const redisAsyncContext *context) {
    return sdslen(context->c.obuf);
}

#endif
