// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency

/// The files that the page has uploaded, stored for at most ten minutes.
final class UploadStore: Sendable {
    /// The most bytes of one file.
    static let byteLimit = 32 << 20
    private static let totalLimit = 128 << 20
    private static let countLimit = 256
    private static let lifetime: Duration = .seconds(600)

    private struct Upload {
        let id: String
        let data: Data
        let end: ContinuousClock.Instant
    }

    private let uploads = Locked<[Upload]>([])

    /// Stores a file, and returns its name.
    func add(_ data: Data) -> String {
        var generator = SystemRandomNumberGenerator()
        let id = String(generator.next(), radix: 36) + String(generator.next(), radix: 36)
        self.uploads.withLock { uploads in
            uploads.append(Upload(id: id, data: data, end: .now + Self.lifetime))
            Self.clean(&uploads)
        }
        return id
    }

    /// Returns a file, if it is still stored.
    subscript(id: String) -> Data? {
        self.uploads.withLock { uploads in
            Self.clean(&uploads)
            return uploads.first { $0.id == id }?.data
        }
    }

    /// Removes expired files, and the oldest ones beyond the limit.
    private static func clean(_ uploads: inout [Upload]) {
        let now = ContinuousClock.now
        uploads.removeAll { $0.end <= now }
        uploads.removeFirst(max(0, uploads.count - Self.countLimit))
        while uploads.count > 1, uploads.reduce(0, { $0 + $1.data.count }) > Self.totalLimit { uploads.removeFirst() }
    }
}
