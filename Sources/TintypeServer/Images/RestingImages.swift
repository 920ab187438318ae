// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency
import TintypeImgproxy

/// The images that took too long a moment ago, and that the server refuses for a while.
///
/// The key is the source with its options, because one image has many spellings of its URL.
final class RestingImages: Sendable {
    private static let restTime: Duration = .seconds(10)
    /// The most images to remember; with more, the server tries all again.
    private static let countLimit = 1_024

    private let ends = Locked<[ImageAddress: ContinuousClock.Instant]>([:])

    /// Adds an image that took too long.
    func insert(_ image: ImageAddress, at time: ContinuousClock.Instant) {
        self.ends.withLock { ends in
            ends = ends.filter { time < $0.value }
            if ends.count >= Self.countLimit { ends.removeAll() }
            ends[image] = time + Self.restTime
        }
    }

    /// Returns the time for which the server still refuses an image, or `nil`.
    func rest(of image: ImageAddress, at time: ContinuousClock.Instant) -> Duration? {
        self.ends.withLock { ends in
            guard !ends.isEmpty, let end = ends[image], time < end else { return nil }
            return time.duration(to: end)
        }
    }
}
