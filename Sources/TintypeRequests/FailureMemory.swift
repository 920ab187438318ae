// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import TintypeCaching
import TintypeCoding
import TintypeConcurrency
import TintypeDownloading

/// The failures that loads must not repeat yet.
package final class FailureMemory: Sendable {
    private struct Failure {
        let error: any Error
        let end: Date
        /// Its share of the limit.
        let weight: Int
        /// The number of the failure among the failures of its key: older places in the queue are outdated.
        let number: UInt64
    }

    private struct State {
        var failures: [CacheKey: Failure] = [:]
        /// The keys in the order in which they came; some have been forgotten since.
        var queue: [(key: CacheKey, number: UInt64)] = []
        var head = 0
        var weight = 0
        var lastNumber: UInt64 = 0
        /// The number of failures at which the memory forgets expired ones.
        var sweepCount = State.minimumSweepCount

        static let minimumSweepCount = 256

        mutating func forget(_ key: CacheKey) -> Failure? {
            let failure = self.failures.removeValue(forKey: key)
            if let failure { self.weight -= failure.weight }
            return failure
        }

        /// Forgets the failures that are over, each time that their number may have doubled.
        mutating func sweep(at now: Date) {
            guard self.failures.count >= self.sweepCount else { return }
            for (key, failure) in self.failures where failure.end <= now { _ = self.forget(key) }
            self.sweepCount = max(Self.minimumSweepCount, 2 * self.failures.count)
        }

        mutating func forgetOldest(until limit: Int) {
            while self.weight > limit, self.head < self.queue.count {
                let (key, number) = self.queue[self.head]
                self.head += 1
                if self.failures[key]?.number == number { _ = self.forget(key) }
            }
            // Most places belong to failures that are over, or that were remembered again.
            guard self.queue.count > 2 * self.failures.count + 1_024 else { return }
            self.queue = self.queue[self.head...].filter { self.failures[$0.key]?.number == $0.number }
            self.head = 0
        }
    }

    private let state = Locked(State())
    private let lifetimes: FailureLifetimes
    private let now: @Sendable () -> Date

    package init(_ lifetimes: FailureLifetimes, now: @escaping @Sendable () -> Date) {
        self.lifetimes = lifetimes
        self.now = now
    }

    // MARK: Failures of loads

    /// Returns the failure that a load of `request` must not repeat yet.
    package func failure(
        of key: CacheKey,
        for request: ImageRequest,
        retriesFailed: Bool,
        under policy: CachePolicy
    ) -> (any Error)? {
        guard !retriesFailed, policy != .reload else { return nil }
        return self.failure(of: Self.key(key, of: request))
    }

    /// Remembers a failure if it is of a kind that lasts and the program permits it.
    package func remember(
        _ error: any Error,
        of key: CacheKey,
        for request: ImageRequest,
        ifPermitted isPermitted: (LoadError) async -> Bool
    ) async {
        guard let lifetime = self.lifetime(of: error), let reported = LoadError.wrapping(error) as? LoadError,
            await isPermitted(reported)
        else { return }
        self.remember(error, of: Self.key(key, of: request), for: lifetime)
    }

    package func forget(_ key: CacheKey, for request: ImageRequest) {
        self.forget(Self.key(key, of: request))
    }

    /// The key of a failure: if the key of a request stands for several URLs, another one of them may work.
    private static func key(_ key: CacheKey, of request: ImageRequest) -> CacheKey {
        request.cacheKey == nil ? key : key.derived("url(\(CacheKey(request.url.absoluteString).digest))")
    }

    // MARK: Failures by key

    /// The number of remembered failures.
    var count: Int { self.state.withLock { $0.failures.count } }

    /// The number of places in the queue, including outdated ones.
    var placeCount: Int { self.state.withLock { $0.queue.count } }

    /// Returns the failure of `key`, if it is not over.
    func failure(of key: CacheKey) -> (any Error)? {
        let failure = self.state.withLock { $0.failures[key] }
        guard let failure else { return nil }
        guard failure.end > self.now() else {
            self.forget(key)
            return nil
        }
        return failure.error
    }

    /// Returns how long `error` would be remembered; `nil` if it would not.
    func lifetime(of error: any Error) -> Duration? {
        self.lifetimes.countLimit > 0 ? self.lifetimes.lifetime(of: error, now: self.now()) : nil
    }

    func remember(_ error: any Error, of key: CacheKey, for lifetime: Duration) {
        guard lifetime > .zero else { return }
        let now = self.now()
        let end = now.addingTimeInterval(lifetime / .seconds(1))
        let remembered = Self.remembered(error)
        let weight = Self.weight(of: key, remembered)
        self.state.withLock { state in
            _ = state.forget(key)
            state.lastNumber += 1
            state.failures[key] = Failure(error: remembered, end: end, weight: weight, number: state.lastNumber)
            state.queue.append((key, state.lastNumber))
            state.weight += weight
            state.sweep(at: now)
            state.forgetOldest(until: self.lifetimes.countLimit)
        }
    }

    func forget(_ key: CacheKey) {
        _ = self.state.withLock { $0.forget(key) }
    }

    /// Forgets the failures of a key and of all keys derived from it.
    package func forgetFamily(of key: CacheKey) {
        let keys = self.state.withLock { Array($0.failures.keys) }
        for other in keys where other.isOfFamily(of: key) { self.forget(other) }
    }

    package func forgetAll() {
        self.state.withLock { $0 = State() }
    }

    /// One for each begun KiB of texts: clients choose URLs, and origins redirect to URLs, of any length.
    private static func weight(of key: CacheKey, _ error: any Error) -> Int {
        let texts: [String?] =
            switch error {
            case let error as DownloadError: [error.message, error.url?.absoluteString]
            case let error as CodingError: [error.message]
            default: []
            }
        return 1 + texts.reduce(key.text.utf8.count) { $0 + ($1?.utf8.count ?? 0) } / 1_024
    }

    /// The text that is added to the message of a remembered failure.
    package static let note =
        " The failure is remembered. Until it expires, the loader repeats the load only if the request demands it."

    /// Returns the error without its large parts.
    private static func remembered(_ error: any Error) -> any Error {
        switch error {
        case let error as DownloadError:
            return DownloadError(
                code: error.code,
                message: error.message + self.note,
                url: error.url,
                status: error.status
            )
        case let error as CodingError: return CodingError(code: error.code, message: error.message + self.note)
        default: return error
        }
    }
}
