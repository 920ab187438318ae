// SPDX-License-Identifier: Apache-2.0

import Tintype

extension ServerSetting {
    /// The settings of limits under load.
    static let ofLoad: [ServerSetting] = [
        ServerSetting(
            "answer-time",
            .time,
            "the longest time for an answer; default 15s",
            foreign: ["IMGPROXY_TIMEOUT"]
        ) { $0.configuration.load.answerTime = $1 },
        ServerSetting(
            "queue-time",
            .time,
            "the longest wait for other requests to the same origin; default 3s"
        ) { $0.configuration.load.queueTime = $1 },
        ServerSetting(
            "queue-size",
            .number(0...1_000_000),
            "the most requests that wait for their turn, or 0 for no limit except queue-time; default 63 a lane",
            foreign: ["IMGPROXY_REQUESTS_QUEUE_SIZE"]
        ) { $0.queueSize = $1 },
        ServerSetting(
            "lanes",
            .number(1...256),
            "the images that are decoded, resized and encoded at once; default one for each core",
            foreign: ["IMGPROXY_WORKERS", "IMGPROXY_CONCURRENCY"]
        ) { $0.configuration.loader.laneCount = $1 },
        ServerSetting(
            "connections",
            .number(0...1_000_000),
            "the most connections, or 0 for no limit; default 20000",
            foreign: ["IMGPROXY_MAX_CLIENTS"]
        ) { $0.configuration.load.connectionCount = $1 == 0 ? 1_000_000 : $1 },
        ServerSetting(
            "idle-time",
            .timeOrZero,
            "the longest time without a request on a connection; default 60s",
            foreign: ["IMGPROXY_KEEP_ALIVE_TIMEOUT"]
        ) { $0.configuration.load.idleTime = $1 },
        ServerSetting(
            "head-time",
            .time,
            "the longest time for the head of a request; default 5s",
            foreign: ["IMGPROXY_READ_REQUEST_TIMEOUT", "IMGPROXY_READ_TIMEOUT"]
        ) { $0.configuration.load.headTime = $1 },
        ServerSetting(
            "write-time",
            .time,
            "the period in which a client must take 10 kB of its answer; default 10s",
            foreign: ["IMGPROXY_WRITE_RESPONSE_TIMEOUT", "IMGPROXY_WRITE_TIMEOUT"]
        ) { $0.configuration.load.writeTime = $1 },
        ServerSetting(
            "drain-time",
            .timeOrZero,
            "the longest time to finish answers after SIGTERM; default 20s",
            foreign: ["IMGPROXY_GRACEFUL_STOP_TIMEOUT"]
        ) { $0.configuration.load.drainTime = $1 },
    ]
}
