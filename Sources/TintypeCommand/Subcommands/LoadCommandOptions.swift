// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Tintype

/// The meaning of the options of `tintype load`.
struct LoadCommandOptions: Sendable {
    let output: Argument?
    /// For each input, the name of its file in a folder, without the extension.
    let stems: [String]
    let writesToDirectory: Bool
    let format: ImageFormat?
    let quality: Int?
    /// The transforms of each image.
    let transforms: TransformArguments?
    /// Whether a JPEG is written in scans from coarse to fine.
    let isProgressive: Bool
    /// Whether of an animation only the first frame is wanted.
    let isStill: Bool
    let keepsMetadata: Bool
    /// The lossless transform, if one is asked for.
    let lossless: JPEGTransform?
    let configuration: LoaderActor.Configuration
    let loadOptions: LoadOptions
    let cachePolicy: CachePolicy?

    init(_ arguments: ParsedArguments, inputs: [Input]) throws(UsageError) {
        self.output = arguments.file("-o")
        guard self.output?.text != "-" else {
            throw UsageError("standard output carries the report; name a file or a folder after -o")
        }
        self.stems = Input.distinctStems(of: inputs)
        let isDirectory = self.output.map { $0.bytes.last == UInt8(ascii: "/") || OutputFile.isDirectory($0) } ?? false
        guard self.output == nil || isDirectory || inputs.count == 1 else {
            throw UsageError("-o must name a folder for several images; end it with /")
        }
        self.writesToDirectory = isDirectory
        self.format = try arguments.choice("--format", of: Self.writtenFormats).flatMap { ImageFormat(name: $0) }
        self.quality = try arguments.number("--quality", in: 1...100)
        self.transforms = try arguments.has("--lossless") ? nil : TransformArguments(arguments)
        self.isProgressive = arguments.has("--progressive")
        self.isStill = arguments.has("--still")
        self.keepsMetadata = arguments.has("--keep-metadata")
        let ofFiles = ["--format", "--quality", "--keep-metadata", "--lossless", "--progressive", "--still"]
        if self.output == nil, let option = ofFiles.first(where: { arguments.has($0) || arguments.value($0) != nil }) {
            throw UsageError("\(option) needs -o")
        }
        self.lossless = try Self.lossless(arguments)
        if self.lossless != nil, let output, !isDirectory, let format = Self.format(named: output), format != .jpeg {
            throw UsageError("--lossless writes JPEG, and -o names a file of \(format.name)")
        }
        if let output, !isDirectory, self.format == nil, let named = Self.format(named: output),
            !Self.writtenFormats.contains(named.name)
        {
            throw UsageError(
                "\(output.text) is named as \(named), which is not written; name it as one of "
                    + "\(Self.writtenFormats.joined(separator: ", ")), or choose one with --format"
            )
        }
        self.configuration = try Self.configuration(arguments)
        self.cachePolicy = try Self.cachePolicy(arguments)
        var options: LoadOptions = [.waitForStore]
        if self.output != nil { options.insert(.keepData) }
        self.loadOptions = options
    }

    /// The names of the formats that can be written.
    private static let writtenFormats = ["jpeg", "png", "webp", "gif"]

    /// The format that the name of a file stands for.
    static func format(named path: Argument) -> ImageFormat? {
        ImageFormat(fileExtension: URL(filePath: path.text).pathExtension)
    }

    /// The loader's configuration with the cache folder of `--cache-dir`.
    static func configuration(_ arguments: ParsedArguments) throws(UsageError) -> LoaderActor.Configuration {
        var configuration = LoaderActor.Configuration()
        if let argument = arguments.file("--cache-dir") {
            guard let directory = argument.exactText else {
                throw UsageError("the name of the cache folder is not UTF-8; choose another")
            }
            configuration.disk?.directory = URL(filePath: directory, directoryHint: .isDirectory)
        }
        let hasWarned = Atomic<Bool>(false)
        configuration.disk?.storeErrorHandler = { error in
            guard error.code == .cacheNotPrivate, !hasWarned.exchange(true, ordering: .relaxed) else { return }
            Output.error.tell("tintype: warning: \(error.message.printable)")
        }
        return configuration
    }

    private static func cachePolicy(_ arguments: ParsedArguments) throws(UsageError) -> CachePolicy? {
        let policies: [(flag: String, policy: CachePolicy)] = [
            ("--reload", .reload), ("--revalidate", .revalidate), ("--cache-only", .cacheOnly),
        ]
        let chosen = policies.filter { arguments.has($0.flag) }
        guard chosen.count <= 1 else {
            throw UsageError("\(chosen[0].flag) and \(chosen[1].flag) contradict each other")
        }
        return chosen.first?.policy
    }

    /// Returns the lossless transform of `--lossless` and the options that it permits.
    private static func lossless(_ arguments: ParsedArguments) throws(UsageError) -> JPEGTransform? {
        guard arguments.has("--lossless") else {
            let own = ["--optimize", "--strip", "--perfect"]
            guard let option = own.first(where: { arguments.has($0) }) else { return nil }
            throw UsageError("\(option) needs --lossless")
        }
        let changes = try ImageChanges(arguments)
        let lossy = TransformArguments.flags.union(TransformArguments.values).union(["--quality", "--still"])
            .subtracting(["--rotate", "--flip", "--crop", "--gray"])
        if let given = arguments.order.first(where: { lossy.contains($0.option) }) {
            throw UsageError("\(given.option) cannot be done without loss; leave out --lossless")
        }
        if let format = arguments.value("--format"), format != "jpeg" {
            throw UsageError("an image cannot become \(format) without loss of its coefficients; leave out --lossless")
        }
        if arguments.has("--strip"), arguments.has("--keep-metadata") {
            throw UsageError("--strip and --keep-metadata contradict each other")
        }
        for option in ["--rotate", "--flip", "--crop"] where arguments.order.count(where: { $0.option == option }) > 1 {
            throw UsageError("\(option) can be given once with --lossless; give what all of them make")
        }
        return JPEGTransform(
            turnsUpright: !changes.options.isEmpty,
            turn: changes.turn,
            crop: changes.crop,
            isPerfect: arguments.has("--perfect"),
            isGray: arguments.has("--gray"),
            coding: arguments.has("--progressive")
                ? .progressive : arguments.has("--optimize") ? .optimizedTables : .stored,
            metadata: arguments.has("--strip") ? .none : arguments.has("--keep-metadata") ? .carriedOver : .all
        )
    }
}
