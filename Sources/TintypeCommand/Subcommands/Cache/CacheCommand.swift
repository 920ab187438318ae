// SPDX-License-Identifier: Apache-2.0

import Tintype

/// `tintype cache`: looks after the disk cache.
struct CacheCommand: Subcommand {
    static let name = "cache"
    static let summary = "show, check, empty or tidy the disk cache"
    static let flags: Set = ["--json", "--keep"]
    static let values: Set = ["--cache-dir"]
    static let help = """
        Looks after the disk cache.

        Usage: tintype cache stats|clear|prune|verify [options]

          stats                 how many entries and bytes there are
          clear                 remove all entries
          prune                 remove what is expired or has a broken header, and leftovers
          verify                read every entry, report the damaged ones and remove them;
                                the exit code is 1 where there were any

          --cache-dir DIR       the disk cache; default ~/.cache/tintype
          --keep                let verify only report
          --json                one JSON object on standard output
        """

    private enum Action: String, CaseIterable {
        case stats, clear, prune, verify
    }

    private let action: Action
    private let writesJSON: Bool
    private let keepsDamaged: Bool
    private let configuration: DiskCache.Configuration

    init(_ arguments: ParsedArguments) throws(UsageError) {
        let name = try arguments.requireOperand("of stats, clear, prune and verify").text
        guard let action = Action(rawValue: name) else {
            throw UsageError("the cache knows stats, clear, prune and verify, and not \(name)")
        }
        self.action = action
        self.writesJSON = arguments.has("--json")
        self.keepsDamaged = arguments.has("--keep")
        if self.keepsDamaged, action != .verify { throw UsageError("--keep is for verify only") }
        self.configuration = try LoadCommandOptions.configuration(arguments).disk ?? DiskCache.Configuration()
    }

    func run() async throws -> Bool {
        if let problem = CacheFolderCheck.problem(self.configuration) { throw OutputError(message: problem) }
        let absence = CacheFolderCheck.absence(self.configuration)
        // A cache that is opened makes its catalogue in the folder.
        let report = absence == nil ? try await self.perform() : self.reportOfNothing
        if self.writesJSON {
            try JSONLine.print(report)
        } else {
            for line in report.lines { try Output.standard.line(line) }
        }
        if let absence { Output.error.tell("tintype: note: \(absence.printable)") }
        return report.isGood
    }

    private func perform() async throws -> any CacheReport {
        let cache = DiskCache(await self.configuration.sparing())
        let report = try await self.perform(on: cache)
        await cache.shutdown()
        return report
    }

    private var reportOfNothing: any CacheReport {
        let nothing = StatisticsReport(ofNoCacheIn: self.configuration)
        return switch self.action {
        case .stats: nothing
        case .clear: ClearReport(nothing)
        case .prune: PruneReport(PruneResult(), nothing)
        case .verify: VerifyReport(VerifyResult(), directory: nothing.directory)
        }
    }

    private func perform(on cache: DiskCache) async throws -> any CacheReport {
        switch self.action {
        case .stats:
            return StatisticsReport(await cache.statistics())
        case .clear:
            let before = StatisticsReport(await cache.statistics())
            // The space must be free when the command ends.
            try await cache.removeAll(waitingForDeletion: true)
            return ClearReport(before)
        case .prune:
            let result = await cache.prune()
            return PruneReport(result, StatisticsReport(await cache.statistics()))
        case .verify:
            let result = await cache.verify(removingDamaged: !self.keepsDamaged)
            return VerifyReport(result, directory: await cache.statistics().directory)
        }
    }
}
