// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeTestSupport

/// The process's resources, with a tolerance for what rounds may leave behind.
struct Holdings {
    /// The bytes that runtimes and allocators hold for themselves, mainly for each thread.
    ///
    /// They do not grow with the calls.
    private static let heapTolerance = 512 << 10

    private let threads: [String]
    private let descriptors: Int
    private let heapBytes: Int
    private let residentBytes: Int

    static func now() throws -> Holdings {
        let resources = try Resources.now()
        return Holdings(
            // The pool that runs tasks has a thread more or less as it sees fit: named after the queues of its runtime.
            threads: resources.threads.filter { !$0.hasSuffix("-qos") && !$0.hasSuffix("-qos.overcommit") },
            descriptors: resources.descriptors,
            heapBytes: Self.sanitizedHeapBytes ?? resources.heapBytes,
            residentBytes: resources.residentBytes
        )
    }

    /// Returns whether the process's resources return to these figures soon, and prints both.
    func areBack() async -> Bool {
        var after = self
        await until(within: .seconds(20)) {
            guard let now = try? Holdings.now() else { return false }
            after = now
            return now.fits(self)
        }
        LoaderTorture.say("  before: \(self.text)")
        LoaderTorture.say("  after: \(after.text)")
        return after.fits(self)
    }

    private func fits(_ before: Holdings) -> Bool {
        self.threads.count <= before.threads.count && self.descriptors <= before.descriptors
            && self.heapBytes <= before.heapBytes + Self.heapTolerance
    }

    private var text: String {
        "\(self.threads.count) threads, \(self.descriptors) descriptors, \(self.heapBytes) bytes of heap, "
            + "\(self.residentBytes) resident; \(self.threads)"
    }

    /// The bytes allocated by a sanitizer's allocator, which `mallinfo2` does not count.
    private static var sanitizedHeapBytes: Int? {
        guard let symbol = dlsym(nil, "__sanitizer_get_current_allocated_bytes") else { return nil }
        return unsafeBitCast(symbol, to: (@convention(c) () -> Int).self)()
    }
}
