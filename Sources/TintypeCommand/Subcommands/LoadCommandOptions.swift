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
    /// What is made of each picture.
    let transforms: TransformArguments
    /// Whether of an animation only the first frame is wanted.
    let isStill: Bool
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
        self.format = try arguments.choice("--format", of: ["jpeg", "png", "webp", "gif"]).flatMap {
            ImageFormat(name: $0)
        }
        self.quality = try arguments.number("--quality", in: 1...100)
        self.transforms = try TransformArguments(arguments)
        self.isStill = arguments.has("--still")
        self.keepsMetadata = arguments.has("--keep-metadata")
        guard !self.keepsMetadata || self.output != nil else { throw UsageError("--keep-metadata needs -o") }
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
}
