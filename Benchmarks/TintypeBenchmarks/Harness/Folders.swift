import Foundation

/// Where the harness reads and writes.
struct Folders: Sendable {
    /// `Benchmarks/` of the checkout.
    let benchmarks: URL
    /// What is kept between runs: figures and images that take long to make.
    let results: URL
    /// This run's own folder; removed at its end.
    let temporary: URL

    init() throws {
        // The harness is run from its checkout; the file's own path says where that is.
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
