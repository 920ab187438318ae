// SPDX-License-Identifier: Apache-2.0

#include "CTintypeSignals.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>

static volatile char *own_page;
static struct sigaction previous;
static sigjmp_buf before_fault;

static void leave(int number, siginfo_t *info, void *context) {
    if (info->si_addr == own_page) siglongjmp(before_fault, 1);
    previous.sa_sigaction(number, info, context);
}

void csignals_install(void *page) {
    own_page = page;
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = leave;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, &previous);
}

int csignals_fault(void) {
    if (sigsetjmp(before_fault, 1) != 0) return 1;
    *own_page = 1;
    return 0;
}
