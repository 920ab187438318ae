// SPDX-License-Identifier: Apache-2.0

#if WebP
#include "CTintypeWebPSteps.h"

#include <pthread.h>

// Copied from libwebp's src/utils/thread_utils.h, which is exported but not installed. It is the same since 0.4.1
// (2014).
typedef struct {
    void *impl;
    int status;
    int (*hook)(void *, void *);
    void *data1;
    void *data2;
    int had_error;
} WebPWorker;

typedef struct {
    void (*Init)(WebPWorker *worker);
    int (*Reset)(WebPWorker *worker);
    int (*Sync)(WebPWorker *worker);
    void (*Launch)(WebPWorker *worker);
    void (*Execute)(WebPWorker *worker);
    void (*End)(WebPWorker *worker);
} WebPWorkerInterface;

enum { WORKER_NOT_OK = 0, WORKER_OK = 1 };

// Weak, so that the module links with a libwebp that hides these functions. In that case, steps are unavailable.
extern int WebPSetWorkerInterface(const WebPWorkerInterface *interface) __attribute__((weak));
extern const WebPWorkerInterface *WebPGetWorkerInterface(void) __attribute__((weak));

typedef struct {
    int (*go_on)(void *);
    void *context;
} Asking;

// The previous interface. Written once, before the new interface is visible.
static WebPWorkerInterface original;
static pthread_once_t installed = PTHREAD_ONCE_INIT;
// The decode on this thread, or NULL for a decode by other code.
static _Thread_local const Asking *asking;

static int reset(WebPWorker *worker) {
    if (!asking) return original.Reset(worker);
    worker->status = WORKER_OK;
    worker->had_error = 0;
    return 1;
}

static int sync_job(WebPWorker *worker) {
    if (!asking) return original.Sync(worker);
    return !worker->had_error && asking->go_on(asking->context);
}

static void execute(WebPWorker *worker) {
    if (!asking) return original.Execute(worker);
    if (worker->hook) worker->had_error |= !worker->hook(worker->data1, worker->data2);
}

static void launch(WebPWorker *worker) {
    if (!asking) return original.Launch(worker);
    execute(worker);
}

static void end(WebPWorker *worker) {
    // A worker that runs on the calling thread has no thread to end.
    if (!worker->impl) worker->status = WORKER_NOT_OK;
    original.End(worker);
}

// Each function works together with the previous ones, because a decode that is running now may call both.
static void install(void) {
    original = *WebPGetWorkerInterface();
    WebPWorkerInterface interface = original;
    interface.Reset = reset;
    interface.Sync = sync_job;
    interface.Launch = launch;
    interface.Execute = execute;
    interface.End = end;
    WebPSetWorkerInterface(&interface);
}

int cwebpsteps_are_available(void) {
    if (!WebPSetWorkerInterface || !WebPGetWorkerInterface) return 0;
    pthread_once(&installed, install);
    const WebPWorkerInterface *interface = WebPGetWorkerInterface();
    return interface->Sync == sync_job && interface->Launch == launch && interface->Reset == reset;
}

VP8StatusCode cwebpsteps_update(
    WebPIDecoder *decoder, const uint8_t *bytes, size_t count, int (*go_on)(void *), void *context) {
    const Asking now = {go_on, context};
    const Asking *before = asking;
    asking = &now;
    VP8StatusCode status = WebPIUpdate(decoder, bytes, count);
    asking = before;
    return status;
}
#endif
