import FoundationEssentials
import Tintype

/// What the options of `tintype load` ask for.
struct LoadCommandOptions: Sendable {
    let output: Argument?
    /// For each input, the name of its file in a folder, without the extension.
    let stems: [String]
    let writesToDirectory: Bool
    let format: ImageFormat?
    let quality: Int?
    let resize: Resize?
    let keepsMetadata: Bool
    /// What is done without decoding, where that is asked for.
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
            throw UsageError("-o must name a folder for several pictures; end it with /")
        }
        self.writesToDirectory = isDirectory
        self.format = try arguments.choice("--format", of: ["jpeg", "png", "webp", "gif"]).flatMap {
            ImageFormat(name: $0)
        }
        self.quality = try arguments.number("--quality", in: 1...100)
        self.resize = try Self.resize(arguments)
        self.keepsMetadata = arguments.has("--keep-metadata")
        guard !self.keepsMetadata || self.output != nil else { throw UsageError("--keep-metadata needs -o") }
        let changes = try PictureChanges(arguments)
        self.lossless = try Self.lossless(arguments, changes)
        guard self.lossless == nil || self.output != nil else { throw UsageError("--lossless needs -o") }
        if self.lossless != nil, !self.writesToDirectory, let output = self.output?.text,
            let format = ImageFormat(fileExtension: URL(filePath: output).pathExtension), format != .jpeg
        {
            throw UsageError("--lossless writes JPEG, and -o names a file of \(format.name)")
        }
        self.configuration = try Self.configuration(arguments)
        self.cachePolicy = try Self.cachePolicy(arguments)
        var options: LoadOptions = [.waitForStore]
        if self.output != nil { options.insert(.keepData) }
        self.loadOptions = options
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

    /// What `--lossless` asks for, with all that can be done so.
    private static func lossless(
        _ arguments: ParsedArguments,
        _ changes: PictureChanges
    ) throws(UsageError) -> JPEGTransform? {
        guard arguments.has("--lossless") else {
            let own = ["--gray", "--progressive", "--optimize", "--strip", "--perfect"]
            let given = changes.options + own.filter { arguments.has($0) }
            guard let option = given.first else { return nil }
            throw UsageError("\(option) needs --lossless")
        }
        for option in ["--resize", "--quality"] where arguments.value(option) != nil {
            throw UsageError("\(option) can't be done without loss; leave out --lossless")
        }
        if let format = arguments.value("--format"), format != "jpeg" {
            throw UsageError("a picture can't become \(format) without loss of its coefficients; leave out --lossless")
        }
        let pairs = [("--progressive", "--optimize"), ("--strip", "--keep-metadata")]
        for (first, second) in pairs where arguments.has(first) && arguments.has(second) {
            throw UsageError("\(first) and \(second) contradict each other")
        }
        return JPEGTransform(
            turnsUpright: !changes.options.isEmpty,
            turn: changes.turn,
            crop: changes.crop.map { JPEGTransform.Crop(x: $0.x, y: $0.y, width: $0.width, height: $0.height) },
            isPerfect: arguments.has("--perfect"),
            isGray: arguments.has("--gray"),
            coding: arguments.has("--progressive")
                ? .progressive : arguments.has("--optimize") ? .optimizedTables : .stored,
            metadata: arguments.has("--strip") ? .none : arguments.has("--keep-metadata") ? .carriedOver : .all
        )
    }

    private static func resize(_ arguments: ParsedArguments) throws(UsageError) -> Resize? {
        let mode = try arguments.choice("--mode", of: Resize.Mode.allCases.map(\.rawValue))
        guard let text = arguments.value("--resize") else {
            guard mode == nil else { throw UsageError("--mode needs --resize") }
            return nil
        }
        let sides = text.split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
        guard sides.count == 2, let width = sides[0], let height = sides[1], width > 0, height > 0 else {
            throw UsageError("--resize takes a size such as 400x300, and not \(text)")
        }
        return Resize(width: width, height: height, mode: mode.flatMap { Resize.Mode(rawValue: $0) } ?? .fit)
    }
}
