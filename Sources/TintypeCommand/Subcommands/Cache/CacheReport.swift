// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype

/// The result of an action on the cache: one JSON object, or lines for people.
protocol CacheReport: Encodable {
    var lines: [String] { get }
    /// Whether all is well.
    var isGood: Bool { get }
}

extension CacheReport {
    var isGood: Bool { true }
}

/// The report of `tintype cache stats`.
struct StatisticsReport: CacheReport {
    let directory: String
    let entries: Int
    let bytes: Int
    let overheadBytes: Int
    let sizeLimit: Int

    init(_ statistics: DiskStatistics) {
        self.directory = statistics.directory
        self.entries = statistics.entryCount
        self.bytes = statistics.byteCount
        self.overheadBytes = statistics.overheadByteCount
        self.sizeLimit = statistics.sizeLimit
    }

    /// Reports a folder that has no cache in it.
    init(ofNoCacheIn configuration: DiskCache.Configuration) {
        self.directory = configuration.directory.path
        self.entries = 0
        self.bytes = 0
        self.overheadBytes = 0
        self.sizeLimit = configuration.sizeLimit
    }

    var lines: [String] {
        let limit = self.sizeLimit == .max ? "none" : Readable.bytes(Int64(self.sizeLimit))
        return TextTable.lines([
            ["directory", self.directory.printable],
            ["entries", "\(self.entries)"],
            ["size", Readable.bytes(Int64(self.bytes))],
            ["overhead", Readable.bytes(Int64(self.overheadBytes))],
            ["limit", limit],
        ])
    }
}

/// The report of `tintype cache clear`.
struct ClearReport: CacheReport {
    let directory: String
    let entries: Int
    let bytes: Int

    init(_ before: StatisticsReport) {
        self.directory = before.directory
        self.entries = before.entries
        self.bytes = before.bytes
    }

    var lines: [String] {
        ["removed \(Readable.count(self.entries, "entry", "entries")), \(Readable.bytes(Int64(self.bytes)))"]
    }
}

/// The report of `tintype cache prune`.
struct PruneReport: CacheReport {
    let directory: String
    let removed: Int
    let expired: Int
    let evicted: Int
    let damaged: Int
    let temporaryFiles: Int
    let freedBytes: Int
    let entries: Int
    let bytes: Int

    init(_ result: PruneResult, _ after: StatisticsReport) {
        self.directory = after.directory
        self.removed = result.expiredEntries + result.evictedEntries + result.damagedEntries
        self.expired = result.expiredEntries
        self.evicted = result.evictedEntries
        self.damaged = result.damagedEntries
        self.temporaryFiles = result.temporaryFiles
        self.freedBytes = result.freedByteCount
        self.entries = after.entries
        self.bytes = after.bytes
    }

    var lines: [String] {
        let removed = Readable.count(self.removed, "entry", "entries")
        let leftovers = Readable.count(self.temporaryFiles, "leftover", "leftovers")
        return [
            "removed \(removed) and \(leftovers), \(Readable.bytes(Int64(self.freedBytes)))",
            "",
        ]
            + TextTable.lines([
                ["expired", "\(self.expired)"],
                ["evicted", "\(self.evicted)"],
                ["damaged", "\(self.damaged)"],
                ["left", "\(self.entries), \(Readable.bytes(Int64(self.bytes)))"],
            ])
    }
}

/// The report of `tintype cache verify`.
struct VerifyReport: CacheReport {
    /// A damaged entry.
    struct Finding: Encodable {
        let path: String
        let bytes: Int
        let problem: String
        let removed: Bool
    }

    let directory: String
    let entries: Int
    let bytes: Int
    let damaged: Int
    let complete: Bool
    let findings: [Finding]

    init(_ result: VerifyResult, directory: String) {
        self.directory = directory
        self.entries = result.entryCount
        self.bytes = result.byteCount
        self.damaged = result.findings.count
        self.complete = result.isComplete
        self.findings = result.findings.map {
            Finding(path: $0.path, bytes: $0.byteCount, problem: $0.damage.description, removed: $0.isRemoved)
        }
    }

    var isGood: Bool { self.damaged == 0 && self.complete }

    var lines: [String] {
        let read = Readable.count(self.entries, "entry", "entries")
        let verdict = self.damaged == 0 ? "none is damaged" : "\(self.damaged) damaged"
        let summary =
            "read \(read), \(Readable.bytes(Int64(self.bytes))); \(verdict)\(self.complete ? "" : ", but not all could be read")"
        guard !self.findings.isEmpty else { return [summary] }
        let rows = self.findings.map { finding in
            [
                finding.path.printable, Readable.bytes(Int64(finding.bytes)), finding.removed ? "removed" : "kept",
                finding.problem.printable,
            ]
        }
        return TextTable.lines([["FILE", "SIZE", "", "PROBLEM"]] + rows) + ["", summary]
    }
}
