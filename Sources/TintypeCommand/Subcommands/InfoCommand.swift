// SPDX-License-Identifier: Apache-2.0

import Tintype

/// `tintype info`: says what images are, without decoding them.
struct InfoCommand: Subcommand {
    static let name = "info"
    static let summary = "say what images are, without decoding them"
    static let flags: Set = ["--json"]
    static let values: Set<String> = []
    static let help = """
        Says what images are: format, size, orientation, frames, colour profile; and how they were
        taken: camera, date, position, pixels an inch.

        Usage: tintype info <url|path>... [--json]

          --json                one JSON object a line on standard output; errors are there, and on
                                standard error for people

        Pixels are not decoded, and nothing is cached.
        """

    private let inputs: [Input]
    private let writesJSON: Bool

    init(_ arguments: ParsedArguments) throws(UsageError) {
        self.inputs = try arguments.requireInputs()
        self.writesJSON = arguments.has("--json")
    }

    func run() async throws -> Bool {
        var configuration = LoaderActor.Configuration()
        configuration.disk = nil
        let loader = LoaderActor(configuration: configuration)
        var succeeded = true
        for input in self.inputs {
            let decoder: ImageDecoder
            let metadata: ImageMetadata
            do {
                let data = try await loader.data(for: ImageRequest(url: input.url))
                decoder = try ImageDecoder(data, registry: configuration.coders, limits: configuration.limits)
                metadata = try decoder.metadata()
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
            let info = ImageInfo(path: input.text, header: decoder.header, metadata: metadata)
            if self.writesJSON {
                try JSONLine.print(info)
            } else {
                try Output.standard.line(info.line)
            }
        }
        return succeeded
    }
}

/// The reported properties of an image, from its header.
private struct ImageInfo: Encodable {
    private enum CodingKeys: String, CodingKey {
        case path, format, width, height, pixelWidth, pixelHeight, orientation, frames, loopCount, durations, hasAlpha
        case bitDepth, colorProfile, cameraMake, cameraModel, lensModel, dateTaken, position, density
    }

    private struct Position: Encodable {
        let latitude: Double
        let longitude: Double
        let altitude: Double?
    }

    private struct Density: Encodable {
        let horizontal: Double
        let vertical: Double
        let unit: String
    }

    let path: String
    let header: ImageHeader
    let metadata: ImageMetadata

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
        // Missing values are `null` instead of missing keys.
        try container.encode(self.header.colorProfileDescription, forKey: .colorProfile)
        try container.encode(self.metadata.cameraMake, forKey: .cameraMake)
        try container.encode(self.metadata.cameraModel, forKey: .cameraModel)
        try container.encode(self.metadata.lensModel, forKey: .lensModel)
        try container.encode(self.metadata.dateTaken?.description, forKey: .dateTaken)
        let position = self.metadata.position.map {
            Position(latitude: $0.latitude, longitude: $0.longitude, altitude: $0.altitude)
        }
        try container.encode(position, forKey: .position)
        let density = self.metadata.density.map {
            Density(horizontal: $0.horizontal, vertical: $0.vertical, unit: $0.unit.rawValue)
        }
        try container.encode(density, forKey: .density)
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
        parts += self.takenParts
        return "\(self.path.abbreviated): \(parts.joined(separator: ", "))"
    }

    /// How the image was taken; all of it is a stranger's text.
    private var takenParts: [String] {
        var parts: [String] = []
        if let camera = self.camera { parts.append("by \(camera.printable.shortened(to: 80))") }
        if let date = self.metadata.dateTaken { parts.append("taken \(date)") }
        if let position = self.metadata.position {
            let (latitude, longitude) = (Self.degrees(position.latitude), Self.degrees(position.longitude))
            parts.append("at \(latitude), \(longitude)")
        }
        if let density = self.metadata.density {
            let (across, down) = density.pixelsPerInch
            let (columns, rows) = (Readable.tenths(across), Readable.tenths(down))
            parts.append(columns == rows ? "\(columns) pixels an inch" : "\(columns) by \(rows) pixels an inch")
        }
        return parts
    }

    /// Maker and model; many models begin with their makers.
    private var camera: String? {
        guard let make = self.metadata.cameraMake else { return self.metadata.cameraModel }
        guard let model = self.metadata.cameraModel else { return make }
        return model.lowercased().hasPrefix(make.lowercased()) ? model : "\(make) \(model)"
    }

    /// With five digits behind the point: a metre.
    private static func degrees(_ value: Double) -> String {
        let scaled = Int((abs(value) * 100_000).rounded())
        let digits = String(scaled % 100_000)
        let sign = value < 0 && scaled > 0 ? "-" : ""
        return "\(sign)\(scaled / 100_000).\(String(repeating: "0", count: 5 - digits.count))\(digits)"
    }
}
