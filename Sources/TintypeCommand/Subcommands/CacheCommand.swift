import FoundationEssentials
import Tintype

/// `tintype cache`: looks after the disk cache.
struct CacheCommand: Subcommand {
    static let name = "cache"
    static let summary = "show, empty or tidy the disk cache"
    static let flags: Set = ["--json"]
    static let values: Set = ["--cache-dir"]
    static let help = """
        Looks after the disk cache.

        Usage: tintype cache stats|clear|prune [options]

          stats                 how many entries and bytes there are
          clear                 remove all entries
          prune                 remove what is expired, has a broken header or is over the size limit

          --cache-dir DIR       the disk cache; default ~/.cache/tintype
          --json                one JSON object on standard output
        """

    private enum Action: String, CaseIterable {
        case stats, clear, prune
    }

    private let action: Action
    private let writesJSON: Bool
    private let configuration: DiskCache.Configuration

    init(_ arguments: ParsedArguments) throws(UsageError) {
        let name = try arguments.requireOperand("of stats, clear and prune")
        guard let action = Action(rawValue: name) else {
            throw UsageError("the cache knows stats, clear and prune, and not \(name)")
        }
        self.action = action
        self.writesJSON = arguments.has("--json")
        self.configuration = LoadCommandOptions.configuration(arguments).disk ?? DiskCache.Configuration()
    }

    func run() async throws -> Bool {
        let path = self.configuration.directory.path
        if OutputFile.isFile(path) { throw OutputError(message: "\(path) is a file; a cache is a folder.") }
        let cache = DiskCache(self.configuration)
        switch self.action {
        case .stats: try await self.reportStatistics(of: cache)
        case .clear:
            let before = await cache.statistics()
            try await cache.removeAll(waitingForDeletion: true)
            let cleared = Cleared(directory: before.directory, entries: before.entryCount, bytes: before.byteCount)
            let bytes = Readable.bytes(Int64(before.byteCount))
            try self.report(cleared, "removed \(Self.entries(before.entryCount)), \(bytes)")
        case .prune:
            let result = await cache.prune()
            let after = await cache.statistics()
            let pruned = Pruned(result, after)
            try self.report(
                pruned,
                "removed \(Self.entries(pruned.removed)) and "
                    + "\(Readable.count(result.temporaryFiles, "leftover", "leftovers")), "
                    + "\(Readable.bytes(Int64(result.freedByteCount))); \(Self.entries(after.entryCount)) left"
            )
        }
        await cache.shutdown()
        return true
    }

    private func reportStatistics(of cache: DiskCache) async throws {
        let statistics = await cache.statistics()
        try self.report(
            Statistics(statistics),
            "\(statistics.directory): \(Self.entries(statistics.entryCount)), \(Readable.bytes(Int64(statistics.byteCount))) "
                + "of \(Readable.bytes(Int64(statistics.sizeLimit)))"
        )
    }

    private static func entries(_ count: Int) -> String {
        Readable.count(count, "entry", "entries")
    }

    private func report(_ object: some Encodable, _ line: String) throws {
        if self.writesJSON {
            try JSONLine.print(object)
        } else {
            try Output.standard.line(line)
        }
    }
}

/// What `tintype cache stats` reports.
private struct Statistics: Encodable {
    let directory: String
    let entries: Int
    let bytes: Int
    let sizeLimit: Int

    init(_ statistics: DiskStatistics) {
        self.directory = statistics.directory
        self.entries = statistics.entryCount
        self.bytes = statistics.byteCount
        self.sizeLimit = statistics.sizeLimit
    }
}

/// What `tintype cache clear` reports.
private struct Cleared: Encodable {
    let directory: String
    let entries: Int
    let bytes: Int
}

/// What `tintype cache prune` reports.
private struct Pruned: Encodable {
    let directory: String
    let removed: Int
    let expired: Int
    let evicted: Int
    let damaged: Int
    let temporaryFiles: Int
    let freedBytes: Int
    let entries: Int
    let bytes: Int

    init(_ result: PruneResult, _ after: DiskStatistics) {
        self.directory = after.directory
        self.removed = result.expiredEntries + result.evictedEntries + result.damagedEntries
        self.expired = result.expiredEntries
        self.evicted = result.evictedEntries
        self.damaged = result.damagedEntries
        self.temporaryFiles = result.temporaryFiles
        self.freedBytes = result.freedByteCount
        self.entries = after.entryCount
        self.bytes = after.byteCount
    }
}
