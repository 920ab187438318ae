import FoundationEssentials
import Glibc
import Tintype

/// `tintype prefetch`: fills the disk cache from a list.
struct PrefetchCommand: Subcommand {
    static let name = "prefetch"
    static let summary = "fill the disk cache from a list of URLs"
    static let flags: Set = ["--json"]
    static let values: Set = ["--cache-dir", "--concurrency"]
    static let help = """
        Fills the disk cache from a list: one URL a line; empty lines and lines that begin
        with # are skipped. Nothing is decoded.

        Usage: tintype prefetch <file|-> [options]

          --cache-dir DIR       the disk cache; default ~/.cache/tintype
          --concurrency N       the downloads at once, 1 to 64; default 3
          --json                one JSON object a line on standard output
        """

    private let list: String
    private let concurrency: Int
    private let writesJSON: Bool
    private let configuration: LoaderActor.Configuration

    init(_ arguments: ParsedArguments) throws(UsageError) {
        self.list = try arguments.requireOperand("file, or -")
        self.concurrency = try arguments.number("--concurrency", in: 1...64) ?? 3
        self.writesJSON = arguments.has("--json")
        self.configuration = LoadCommandOptions.configuration(arguments)
    }

    func run() async throws -> Bool {
        let inputs = try self.readList()
        let clock = ContinuousClock()
        let start = clock.now
        let prefetcher = Prefetcher(
            loader: LoaderActor(configuration: self.configuration),
            concurrency: self.concurrency
        )
        let names = Dictionary(inputs.map { ($0.url, $0.text) }, uniquingKeysWith: { first, _ in first })
        var failures = 0
        for await result in prefetcher.prefetch(inputs.map { ImageRequest(url: $0.url) }) {
            let name = names[result.request.url] ?? result.request.url.absoluteString
            if try !self.report(result, name: name) { failures += 1 }
        }
        try Task.checkCancellation()
        if !self.writesJSON {
            let time = Readable.tenths(start.duration(to: clock.now) / .seconds(1))
            try Output.standard.line("\(inputs.count - failures) of \(inputs.count) are in the cache after \(time) s")
        }
        return failures == 0
    }

    /// Prints a result; true when the picture is in the cache.
    private func report(_ result: PrefetchResult, name: String) throws -> Bool {
        switch result.outcome {
        case .success(let loaded):
            if self.writesJSON {
                try JSONLine.print(Prefetched(url: name, source: loaded.source.rawValue, bytes: loaded.byteCount))
            }
            return true
        case .failure(is CancellationError):
            return false
        case .failure(let error):
            let text = ErrorText(error)
            Output.error.tell(text.line(for: name))
            if self.writesJSON { try JSONLine.print(JSONFailure(url: name, error: text.line, code: text.code)) }
            return false
        }
    }

    private func readList() throws -> [Input] {
        try String(decoding: ListFile.read(self.list), as: UTF8.self)
            .split(whereSeparator: \.isNewline)
            .map { line in
                // Blanks at both ends are no part of an address.
                let start = line.drop { $0.isWhitespace }
                return start.lastIndex { !$0.isWhitespace }.map { String(start[...$0]) } ?? ""
            }
            .filter { !$0.isEmpty && !$0.hasPrefix("#") }
            .map { Input($0) }
    }
}

/// A picture that is in the cache, as it is reported.
private struct Prefetched: Encodable {
    let url: String
    let source: String
    let bytes: Int
}
