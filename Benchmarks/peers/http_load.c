// SPDX-License-Identifier: Apache-2.0

// Loads a server of HTTP/1.1 on the loopback interface from one thread.
//
// http_load MODE PORT CONNECTIONS REQUESTS SECONDS FIRST PAUSE FIELDS TARGET...
//
//   load   Each connection sends its next request when it has an answer, until REQUESTS are answered (0: no limit) or
//          SECONDS have passed (0: no limit). Prints the answers by status, with percentiles of their times.
//   close  The same with a new connection for each request.
//   idle   Each connection sends one request, reads the answer and stays open.
//   mute   Each connection sends one request and reads nothing.
//   drip   Each connection sends one byte of a head every PAUSE milliseconds.
//
// The last three print "ready" when all connections have come so far, and end when standard input ends or the server
// has closed all connections. Targets take turns, and a # in one is replaced by a number that counts up from FIRST.
// After a status of 429 or 503, a connection waits once to twice as long as Retry-After requests, at least PAUSE
// milliseconds; it does not wait if PAUSE is 0. FIELDS are whole lines of the head. Each connection has an address of
// its own, because the server limits single clients.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum mode { LOAD, CLOSE, IDLE, MUTE, DRIP };
enum state { CLOSED, CONNECTING, WAITING_HEAD, READING_BODY, PAUSED, RESTING };
struct connection {
    int descriptor, status, is_last, retry_seconds;
    enum state state;
    double start;
    long body, filled;
    char head[4096];
};
struct answers {
    int status;
    long count, capacity;
    float *times;
};

static enum mode mode;
static int port, set, connection_count, target_count;
static long request_limit, next_number, first_number, answered, failed, bytes, come, closed;
static double started, time_limit, pause_time, last_close;
static const char *fields;
static char **targets;
static struct connection *connections;
static struct answers statuses[16];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void record(int status, double seconds) {
    struct answers *answers = statuses;
    while (answers->status && answers->status != status && answers < statuses + 15) answers++;
    answers->status = status;
    if (answers->count == answers->capacity) {
        answers->capacity = answers->capacity ? 2 * answers->capacity : 1024;
        answers->times = realloc(answers->times, answers->capacity * sizeof(float));
        if (!answers->times) die("realloc");
    }
    answers->times[answers->count++] = (float)(seconds * 1e3);
    answered++;
}

static void watch(struct connection *c, uint32_t events, int operation) {
    struct epoll_event event = {.events = events, .data.ptr = c};
    epoll_ctl(set, operation, c->descriptor, &event);
}

static void shut(struct connection *c) {
    if (c->descriptor >= 0) close(c->descriptor);
    c->descriptor = -1;
    c->state = CLOSED;
}

static void open_connection(struct connection *c) {
    c->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (c->descriptor < 0) die("socket");
    int one = 1, little = 4096;
    setsockopt(c->descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(c->descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (mode == MUTE) setsockopt(c->descriptor, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7F010001 + (c - connections))};
    struct sockaddr_in server = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(c->descriptor, (struct sockaddr *)&own, sizeof own)) die("bind");
    c->state = CONNECTING;
    if (connect(c->descriptor, (struct sockaddr *)&server, sizeof server) && errno != EINPROGRESS) {
        failed++;
        shut(c);
        return;
    }
    watch(c, EPOLLOUT, EPOLL_CTL_ADD);
}

// Sends the next request, or ends the connection if none is left.
static void send_request(struct connection *c) {
    char request[8192];
    long number = next_number;
    if (request_limit && number - first_number >= request_limit) {
        shut(c);
        return;
    }
    next_number++;
    const char *target = targets[number % target_count];
    const char *place = strchr(target, '#');
    int length = place
        ? snprintf(request, sizeof request, "GET %.*s%ld%s", (int)(place - target), target, number, place + 1)
        : snprintf(request, sizeof request, "GET %s", target);
    length += snprintf(
        request + length, sizeof request - length, " HTTP/1.1\r\nHost: 127.0.0.1\r\n%s%s\r\n", fields,
        mode == CLOSE ? "Connection: close\r\n" : "");
    c->state = WAITING_HEAD;
    c->filled = 0;
    c->start = now();
    if (send(c->descriptor, request, length, MSG_NOSIGNAL) != length) {
        failed++;
        shut(c);
    }
}

static void begin(struct connection *c) {
    if (c->descriptor < 0) {
        open_connection(c);
    } else {
        send_request(c);
    }
}

static void finish(struct connection *c) {
    record(c->status, now() - c->start);
    if (c->is_last || mode == CLOSE) shut(c);
    if (mode == IDLE) {
        come++;
        c->state = RESTING;
    } else if (pause_time > 0 && (c->status == 429 || c->status == 503)) {
        // Clients that wait equally long would come back together.
        double pause = c->retry_seconds > pause_time ? c->retry_seconds : pause_time;
        c->start = now() + pause * (1 + rand() / (double)RAND_MAX);
        c->state = PAUSED;
    } else {
        begin(c);
    }
}

// The server has closed the connection, or it failed.
static void lose(struct connection *c) {
    int was_whole = c->state == READING_BODY && c->body < 0;
    int was_resting = c->state == RESTING;
    shut(c);
    if (was_whole) {
        c->is_last = 1;
        finish(c);
    } else if (mode <= CLOSE) {
        failed++;
        c->start = now() + 0.01;
        c->state = PAUSED;
    } else {
        if (!was_resting) come++;
        closed++;
        last_close = now() - started;
    }
}

