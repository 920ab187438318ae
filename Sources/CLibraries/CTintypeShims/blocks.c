// SPDX-License-Identifier: Apache-2.0

#include "CTintypeShims.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
// The address sanitizer would not detect a use of a cached block.
#define KEEPS_NOTHING
#endif
#endif

#define SLOTS 4

// The cache is small, because it serves only programs that decode one large image after another.
static const size_t limit = 64 << 20;

typedef struct block {
    void *start;
    size_t size;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// The oldest first.
static block kept[SLOTS];
static int kept_count = 0;
static size_t kept_size = 0;
static int pause_count = 0;

// The caller must hold the lock.
static block remove_at(int index) {
    block removed = kept[index];
    kept_count--;
    kept_size -= removed.size;
    memmove(&kept[index], &kept[index + 1], (size_t)(kept_count - index) * sizeof(block));
    return removed;
}

void *cshims_take_block(size_t size, size_t *actual) {
    block found = {NULL, 0};
    pthread_mutex_lock(&lock);
    for (int index = kept_count - 1; index >= 0 && pause_count == 0; index--) {
        if (kept[index].size < size || kept[index].size - size > size / 4) continue;
        found = remove_at(index);
        break;
    }
    pthread_mutex_unlock(&lock);
    *actual = found.size;
    return found.start;
}

int cshims_keep_block(void *start, size_t size) {
#ifdef KEEPS_NOTHING
    (void)start;
    (void)size;
    return 0;
#else
    // A memory limit means that address space is scarce, so do not cache blocks.
    if (size > limit || cshims_has_memory_limit()) return 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (madvise(start, size / page * page, MADV_FREE) != 0) return 0;
    block dropped[SLOTS];
    int dropped_count = 0;
    pthread_mutex_lock(&lock);
    bool keeps = pause_count == 0;
    while (keeps && kept_count > 0 && (kept_count == SLOTS || kept_size + size > limit)) {
        dropped[dropped_count++] = remove_at(0);
    }
    if (keeps) {
        kept[kept_count++] = (block){start, size};
        kept_size += size;
    }
    pthread_mutex_unlock(&lock);
    for (int index = 0; index < dropped_count; index++) free(dropped[index].start);
    return keeps;
#endif
}

void cshims_drop_blocks(void) {
    block dropped[SLOTS];
    int dropped_count = 0;
    pthread_mutex_lock(&lock);
    while (kept_count > 0) dropped[dropped_count++] = remove_at(0);
    pthread_mutex_unlock(&lock);
    for (int index = 0; index < dropped_count; index++) free(dropped[index].start);
}

void cshims_pause_blocks(int change) {
    pthread_mutex_lock(&lock);
    pause_count += change;
    pthread_mutex_unlock(&lock);
}
