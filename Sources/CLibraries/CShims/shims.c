#include "CShims.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>

int cshims_eventfd(void) {
    return eventfd(0, EFD_CLOEXEC);
}

void cshims_set_thread_name(const char *name) {
    char truncated[16] = {0};
    strncpy(truncated, name, sizeof(truncated) - 1);
    pthread_setname_np(pthread_self(), truncated);
}

unsigned cshims_thread_number(void) {
    static _Atomic unsigned last;
    static _Thread_local unsigned number;
    if (number == 0) number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return number;
}
