// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The folders in which the harness reads and writes.
struct Folders: Sendable {
    /// `Benchmarks/` of the checkout.
    let benchmarks: URL
    /// The folder for data that later runs reuse: figures, and images that take long to make.
    let results: URL
    /// This run's own folder, which the harness removes at the end.
    let temporary: URL

    init() throws {
        // The harness runs from its checkout, and this file's path locates the checkout.
        let source = URL(fileURLWithPath: #filePath)
        self.benchmarks = source.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        self.results = self.benchmarks.appendingPathComponent("results")
        self.temporary = FileManager.default.temporaryDirectory
            .appendingPathComponent("tintype-benchmarks-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: self.results, withIntermediateDirectories: true)
        try FileManager.default.createDirectory(at: self.temporary, withIntermediateDirectories: true)
    }

    /// Removes this run's own folder.
    func removeTemporary() {
        try? FileManager.default.removeItem(at: self.temporary)
    }
}
