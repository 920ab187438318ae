// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype

/// `tintype load`: loads images and, if asked, writes them to files.
struct LoadCommand: Subcommand {
    static let name = "load"
    static let summary = "load images, and write them to files"
    static let flags = TransformArguments.flags.union([
        "--reload", "--revalidate", "--cache-only", "--json", "--no-progress", "--keep-metadata", "--still",
        "--lossless",
        "--progressive", "--optimize", "--strip", "--perfect",
    ])
    static let values = TransformArguments.values.union(["-o", "--format", "--quality", "--cache-dir"])
    static let help = """
        Loads images: from the disk cache, or from their origin. Without -o that fills the cache, and
        reports what came.

        Usage: tintype load <url|path>... [options]

          -o FILE|DIR           write the image to FILE, or several to DIR, named as their URLs are
          --format FORMAT       jpeg, png, webp or gif; default as the file's name says, else as loaded
          --quality N           1 to 100, for lossy formats; default 80
          --progressive         write a JPEG in scans from coarse to fine
          --still               of an animation only the first frame
          --keep-metadata       take EXIF and XMP over where the image is encoded anew, without
                                position, thumbnail and maker's notes
          --lossless            change JPEGs without decoding them, see below
          --cache-dir DIR       the disk cache; default ~/.cache/tintype
          --reload              load from the origin whatever is cached
          --revalidate          ask the origin whether what is cached is current, and load it again if not
          --cache-only          never ask the origin
          --json                one JSON object a line on standard output; errors are there, and on
                                standard error for people
          --no-progress         no bars on the terminal

        What is made of the image, in the order of the options:

        \(TransformArguments.help)

        Where nothing is made of the image, and no other format or quality is asked for, also not by
        the name of FILE, the bytes are written as they were loaded, with all that is in them.
        Animations stay animations in formats that have them: GIF, WebP and PNG.

        With --lossless a JPEG keeps each of its coefficients, and its metadata:

          --rotate ANGLE        90, 180 or 270, clockwise, or upright, as its EXIF block says
          --flip DIRECTION      horizontal or vertical, after the rotation
          --crop WxH+X+Y        cut out a rectangle, after both; WxH is at the top left
          --gray                keep the brightness only
          --progressive         write it in scans from coarse to fine
          --optimize            write it with Huffman tables of its own
          --strip               leave out metadata, but not the colour profile; --keep-metadata
                                leaves out position, thumbnail and maker's notes only
          --perfect             fail where a turn or a crop is not of whole blocks

        Whatever is turned or cropped is upright first. Blocks have 8 or 16 pixels a side. What is cut
        of one is left out where a turn would bring it to the left or to the top; a crop begins at a
        block, and grows for that. It is said where that happens.

        A file whose end is missing is an error, except for a GIF that ends behind a whole frame. Other
        damage in the data of a JPEG is a warning on standard error, and in "warnings" with --json; the
        image is as good as its data, and the command succeeds.
        """

    /// The loads that run at once.
    private static let concurrency = 4

    private let inputs: [Input]
    private let options: LoadCommandOptions
    private let writesJSON: Bool
    private let showsProgress: Bool

    init(_ arguments: ParsedArguments) throws(UsageError) {
        self.inputs = try arguments.requireInputs()
        self.options = try LoadCommandOptions(arguments, inputs: self.inputs)
        self.writesJSON = arguments.has("--json")
        self.showsProgress = !arguments.has("--no-progress")
    }

    func run() async throws -> Bool {
        let board = ProgressBoard(isEnabled: self.showsProgress)
        let loader = LoaderActor(configuration: await self.options.configuration.sparing())
        let job = LoadJob(loader: loader, options: self.options, board: board)
        return try await board.whileShown { try await self.loadAll(job, board) }
    }

    private func loadAll(_ job: LoadJob, _ board: ProgressBoard) async throws -> Bool {
        // Several load at once; results are printed in the order of the inputs.
        try await withThrowingTaskGroup(of: (Int, LoadResult).self) { group in
            var results: [Int: LoadResult] = [:]
            var ended = 0
            var printed = 0
            var succeeded = true
            var warnings: Set<String> = []
            var next = 0
            while printed < self.inputs.count {
                while next < self.inputs.count, next - ended < Self.concurrency {
                    let index = next
                    group.addTask { (index, try await job.run(self.inputs[index], index: index)) }
                    next += 1
                }
                guard let (index, result) = try await group.next() else { break }
                ended += 1
                results[index] = result
                while let result = results.removeValue(forKey: printed) {
                    if let warning = result.storeWarning, warnings.insert(warning).inserted {
                        board.tell("tintype: warning: \(warning)")
                    }
                    succeeded = try self.report(result, board) && succeeded
                    printed += 1
                }
            }
            // A store that failed has said it better.
            if warnings.isEmpty, let problem = self.cacheProblem {
                board.tell("tintype: warning: \(problem.printable)")
            }
            return succeeded
        }
    }

    /// Why nothing can be cached, where something would be.
    private var cacheProblem: String? {
        guard self.inputs.contains(where: { ["http", "https"].contains($0.url.scheme?.lowercased()) }) else {
            return nil
        }
        return self.options.configuration.disk.flatMap { CacheFolderCheck.problem($0) }
    }

    /// Prints a result; true when the load succeeded.
    private func report(_ result: LoadResult, _ board: ProgressBoard) throws -> Bool {
        switch result.outcome {
        case .success(let loaded):
            if let warnings = loaded.warnings {
                let (name, reasons) = (result.input.text.abbreviated, warnings.joined(separator: ", "))
                board.tell("tintype: warning: \(name) is damaged (\(reasons)); a part of the image may look wrong")
            }
            try board.line(self.writesJSON ? JSONLine.text(loaded) : loaded.line)
            return true
        case .failure(let error):
            let text = ErrorText(error)
            board.tell(text.line(for: result.input.text))
            if self.writesJSON {
                let failure = JSONFailure(url: result.input.text, error: text.line, code: text.code)
                try board.line(JSONLine.text(failure))
            }
            return false
        }
    }
}
