import FoundationEssentials
import Glibc
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
        self.concurrency = try arguments.number("--concurrency", in: 1...64) ?? 3
        self.writesJSON = arguments.has("--json")
        self.board = ProgressBoard(output: .error, isEnabled: !arguments.has("--no-progress"))
        self.configuration = try LoadCommandOptions.configuration(arguments)
    }

    func run() async throws -> Bool {
        let lines = try self.readList()
        let inputs = lines.filter { $0.isOfNetwork }
        let clock = ContinuousClock()
        let start = clock.now
        let prefetcher = Prefetcher(
            loader: LoaderActor(configuration: await self.configuration.sparing()),
            concurrency: self.concurrency
        )
        let names = Dictionary(inputs.map { ($0.url, $0.text) }, uniquingKeysWith: { first, _ in first })
        let failures = try await self.board.whileShown {
            self.board.startList(of: lines.count, label: "prefetch")
            var totals = ListTotals(total: lines.count)
            for line in lines where !line.isOfNetwork {
                try self.report(.failure(Self.refusal(of: line)), name: line.text)
                totals.completed += 1
                totals.failed += 1
                self.board.updateList(totals)
            }
            let refusedCount = totals.failed
            for await progress in prefetcher.prefetch(inputs.map { ImageRequest(url: $0.url) }) {
                totals.completed = refusedCount + progress.completedCount
                totals.failed = refusedCount + progress.failedCount
                totals.receivedBytes = progress.receivedBytes
                self.board.updateList(totals)
                let request = progress.latest.request
                let name = names[request.url] ?? request.url.absoluteString
                try self.report(progress.latest.outcome, name: name)
            }
            return totals.failed
        }
        try Task.checkCancellation()
        if !self.writesJSON {
            let time = Readable.tenths(start.duration(to: clock.now) / .seconds(1))
            try Output.standard.line("\(lines.count - failures) of \(lines.count) are in the cache after \(time) s")
        }
        return failures == 0
    }

    /// Why a line can't be prefetched.
    private static func refusal(of line: Input) -> LoadError {
        guard line.isURL else {
            return LoadError(
                code: .invalidURL,
                message: "The line is no URL; write one URL a line, such as https://example.com/picture.jpg."
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

    private func readList() throws -> [Input] {
        try ListFile.read(self.list)
            .split(separator: UInt8(ascii: "\n"))
            .flatMap { line -> [Argument] in
                // Text may end its lines in other ways; a path that is no text has only this one.
                guard let text = String(validating: line, as: UTF8.self) else {
                    return [Argument(bytes: Self.trimmed(line) { [0x09, 0x0D, 0x20].contains($0) })]
                }
                return text.split(whereSeparator: \.isNewline).map {
                    Argument(String(Self.trimmed($0, \.isWhitespace)))
                }
            }
            .filter { !$0.bytes.isEmpty && $0.bytes.first != UInt8(ascii: "#") }
            .map { Input($0) }
    }

    /// Blanks at both ends are no part of an address.
    private static func trimmed<Line: BidirectionalCollection>(
        _ line: Line,
        _ isBlank: (Line.Element) -> Bool
    ) -> Line.SubSequence {
        guard let start = line.firstIndex(where: { !isBlank($0) }), let end = line.lastIndex(where: { !isBlank($0) })
        else { return line[line.endIndex...] }
        return line[start...end]
    }
}

/// A picture that is in the cache, as it is reported.
private struct Prefetched: Encodable {
    let url: String
    let source: String
    let bytes: Int
}
