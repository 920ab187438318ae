#include "CTintypeWebPSteps.h"

#include <pthread.h>

// From libwebp's src/utils/thread_utils.h, which is exported but not installed; the same from 0.4.1 (2014) on.
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

// Weak: a libwebp that hides them still links, and then there are no steps.
extern int WebPSetWorkerInterface(const WebPWorkerInterface *interface) __attribute__((weak));
extern const WebPWorkerInterface *WebPGetWorkerInterface(void) __attribute__((weak));

typedef struct {
    int (*go_on)(void *);
    void *context;
} Asking;

// What was there before; written once, before the new interface can be met.
static WebPWorkerInterface original;
static pthread_once_t installed = PTHREAD_ONCE_INIT;
// The decode that runs on this thread; others' decodes have none.
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
    // One that runs on the calling thread has nothing to be ended.
    if (!worker->impl) worker->status = WORKER_NOT_OK;
    original.End(worker);
}

// Each member of the interface is good beside the ones that were there before, so that a decode which runs meanwhile
// may meet both.
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
