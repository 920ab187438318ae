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
        self.format = try arguments.choice("--format", of: Self.writtenFormats).flatMap { ImageFormat(name: $0) }
        self.quality = try arguments.number("--quality", in: 1...100)
        self.resize = try Self.resize(arguments)
        self.keepsMetadata = arguments.has("--keep-metadata")
        let ofFiles = ["--format", "--quality", "--keep-metadata"]
        if self.output == nil, let option = ofFiles.first(where: { arguments.has($0) || arguments.value($0) != nil }) {
            throw UsageError("\(option) needs -o")
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
