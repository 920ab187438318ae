// SPDX-License-Identifier: Apache-2.0

#include "CTintypeShims.h"

#include <linux/sched.h>
#include <linux/tcp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <stdint.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <stddef.h>

long long cshims_bytes_read(int socket) {
    struct tcp_info info;
    socklen_t size = sizeof(info);
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return -1;
    if (size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received)) return -1;
    int unread = 0;
    if (ioctl(socket, FIONREAD, &unread) != 0) return -1;
    return (long long)info.tcpi_bytes_received - unread;
}

int cshims_eventfd(void) {
    return eventfd(0, EFD_CLOEXEC);
}

void cshims_set_thread_name(const char *name) {
    char truncated[16] = {0};
    strncpy(truncated, name, sizeof(truncated) - 1);
    pthread_setname_np(pthread_self(), truncated);
}

int cshims_epoll_create(void) {
    return epoll_create1(EPOLL_CLOEXEC);
}

static int control(int epoll, int operation, int descriptor, int events) {
    struct epoll_event event = {0};
    event.events = (events & CSHIMS_READABLE ? EPOLLIN : 0) | (events & CSHIMS_WRITABLE ? EPOLLOUT : 0)
        | (events & CSHIMS_ONCE_EACH ? EPOLLET : 0) | (events & CSHIMS_PEER_DONE ? EPOLLRDHUP : 0);
    event.data.fd = descriptor;
    return epoll_ctl(epoll, operation, descriptor, &event);
}

int cshims_epoll_add(int epoll, int descriptor, int events) {
    return control(epoll, EPOLL_CTL_ADD, descriptor, events);
}

int cshims_epoll_set(int epoll, int descriptor, int events) {
    if (events == 0) return epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, NULL);
    if (control(epoll, EPOLL_CTL_MOD, descriptor, events) == 0) return 0;
    return errno == ENOENT ? cshims_epoll_add(epoll, descriptor, events) : -1;
}

int cshims_epoll_wait(int epoll, cshims_event *events, int capacity, int milliseconds) {
    struct epoll_event ready[256];
    int count = epoll_wait(epoll, ready, capacity < 256 ? capacity : 256, milliseconds);
    // The signal that continues a stopped process ends the wait, too. Sockets may have become ready meanwhile.
    if (count < 0 && errno == EINTR) count = epoll_wait(epoll, ready, capacity < 256 ? capacity : 256, 0);
    if (count < 0) return errno == EINTR ? 0 : -1;
    for (int i = 0; i < count; i++) {
        events[i].descriptor = ready[i].data.fd;
        events[i].events = (ready[i].events & EPOLLIN ? CSHIMS_READABLE : 0)
            | (ready[i].events & EPOLLOUT ? CSHIMS_WRITABLE : 0) | (ready[i].events & EPOLLRDHUP ? CSHIMS_PEER_DONE : 0)
            | (ready[i].events & (EPOLLERR | EPOLLHUP) ? CSHIMS_BROKEN : 0);
    }
    return count;
}

int cshims_accept(int listener, unsigned char address[16]) {
    struct sockaddr_storage peer;
    socklen_t size = sizeof(peer);
    int descriptor = accept4(listener, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) return -1;
    int one = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    memset(address, 0, 16);
    if (peer.ss_family == AF_INET6) {
        memcpy(address, &((struct sockaddr_in6 *)&peer)->sin6_addr, 16);
    } else if (peer.ss_family == AF_INET) {
        address[10] = address[11] = 0xff;
        memcpy(address + 12, &((struct sockaddr_in *)&peer)->sin_addr, 4);
    }
    return descriptor;
}

long cshims_send(int socket, const void *head, size_t headCount, const void *body, size_t bodyCount) {
    struct iovec parts[2] = {{(void *)head, headCount}, {(void *)body, bodyCount}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

long cshims_send_file(int socket, int file, long offset, size_t count) {
    off_t start = offset;
    return sendfile(socket, file, &start, count);
}

// glibc 2.36 does not declare this structure or its functions.
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static int get_scheduling(struct scheduling *scheduling) {
    *scheduling = (struct scheduling){.size = sizeof(*scheduling)};
    return syscall(SYS_sched_getattr, 0, scheduling, sizeof(*scheduling), 0) == 0 && scheduling->policy == SCHED_OTHER;
}

void cshims_prefer_short_slices(long nanoseconds) {
    struct scheduling scheduling;
    if (!get_scheduling(&scheduling)) return;
    scheduling.runtime = (uint64_t)nanoseconds;
    syscall(SYS_sched_setattr, 0, &scheduling, 0);
}

void cshims_lower_nice_value(int lowering) {
    struct scheduling scheduling;
    if (!get_scheduling(&scheduling)) return;
    int nice = getpriority(PRIO_PROCESS, getpid()) - lowering;
    scheduling.nice = nice < -20 ? -20 : nice;
    scheduling.flags |= SCHED_FLAG_RESET_ON_FORK;
    syscall(SYS_sched_setattr, 0, &scheduling, 0);
}

void cshims_restore_nice_value(void) {
    struct scheduling scheduling;
    if (!get_scheduling(&scheduling) || scheduling.nice >= 0) return;
    int usual = getpriority(PRIO_PROCESS, getpid());
    if (scheduling.nice >= usual) return;
    scheduling.nice = usual < 0 ? usual : 0;
    syscall(SYS_sched_setattr, 0, &scheduling, 0);
}

unsigned cshims_thread_number(void) {
    static _Atomic unsigned last;
    static _Thread_local unsigned number;
    if (number == 0) number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return number;
}

void *cshims_map(size_t size, size_t alignment) {
    char *start =
        mmap(NULL, size + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return NULL;
    size_t before = (alignment - (size_t)start % alignment) % alignment;
    if (before > 0) munmap(start, before);
    munmap(start + before + size, alignment - before);
    return start + before;
}

int cshims_move_mapped(void *from, void *to, size_t size) {
    return mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to ? 0 : -1;
}

size_t cshims_trim_heap(void) {
    malloc_trim(0);
    struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}
