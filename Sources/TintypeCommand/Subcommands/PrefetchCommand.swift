// SPDX-License-Identifier: Apache-2.0

import Tintype

/// `tintype prefetch`: fills the disk cache from a list.
struct PrefetchCommand: Subcommand {
    static let name = "prefetch"
    static let summary = "fill the disk cache from a list of URLs"
    static let flags: Set = ["--json", "--no-progress"]
    static let values: Set = ["--cache-dir", "--concurrency"]
    static let help = """
        Fills the disk cache from a list: one URL of the network a line; empty lines and lines that
        begin with # are skipped. Nothing is decoded. Files are never cached, and so an error here.
        Loads begin while the list is read, which may be endless.

        Usage: tintype prefetch <file|-> [options]

          --cache-dir DIR       the disk cache; default ~/.cache/tintype
          --concurrency N       the downloads at once, 1 to 64; default 3
          --json                one JSON object a line on standard output; errors stay on standard
                                error as well, for people
          --no-progress         no progress bar
        """

    private let list: Argument
    private let concurrency: Int
    private let writesJSON: Bool
    private let board: ProgressBoard
    private let configuration: LoaderActor.Configuration

    init(_ arguments: ParsedArguments) throws(UsageError) {
        self.list = try arguments.requireOperand("file, or -")
        guard !self.list.bytes.isEmpty else { throw UsageError("the name of the list is empty; name a file, or -") }
        self.concurrency = try arguments.number("--concurrency", in: 1...64) ?? 3
        self.writesJSON = arguments.has("--json")
        self.board = ProgressBoard(isEnabled: !arguments.has("--no-progress"))
        self.configuration = try LoadCommandOptions.configuration(arguments)
    }

    func run() async throws -> Bool {
        let clock = ContinuousClock()
        let start = clock.now
        let reader = try ListReader(self.list)
        let prefetcher = Prefetcher(
            loader: LoaderActor(configuration: await self.configuration.sparing()),
            concurrency: self.concurrency
        )
        let totals = try await self.board.whileShown { try await self.prefetch(reader, prefetcher) }
        try Task.checkCancellation()
        if !self.writesJSON {
            let time = Readable.tenths(start.duration(to: clock.now) / .seconds(1))
            let count = totals.completed
            try Output.standard.line("\(count - totals.failed) of \(count) are in the cache after \(time) s")
        }
        return totals.failed == 0
    }

    /// An event while a list is prefetched.
    private enum Step: Sendable {
        case read(ListReader.Line?)
        case loaded(PrefetchProgress?, name: String)
    }

    /// Loads the list while it is read, and reads a line only when there is a place for its load.
    private func prefetch(_ reader: ListReader, _ prefetcher: Prefetcher) async throws -> ListTotals {
        self.board.startList(label: "prefetch")
        return try await withThrowingTaskGroup(of: Step.self) { group in
            var totals = ListTotals()
            var loadCount = 0
            var hasURL = false
            group.addTask { .read(try await reader.next()) }
            while let step = try await group.next() {
                var readsOn = false
                switch step {
                case .read(nil):
                    totals.total = totals.completed + loadCount
                case .read(let line?):
                    totals.total = line.count
                    let input = Input(line.text)
                    hasURL = hasURL || input.isURL
                    if input.isOfNetwork {
                        loadCount += 1
                        readsOn = loadCount < self.concurrency
                        group.addTask { .loaded(await Self.load(input, prefetcher), name: input.text) }
                    } else {
                        try self.report(.failure(Self.refusal(of: input)), name: input.text)
                        totals.completed += 1
                        totals.failed += 1
                        guard hasURL || totals.failed < Self.maximumLinesBeforeURL else { throw Self.notAList(reader) }
                        readsOn = true
                    }
                case .loaded(let progress, let name):
                    readsOn = loadCount == self.concurrency
                    loadCount -= 1
                    // A load that was cancelled has no result.
                    guard let progress else { break }
                    totals.completed += 1
                    totals.failed += progress.failedCount
                    totals.receivedBytes += progress.receivedBytes
                    try self.report(progress.latest.outcome, name: name)
                }
                self.board.updateList(totals)
                if readsOn { group.addTask { .read(try await reader.next()) } }
            }
            return totals
        }
    }

    private static func load(_ input: Input, _ prefetcher: Prefetcher) async -> PrefetchProgress? {
        for await progress in prefetcher.prefetch([ImageRequest(url: input.url)]) { return progress }
        return nil
    }

    /// After so many lines without a URL, the file is taken for something else than a list.
    private static let maximumLinesBeforeURL = 20

    private static func notAList(_ reader: ListReader) -> ListError {
        ListError(
            message: "The first \(self.maximumLinesBeforeURL) lines of the list \(reader.name) are not URLs, and the "
                + "rest is not read; give it one URL a line."
        )
    }

    /// Why a line cannot be prefetched.
    private static func refusal(of line: Input) -> LoadError {
        guard line.isURL else {
            return LoadError(
                code: .invalidURL,
                message: "The line is not a URL; write one URL a line, such as https://example.com/image.jpg."
            )
        }
        return LoadError(
            code: .unsupportedScheme,
            message: "Only what comes over the network is cached; files and data URLs are read where they are."
        )
    }

    private func report(_ outcome: Result<PrefetchResult.Loaded, any Error>, name: String) throws {
        switch outcome {
        case .success(let loaded):
            if self.writesJSON {
                let line = Prefetched(url: name, source: loaded.source.rawValue, bytes: loaded.byteCount)
                try self.board.line(JSONLine.text(line))
            }
        case .failure(is CancellationError):
            break
        case .failure(let error):
            let text = ErrorText(error)
            self.board.tell(text.line(for: name))
            if self.writesJSON {
                try self.board.line(JSONLine.text(JSONFailure(url: name, error: text.line, code: text.code)))
            }
        }
    }
}

/// An image that is in the cache, as it is reported.
private struct Prefetched: Encodable {
    let url: String
    let source: String
    let bytes: Int
}