// Reads the head, and returns whether it is complete.
static int read_head(struct connection *c, long count) {
    c->filled += count;
    c->head[c->filled] = 0;
    char *end = strstr(c->head, "\r\n\r\n");
    if (!end) return 0;
    end[2] = 0;
    c->status = atoi(c->head + 9);
    char *length = strcasestr(c->head, "\r\ncontent-length:");
    char *connection = strcasestr(c->head, "\r\nconnection: close");
    char *retry = strcasestr(c->head, "\r\nretry-after:");
    c->is_last = connection != NULL;
    c->retry_seconds = retry ? atoi(retry + 14) : 0;
    c->body = c->status == 304 || c->status == 204 ? 0 : length ? atol(length + 17) : -1;
    long extra = c->filled - (end + 4 - c->head);
    bytes += extra;
    if (c->body > 0) c->body -= extra;
    c->state = READING_BODY;
    return 1;
}

static void receive(struct connection *c) {
    static char sink[1 << 18];
    while (c->state == WAITING_HEAD || c->state == READING_BODY || c->state == RESTING) {
        // The kernel discards bodies without a copy.
        long count = c->state == WAITING_HEAD
            ? recv(c->descriptor, c->head + c->filled, sizeof c->head - 1 - c->filled, 0)
            : recv(c->descriptor, sink, sizeof sink, MSG_TRUNC);
        if (count < 0 && errno == EAGAIN) return;
        if (count <= 0) {
            lose(c);
            return;
        }
        if (c->state == WAITING_HEAD) {
            if (!read_head(c, count)) continue;
        } else if (c->state == READING_BODY) {
            bytes += count;
            if (c->body > 0) c->body -= count;
        }
        if (c->state == READING_BODY && c->body == 0) {
            finish(c);
            // The next answer comes with an event.
            return;
        }
    }
}

static void connected(struct connection *c) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(c->descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) {
        lose(c);
        return;
    }
    watch(c, mode == MUTE ? EPOLLRDHUP : EPOLLIN, EPOLL_CTL_MOD);
    if (mode == DRIP) {
        const char *beginning = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ";
        c->state = RESTING;
        come++;
        if (send(c->descriptor, beginning, strlen(beginning), MSG_NOSIGNAL) < 0) lose(c);
        return;
    }
    send_request(c);
    if (mode == MUTE) {
        come++;
        c->state = RESTING;
    }
}

// Lets connections go on whose pause is over.
static void look_at_times(void) {
    static double last;
    double time = now();
    int drips = mode == DRIP && time - last >= pause_time;
    if (drips) last = time;
    for (struct connection *c = connections; c < connections + connection_count; c++) {
        if (c->state == PAUSED && c->start <= time) begin(c);
        if (drips && c->state == RESTING && send(c->descriptor, "x", 1, MSG_NOSIGNAL) < 0) lose(c);
    }
}

static int by_time(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void print_answers(double seconds) {
    printf("{\"seconds\":%.6f,\"failed\":%ld,\"bytes\":%ld,\"closed\":%ld,", seconds, failed, bytes, closed);
    printf("\"lastClose\":%.6f,\"answers\":{", last_close);
    for (struct answers *a = statuses; a->status; a++) {
        qsort(a->times, a->count, sizeof(float), by_time);
        printf(
            "%s\"%d\":{\"count\":%ld,\"p50\":%.4f,\"p99\":%.4f}", a > statuses ? "," : "", a->status, a->count,
            a->times[a->count / 2], a->times[(long)((a->count - 1) * 0.99)]);
    }
    printf("}}\n");
}

// Whether the program's work is done.
static int is_over(double time) {
    static int is_ready;
    if (time_limit > 0 && time - started >= time_limit) return 1;
    if (mode <= CLOSE) return request_limit && answered + failed >= request_limit;
    if (!is_ready && come == connection_count) {
        is_ready = 1;
        puts("ready");
        fflush(stdout);
    }
    struct pollfd input = {.fd = 0, .events = POLLIN};
    return closed == connection_count || poll(&input, 1, 0) > 0;
}

int main(int count, char **arguments) {
    static const char *names[] = {"load", "close", "idle", "mute", "drip"};
    if (count < 10) return 2;
    while (strcmp(names[mode], arguments[1])) {
        if (++mode > DRIP) return 2;
    }
    port = atoi(arguments[2]);
    connection_count = atoi(arguments[3]);
    request_limit = atol(arguments[4]);
    time_limit = atof(arguments[5]);
    next_number = first_number = atol(arguments[6]);
    pause_time = atof(arguments[7]) / 1e3;
    fields = arguments[8];
    targets = arguments + 9;
    target_count = count - 9;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    set = epoll_create1(0);
    connections = calloc(connection_count, sizeof *connections);
    if (!connections) die("calloc");
    started = now();
    for (int i = 0; i < connection_count; i++) {
        connections[i].descriptor = -1;
        connections[i].state = PAUSED;
        // Clients that obey Retry-After come one after the other, in the time of a pause.
        connections[i].start = started + (mode == LOAD ? pause_time * i / connection_count : 0);
        if (connections[i].start <= started) open_connection(&connections[i]);
    }
    double time = started, looked = 0;
    while (!is_over(time)) {
        struct epoll_event events[256];
        int ready = epoll_wait(set, events, 256, 10);
        for (int i = 0; i < ready; i++) {
            struct connection *c = events[i].data.ptr;
            if (c->state == CONNECTING) {
                connected(c);
            } else if (mode == MUTE) {
                if (c->descriptor >= 0) lose(c);
            } else if (c->descriptor >= 0) {
                receive(c);
            }
        }
        time = now();
        if (time - looked >= 0.005) {
            looked = time;
            look_at_times();
        }
    }
    print_answers(now() - started);
    return 0;
}
