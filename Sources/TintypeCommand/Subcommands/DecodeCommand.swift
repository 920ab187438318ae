// SPDX-License-Identifier: Apache-2.0

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

          --raw FILE            where the pixels go; - is standard output, and then WIDTHxHEIGHT is on
                                standard error
          --frame N             the frame of an animation, from 0 on, as composited; default 0
          --ignore-orientation  keep the stored frame instead of turning it upright
          --ignore-profile      keep the stored samples instead of converting them to sRGB
          --allow-truncated     decode a file that is cut off or damaged as far as it goes, with a
                                warning: what is missing is black, or transparent
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
            throw UsageError("decode reads files; load the image first: tintype load URL -o FILE")
        }
        self.url = input.url
        guard let target = arguments.file("--raw") else { throw UsageError("--raw FILE is missing; see --help") }
        // Raw pixels may form control characters: the author of the file chose them.
        guard target.text != "-" || !Output.standard.isTerminal else {
            throw UsageError("standard output is a terminal; send the pixels to a file or a pipe")
        }
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
            let stored = try self.decode(decoder)
            let image = try decoder.finish(stored, options: self.options, turnsUpright: !self.ignoresOrientation)
            try self.write(image.pixels)
            size = "\(image.width)x\(image.height)"
        } catch let error as CancellationError {
            throw error
        } catch let error as OutputError where error.isReaderGone {
            throw error
        } catch {
            Output.error.tell(ErrorText(error).line(for: self.path))
            return false
        }
        if self.writesToStandardOutput { Output.error.tell(size) } else { try Output.standard.line(size) }
        return true
    }

    private var writesToStandardOutput: Bool { self.target.text == "-" }

    private func write(_ pixels: PixelBuffer) throws(OutputError) {
        guard self.writesToStandardOutput else {
            let folder = try OutputFile.write(to: self.target) { file throws(SystemError) in
                try Self.writeRGBA(pixels, to: file)
            }
            if let folder { Output.error.tell("tintype: made the folder \(folder.text.abbreviated)") }
            return
        }
        do throws(SystemError) {
            try Self.writeRGBA(pixels, to: .standardOutput)
        } catch {
            try Output.check(error.code)
        }
    }

    /// Returns the stored frame, and warns if a part of it is missing.
    private func decode(_ decoder: ImageDecoder) throws -> Image {
        var strict = self.options
        strict.allowsTruncated = false
        do {
            let image = try decoder.decodeStored(options: strict).image
            if !image.damage.isEmpty {
                let what = "is damaged (\(image.damage)); a part of the image may look wrong"
                Output.error.tell("tintype: warning: \(self.path.abbreviated) \(what)")
            }
            return image
        } catch let error as CodingError
            where self.options.allowsTruncated && [.corrupt, .truncated].contains(error.code)
        {
            let image = try decoder.decodeStored(options: self.options).image
            let what = error.code == .truncated ? "ends too early" : "is damaged"
            Output.error.tell(
                "tintype: warning: \(self.path.abbreviated) \(what); its missing parts are black or transparent."
            )
            return image
        }
    }

    /// Writes the pixels as RGBA rows without padding, some rows at a time: a second copy of a large image would be
    /// larger than the image.
    private static func writeRGBA(_ pixels: PixelBuffer, to file: OutputFile.Opened) throws(SystemError) {
        let plane = pixels.layout.planes[0]
        let channels = pixels.format.channelCount
        let byteCount = pixels.width * 4
        let rowsAtOnce = max(1, (1 << 20) / byteCount)
        var bytes = [UInt8](repeating: 255, count: min(rowsAtOnce, pixels.height) * byteCount)
        for first in stride(from: 0, to: pixels.height, by: rowsAtOnce) {
            let rows = first..<min(pixels.height, first + rowsAtOnce)
            bytes.withUnsafeMutableBytes { target in
                pixels.withUnsafeBytes { source in
                    guard let source = source.baseAddress, var to = target.baseAddress else { return }
                    for row in rows {
                        var from = source + plane.offset + row * plane.bytesPerRow
                        for _ in 0..<pixels.width {
                            to.copyMemory(from: from, byteCount: channels)
                            if channels == 1 {
                                let gray = from.load(as: UInt8.self)
                                to.storeBytes(of: gray, toByteOffset: 1, as: UInt8.self)
                                to.storeBytes(of: gray, toByteOffset: 2, as: UInt8.self)
                            }
                            from += channels
                            to += 4
                        }
                    }
                }
            }
            try file.append(bytes[..<(rows.count * byteCount)])
        }
    }
}
