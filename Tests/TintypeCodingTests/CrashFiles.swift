// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The files that fuzzers found, and that once broke a decoder.
enum CrashFiles {
    /// Returns the files whose names begin with `prefix`.
    static func named(_ prefix: String) -> [URL] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Crashes")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasPrefix(prefix) }.sorted().map { folder.appending(path: $0) }
    }
}
