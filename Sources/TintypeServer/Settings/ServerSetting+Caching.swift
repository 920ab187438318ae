// SPDX-License-Identifier: Apache-2.0

import Tintype
import TintypeCaching

extension ServerSetting {
    /// The settings of the caches of the server and of its clients.
    static let ofCaching: [ServerSetting] = [
        ServerSetting(
            "cache-dir",
            .folder,
            "the folder of the disk cache; default ~/.cache/tintype"
        ) { $0.configuration.loader.disk?.directory = $1 },
        ServerSetting(
            "cache-size",
            .cacheBytes(orZero: "for no disk cache"),
            "the most bytes of the disk cache, at least 1MiB, or 0 for no disk cache; default 1GiB"
        ) { $0.cacheSize = $1 },
        ServerSetting(
            "memory-size",
            .cacheBytes(orZero: "for no images in memory"),
            "the most bytes of images in memory, at least 1MiB, half of them for results, or 0 for none; default a part "
                + "of the machine's memory"
        ) {
            $0.configuration.loader.memory.costLimit = $1 / 2
            $0.configuration.loader.memory.encodedCostLimit = $1 - $1 / 2
        },
        ServerSetting(
            "shared",
            .secret("URL"),
            "the Redis of servers with a common cache: redis://a, redis+cluster://a,b or redis+sentinel://a,b/name"
        ) { $0.shared = $1 },
        ServerSetting(
            "shared-time",
            .time,
            "the longest time for an answer of Redis, before the server goes on without it; default 20ms"
        ) { $0.sharedTime = $1 },
        ServerSetting(
            "cold",
            .text("URL"),
            "a bucket behind the other caches, s3://bucket/prefix?region=R or &endpoint=URL, with the key of s3-access-key"
        ) { $0.cold = $1 },
        ServerSetting(
            "shared-revision",
            .text("TEXT"),
            "the revision of the results in both; a new one makes all results anew"
        ) { $0.sharedRevision = $1 },
        ServerSetting(
            "source-lifetime",
            .timeOrZero,
            "the lifetime of sources whose origin gives none; default 1d"
        ) {
            $0.configuration.loader.freshnessBounds.defaultLifetime = $1
            $0.configuration.loader.freshnessBounds.heuristicLifetime = $1
        },
        ServerSetting(
            "stale-while-revalidate",
            .timeOrZero,
            "how long an outdated image is still served while the origin is asked; default 60s"
        ) { $0.configuration.loader.freshnessBounds.staleWhileRevalidate = $1 },
        ServerSetting(
            "stale-if-error",
            .timeOrZero,
            "how long an outdated image is still served if the origin fails; default 1d"
        ) { $0.configuration.loader.freshnessBounds.staleIfError = $1 },
        ServerSetting(
            "lifetime",
            .timeOrZero,
            "the lifetime of images in clients, or 0 for no-cache; default 365d",
            foreign: ["IMGPROXY_TTL"]
        ) { $0.configuration.caching.lifetime = $1 },
        ServerSetting(
            "origin-lifetime",
            .flag,
            "images have the lifetime that their origin gives, if it gives one",
            foreign: ["IMGPROXY_CACHE_CONTROL_PASSTHROUGH"]
        ) { $0.configuration.caching.passesOriginLifetime = $1 },
        ServerSetting(
            "error-lifetime",
            .timeOrZero,
            "the lifetime in clients of errors about missing or unreadable sources; default 60s"
        ) { $0.configuration.caching.errorLifetime = $1 },
        ServerSetting(
            "canonical-link",
            .flag,
            "answers name their source in a Link field as canonical",
            foreign: ["IMGPROXY_SET_CANONICAL_HEADER"]
        ) { $0.configuration.caching.setsCanonicalLink = $1 },
    ]
}
