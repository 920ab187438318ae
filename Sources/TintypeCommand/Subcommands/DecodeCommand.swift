import FoundationEssentials
import Tintype

/// `tintype decode`: writes the pixels of a file as raw RGBA.
struct DecodeCommand: Subcommand {
    static let name = "decode"
    static let summary = "write the pixels of a file as raw RGBA"
    static let flags: Set = ["--ignore-orientation", "--ignore-profile", "--allow-truncated"]
    static let values: Set = ["--raw", "--frame"]
    static let help = """
        Writes the pixels of a file as rows of straight-alpha RGBA, 8 bits a sample, without
        padding, and prints WIDTHxHEIGHT.

        Usage: tintype decode <path> --raw FILE [options]

          --raw FILE            where the pixels go
          --frame N             the frame of an animation, from 0 on, as composited; default 0
          --ignore-orientation  keep the stored frame instead of turning it upright
          --ignore-profile      keep the stored samples instead of converting them to sRGB
          --allow-truncated     decode a file whose end is missing as far as it goes
        """

    private let path: String
    private let url: URL
    private let target: Argument
    private let options: DecodeOptions
    private let ignoresOrientation: Bool

    init(_ arguments: ParsedArguments) throws(UsageError) {
        let input = try Input(argument: arguments.requireOperand("path"))
        self.path = input.text
        guard input.url.isFileURL else {
            throw UsageError("decode reads files; load the picture first: tintype load URL -o FILE")
        }
        self.url = input.url
        guard let target = arguments.file("--raw") else { throw UsageError("--raw FILE is missing; see --help") }
        self.target = target
        self.options = DecodeOptions(
            allowsTruncated: arguments.has("--allow-truncated"),
            frame: try arguments.number("--frame", in: 0...Int.max) ?? 0,
            color: arguments.has("--ignore-profile") ? .ignore : .convert(.relativeColorimetric)
        )
        self.ignoresOrientation = arguments.has("--ignore-orientation")
    }

    func run() async throws -> Bool {
        let size: String
        do {
            var configuration = LoaderActor.Configuration()
            configuration.disk = nil
            let loader = LoaderActor(configuration: configuration)
            let data = try await loader.data(for: ImageRequest(url: self.url))
            let decoder = try ImageDecoder(data, registry: configuration.coders, limits: self.options.limits)
            let stored = try decoder.decodeStored(options: self.options).image
            let image = try decoder.finish(stored, options: self.options, turnsUpright: !self.ignoresOrientation)
            try OutputFile.write(Self.rgba(image.pixels), to: self.target)
            size = "\(image.width)x\(image.height)"
        } catch let error as CancellationError {
            throw error
        } catch {
            Output.error.tell(ErrorText(error).line(for: self.path))
            return false
        }
        try Output.standard.line(size)
        return true
    }

    /// The pixels as RGBA rows without padding.
    private static func rgba(_ pixels: PixelBuffer) -> Data {
        let plane = pixels.layout.planes[0]
        let channels = pixels.format.channelCount
        var bytes = [UInt8](repeating: 255, count: pixels.width * pixels.height * 4)
        pixels.withBytes { source in
            for row in 0..<pixels.height {
                for column in 0..<pixels.width {
                    let from = row * plane.bytesPerRow + column * channels
                    let to = (row * pixels.width + column) * 4
                    for channel in 0..<3 {
                        bytes[to + channel] = source.unsafeLoad(
                            fromByteOffset: from + (channels == 1 ? 0 : channel),
                            as: UInt8.self
                        )
                    }
                    if channels == 4 { bytes[to + 3] = source.unsafeLoad(fromByteOffset: from + 3, as: UInt8.self) }
                }
            }
        }
        return Data(bytes)
    }
}
