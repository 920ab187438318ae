// SPDX-License-Identifier: Apache-2.0

import Glibc
public import Tintype
@_exported public import TintypeRedis

extension Cluster {
    /// The settings of a cluster.
    public struct Configuration: Sendable {
        /// An event of a cluster, or of a ``ColdTier``.
        public enum Event: Sendable, Hashable {
            /// Redis or the bucket has failed several times: loads continue without it.
            case circuitOpened(reason: String)
            /// Redis or the bucket works again.
            case circuitClosed
            /// A setting of Redis that does not suit a cache, or a bucket that refuses requests, with the advice.
            case unsuitableSetting(String)
        }

        /// The Redis deployment.
        public var redis: RedisConfiguration
        /// The beginning of all names in Redis; default `tintype:1`.
        ///
        /// Clusters with different names share nothing.
        public var keyPrefix = "tintype:1"
        /// The name of this process, which must differ from all others; by default the host, the process and a random
        /// part.
        public var nodeName = Self.makeNodeName()
        /// The revision of your encoders and transforms; by default empty.
        ///
        /// Results of another revision are misses. Originals are not affected.
        public var revision = ""
        /// The time after the last store in a family after which Redis removes it; default 7 days.
        public var entryLifetime = Duration.seconds(604_800)
        /// The size of the largest entry in bytes; default 4 MiB, at most 120 MiB.
        public var maximumEntrySize = 4 << 20
        /// The lifetime of a lock, which its owner renews after a third of it; default 6 seconds.
        ///
        /// After the crash of an owner, the other machines wait that long.
        public var leaseLifetime = Duration.seconds(6)
        /// The longest time for which a load waits for another machine; default 10 seconds.
        ///
        /// It is longer than ``leaseLifetime``, so that only one machine takes the place of a dead owner.
        public var waitLimit = Duration.seconds(10)
        /// The time between two reads of the changes by other machines; default 1 second.
        public var changePeriod = Duration.seconds(1)
        /// How long failures are remembered for all machines.
        ///
        /// By default 60 seconds for a missing source, and 5 seconds for a status from 500 on. A source that cannot be
        /// reached is remembered by each machine alone, because the fault may be in that machine.
        public var failureLifetimes = FailureLifetimes(missing: .seconds(60), originFailure: .seconds(5))
        /// Receives events, and must be quick; by default does nothing.
        public var report: @Sendable (Event) -> Void = { _ in }

        /// Creates settings with the defaults.
        ///
        /// ```swift
        /// let configuration = Cluster.Configuration(redis: try RedisConfiguration(url: "redis://10.0.0.5"))
        /// ```
        public init(redis: RedisConfiguration) {
            self.redis = redis
        }

        private static func makeNodeName() -> String {
            var name = [CChar](repeating: 0, count: 256)
            // A host without a name has an empty one.
            _ = gethostname(&name, name.count - 1)
            let host = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            return "\(host)-\(getpid())-\(String(UInt32.random(in: .min ... .max), radix: 36))"
        }
    }
}
