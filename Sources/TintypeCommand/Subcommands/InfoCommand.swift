import FoundationEssentials
import Tintype

/// `tintype info`: says what pictures are, without decoding them.
struct InfoCommand: Subcommand {
    static let name = "info"
    static let summary = "say what pictures are, without decoding them"
    static let flags: Set = ["--json"]
    static let values: Set<String> = []
    static let help = """
        Says what pictures are: format, size, orientation, frames, colour profile.

        Usage: tintype info <url|path>... [--json]

          --json                one JSON object a line on standard output

        Pixels are not decoded, and nothing is cached.
        """

    private let inputs: [Input]
    private let writesJSON: Bool

    init(_ arguments: ParsedArguments) throws(UsageError) {
        self.inputs = try arguments.requireOperands("a URL or a path").map { argument throws(UsageError) in
            try Input(argument: argument)
        }
        self.writesJSON = arguments.has("--json")
    }

    func run() async throws -> Bool {
        var configuration = LoaderActor.Configuration()
        configuration.disk = nil
        let loader = LoaderActor(configuration: configuration)
        var succeeded = true
        for input in self.inputs {
            let header: ImageHeader
            do {
                header = try await loader.header(for: ImageRequest(url: input.url))
            } catch let error as CancellationError {
                throw error
            } catch {
                let text = ErrorText(error)
                Output.error.tell(text.line(for: input.text))
                if self.writesJSON {
                    try JSONLine.print(JSONFailure(path: input.text, error: text.line, code: text.code))
                }
                succeeded = false
                continue
            }
            let info = PictureInfo(path: input.text, header: header)
            if self.writesJSON {
                try JSONLine.print(info)
            } else {
                try Output.standard.line(info.line)
            }
        }
        return succeeded
    }
}

/// What is known of a picture from its header, as it is reported.
private struct PictureInfo: Encodable {
    private enum CodingKeys: String, CodingKey {
        case path, format, width, height, pixelWidth, pixelHeight, orientation, frames, loopCount, durations, hasAlpha
        case bitDepth, colorProfile
    }

    let path: String
    let header: ImageHeader

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(self.path, forKey: .path)
        try container.encode(self.header.format.name, forKey: .format)
        try container.encode(self.header.uprightSize.width, forKey: .width)
        try container.encode(self.header.uprightSize.height, forKey: .height)
        try container.encode(self.header.pixelWidth, forKey: .pixelWidth)
        try container.encode(self.header.pixelHeight, forKey: .pixelHeight)
        try container.encode(self.header.orientation.rawValue, forKey: .orientation)
        try container.encode(self.header.animation.frameCount, forKey: .frames)
        try container.encode(self.header.animation.loopCount, forKey: .loopCount)
        try container.encode(self.header.animation.durations, forKey: .durations)
        try container.encode(self.header.hasAlpha, forKey: .hasAlpha)
        try container.encode(self.header.bitDepth, forKey: .bitDepth)
        // A missing profile is `null`, not a missing key.
        try container.encode(self.header.colorProfileDescription, forKey: .colorProfile)
    }

    /// The report for people.
    var line: String {
        let size = self.header.uprightSize
        var parts = ["\(self.header.format.name) \(size.width)x\(size.height)", "\(self.header.bitDepth) bits"]
        if self.header.orientation != .up {
            parts.append("stored with orientation \(self.header.orientation.rawValue)")
        }
        if self.header.hasAlpha { parts.append("alpha") }
        let animation = self.header.animation
        if !animation.durations.isEmpty {
            let loops = animation.loopCount == 0 ? "forever" : Readable.count(animation.loopCount, "time", "times")
            parts.append("\(animation.frameCount) frames in \(animation.durations.reduce(0, +)) ms, \(loops)")
        }
        if let profile = self.header.colorProfileDescription { parts.append("profile \(profile.printable)") }
        return "\(self.path.abbreviated): \(parts.joined(separator: ", "))"
    }
}
