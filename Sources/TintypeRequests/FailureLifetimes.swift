// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import TintypeCoding
import TintypeDownloading
import TintypeHTTP

/// How long the loader remembers failures, so that it does not ask for a failing source again and again.
///
/// By default it remembers only failures that would most likely repeat: a status 404 or 410, bytes that are not an image,
/// and responses with `Retry-After`. A server may also remember failures of the network and of origins for some seconds,
/// so that many requests do not wait for the same dead origin. A remembered failure never hides a cached response.
public struct FailureLifetimes: Sendable, Hashable {
    /// The lifetime of a 404 (not found) or 410 (gone); default 30 seconds.
    ///
    /// A longer `Retry-After` replaces it. If it is `nil`, only `Retry-After` counts.
    public var missing: Duration?
    /// The lifetime of bytes that are not an image, or a damaged one; default 30 seconds, `nil` forgets them at once.
    public var undecodable: Duration?
    /// The lifetime of a host that has no address or takes no connection; default `nil`, which forgets it at once.
    public var unreachable: Duration?
    /// The lifetime of a status of 500 or above; default `nil`.
    ///
    /// A longer `Retry-After` replaces it. If it is `nil`, only `Retry-After` counts.
    public var originFailure: Duration?
    /// The longest `Retry-After` to obey (RFC 9110, 10.2.3); default 10 minutes, `nil` ignores it.
    public var maximumRetryAfter: Duration?
    /// The maximum number of failures to remember; default 10,000.
    ///
    /// The oldest failures are removed first. A failure with a long URL or message counts as several.
    public var countLimit: Int

    /// Creates lifetimes.
    ///
    /// ```swift
    /// var configuration = LoaderActor.Configuration()
    /// configuration.failureLifetimes = FailureLifetimes(missing: .seconds(300), undecodable: nil)
    /// ```
    public init(
        missing: Duration? = .seconds(30),
        undecodable: Duration? = .seconds(30),
        unreachable: Duration? = nil,
        originFailure: Duration? = nil,
        maximumRetryAfter: Duration? = .seconds(600),
        countLimit: Int = 10_000
    ) {
        self.missing = missing
        self.undecodable = undecodable
        self.unreachable = unreachable
        self.originFailure = originFailure
        self.maximumRetryAfter = maximumRetryAfter
        self.countLimit = countLimit
    }

    /// Remembers no failure.
    public static let none = FailureLifetimes(missing: nil, undecodable: nil, maximumRetryAfter: nil, countLimit: 0)

    /// Returns how long a failure is remembered; `nil` if it is not.
    package func lifetime(of error: any Error, now: Date) -> Duration? {
        switch error {
        case let error as DownloadError where error.isRemembered: return nil
        case let error as DownloadError:
            let delay = error.headers["Retry-After"].flatMap { RetryAfter.delay($0, date: now) }
            let asked = delay.flatMap { delay in self.maximumRetryAfter.map { min(delay, $0) } }
            return [asked, self.knownLifetime(of: error)].compactMap { $0 }.max()
        case let error as CodingError where error.isAboutContent: return self.undecodable
        default: return nil
        }
    }

    private func knownLifetime(of error: DownloadError) -> Duration? {
        switch (error.status, error.code) {
        case (404, _), (410, _): self.missing
        case (let status?, _) where status >= 500: self.originFailure
        case (_, .hostNotFound), (_, .cannotConnect), (_, .tlsFailed): self.unreachable
        default: nil
        }
    }
}

extension CodingError {
    /// Whether the bytes are at fault, and not a limit or an option.
    package var isAboutContent: Bool {
        [.notAnImage, .corrupt, .truncated].contains(self.code)
    }
}
