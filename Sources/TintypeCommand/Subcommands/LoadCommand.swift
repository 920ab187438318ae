import FoundationEssentials
import Tintype

/// `tintype load`: loads pictures and, if asked, writes them to files.
struct LoadCommand: Subcommand {
    static let name = "load"
    static let summary = "load pictures, and write them to files"
    static let flags: Set = ["--refresh", "--cache-only", "--json", "--no-progress"]
    static let values: Set = ["-o", "--format", "--quality", "--resize", "--mode", "--cache-dir"]
    static let help = """
        Loads pictures: from the disk cache, or from their origin.

        Usage: tintype load <url|path>... [options]

          -o FILE|DIR           write the picture to FILE, or several to DIR
          --format FORMAT       jpeg, png, webp or gif; default as the file's name says, else as loaded
          --quality N           1 to 100, for lossy formats; default 80
          --resize WxH          bring the picture to a box; never enlarges
          --mode MODE           how the box is met: fit (default), fill or stretch
          --cache-dir DIR       the disk cache; default under the XDG cache directory
          --refresh             load from the origin whatever is cached
          --cache-only          never ask the origin
          --json                one JSON object a line on standard output
          --no-progress         no bars on the terminal

        Without --format, --quality and --resize the bytes are written as they were loaded.
        """

    /// The loads that run at once.
    private static let concurrency = 4

    private let inputs: [Input]
    private let options: LoadCommandOptions
    private let writesJSON: Bool
    private let showsProgress: Bool

    init(_ arguments: ParsedArguments) throws(UsageError) {
        self.inputs = try arguments.requireOperands("a URL or a path").map { Input($0) }
        self.options = try LoadCommandOptions(arguments, inputCount: self.inputs.count)
        self.writesJSON = arguments.has("--json")
        self.showsProgress = !arguments.has("--no-progress")
    }

    func run() async throws -> Bool {
        let board = ProgressBoard(output: .error, isEnabled: self.showsProgress)
        let loader = LoaderActor(configuration: self.options.configuration)
        let job = LoadJob(loader: loader, options: self.options, board: board)
        // Several load at once; results are printed in the order of the inputs.
        return try await withThrowingTaskGroup(of: (Int, LoadResult).self) { group in
            var results: [Int: LoadResult] = [:]
            var printed = 0
            var succeeded = true
            var next = 0
            while printed < self.inputs.count {
                while next < self.inputs.count, next - printed < Self.concurrency {
                    let index = next
                    group.addTask { (index, try await job.run(self.inputs[index], index: index)) }
                    next += 1
                }
                guard let (index, result) = try await group.next() else { break }
                results[index] = result
                while let result = results.removeValue(forKey: printed) {
                    succeeded = try self.report(result, board) && succeeded
                    printed += 1
                }
            }
            return succeeded
        }
    }

    /// Prints a result; true when the load succeeded.
    private func report(_ result: LoadResult, _ board: ProgressBoard) throws -> Bool {
        if let warning = result.warning { board.line("tintype: warning: \(warning)", to: .error) }
        switch result.outcome {
        case .success(let loaded):
            board.line(self.writesJSON ? try JSONLine.text(loaded) : loaded.line, to: .standard)
            return true
        case .failure(let error):
            let text = ErrorText(error)
            board.line("tintype: \(result.input.text): \(text.line)", to: .error)
            if self.writesJSON {
                let failure = JSONFailure(url: result.input.text, error: text.line, code: text.code)
                board.line(try JSONLine.text(failure), to: .standard)
            }
            return false
        }
    }
}
