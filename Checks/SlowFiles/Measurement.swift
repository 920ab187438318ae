// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import FoundationEssentials
import Glibc
import Tintype
import TintypeCoding
import TintypeImage
import TintypeRendering

/// An operation on a file.
enum Kind: String, CaseIterable {
    /// Reads its header.
    case header
    /// Decodes the image, or the first frame.
    case still
    /// Makes a thumbnail of 256 pixels, as the loader does.
    case thumbnail
    /// Decodes the last frame before all others.
    case lastFrame
    /// All frames in their order.
    case frames
    /// Previews while the bytes arrive in pieces.
    case previews
    /// The image that a file describes is encoded.
    case encode
    /// The animation that a file describes is encoded.
    case encodeFrames

    /// All but encodes.
    static let loads: [Kind] = [.header, .still, .thumbnail, .lastFrame, .frames, .previews]

    var isEncode: Bool { self == .encode || self == .encodeFrames }
}

/// How a file is loaded.
struct Load {
    var allowsTruncated = false
    var pieceBytes = 16_384
}

/// The cost of one kind of load of one file.
struct Measurement {
    let kind: Kind
    /// Processor time, user and system.
    let seconds: Double
    /// The bytes reported to the memory gate.
    let countedBytes: Int
    /// The bytes by which the process grew at most.
    let takenBytes: Int
    /// The result: `decoded`, the error, or the signal that ended it.
    let outcome: String

    /// One line of a child's output.
    var line: String {
        "end \(self.kind.rawValue) \(self.seconds) \(self.countedBytes) \(self.takenBytes) \(self.outcome)"
    }

    init(kind: Kind, seconds: Double, countedBytes: Int, takenBytes: Int, outcome: String) {
        self.kind = kind
        self.seconds = seconds
        self.countedBytes = countedBytes
        self.takenBytes = takenBytes
        self.outcome = outcome
    }

    init?(line: some StringProtocol) {
        let parts = line.split(separator: " ", maxSplits: 5)
        guard
            parts.count == 6, parts[0] == "end", let kind = Kind(rawValue: String(parts[1])),
            let seconds = Double(parts[2]), let counted = Int(parts[3]), let taken = Int(parts[4])
        else { return nil }
        self.init(
            kind: kind,
            seconds: seconds,
            countedBytes: counted,
            takenBytes: taken,
            outcome: String(parts[5])
        )
    }
}

/// Loads a file in this process, which does nothing else.
struct Measurer {
    private let file: Data
    private let load: Load
    /// The format that a described image is encoded in.
    private let format: ImageFormat
    private let registry = CoderRegistry()

    init(path: String, load: Load) throws {
        self.file = try Data(contentsOf: URL(fileURLWithPath: path))
        self.load = load
        let name = URL(fileURLWithPath: path).pathExtension
        self.format = [.jpeg, .png, .gif].first { "encode-\($0.name)" == name } ?? .webp
    }

    /// Measures each kind, and prints the cost.
    func run(_ kinds: [Kind]) async throws {
        // A decode that wants more gets an error, and the machine lives.
        try setLimit(RLIMIT_AS, to: 6 << 30)
        for kind in kinds {
            let subject = kind.isEncode ? try EncodeSubject(self.file) : nil
            let image = kind == .encode ? try subject?.image() : nil
            let animation = kind == .encodeFrames ? try subject?.animation() : nil
            let limit = kind.isEncode ? Budget.encodeKillSeconds : Budget.killSeconds
            try setLimit(RLIMIT_CPU, to: Int(Self.processorSeconds) + limit)
            _ = cshims_trim_heap()
            try Self.resetPeak()
            let bytes = try Self.status("VmRSS")
            let seconds = Self.processorSeconds
            var counted = 0
            var outcome = "decoded"
            do {
                if let image, let subject {
                    outcome = try self.encode(image, subject.options, counted: &counted)
                } else if let animation, let subject {
                    outcome = try self.encode(animation, subject.options, counted: &counted)
                } else {
                    try await self.perform(kind, counted: &counted)
                }
            } catch { outcome = Self.oneLine(error) }
            let measurement = Measurement(
                kind: kind,
                seconds: Self.processorSeconds - seconds,
                countedBytes: counted,
                takenBytes: try Self.status("VmHWM") - bytes,
                outcome: outcome
            )
            say(measurement.line)
        }
    }

    private func perform(_ kind: Kind, counted: inout Int) async throws {
        let options = DecodeOptions(allowsTruncated: self.load.allowsTruncated)
        if kind == .previews { return try await self.previews(options, counted: &counted) }
        let decoder = try ImageDecoder(self.file, registry: self.registry, limits: options.limits)
        switch kind {
        case .header, .previews, .encode, .encodeFrames: break
        case .still:
            counted = decoder.byteCount(options: options)
            _ = try decoder.decode(options: options)
        case .lastFrame:
            var options = options
            options.frame = decoder.header.animation.frameCount - 1
            counted = decoder.byteCount(options: options)
            _ = try decoder.decode(options: options)
        case .thumbnail:
            let request = RenderingRequest(
                thumbnail: .fit(width: 256, height: 256),
                allowsTruncated: self.load.allowsTruncated
            )
            let plan = try DecodePlan(decoder: decoder, request: request, limits: options.limits)
            counted = plan.byteCount
            _ = try plan.decode()
        case .frames:
            counted = decoder.byteCount(
                for: decoder.header.animation.frameCount > 1 ? .frame : .image,
                options: options
            )
            let source = FrameSource(
                decoder,
                options: options,
                lanes: DecodeLanes(count: 1),
                pool: FramePool(byteLimit: 0)
            )
            for index in 0..<source.frameCount { _ = try await source.frame(at: index) }
        }
    }

    private func encode(_ image: Image, _ options: EncodeOptions, counted: inout Int) throws -> String {
        let coder = try self.registry.coder(encoding: self.format)
        let layout = image.pixels.layout
        counted = coder.encodingByteCount(of: layout, frameCount: nil, as: self.format, options: options)
        let data = try coder.encode(image, as: self.format, options: options)
        return "\(layout.width)x\(layout.height) encoded as \(data.count) bytes"
    }

    private func encode(_ content: AnimationContent, _ options: EncodeOptions, counted: inout Int) throws -> String {
        let coder = try self.registry.coder(encoding: self.format)
        counted = try coder.encodingByteCount(of: content, as: self.format, options: options)
        let data = try coder.encode(content, as: self.format, options: options)
        let image = content.frames[0].image
        return "\(content.frames.count) of \(image.width)x\(image.height) encoded as \(data.count) bytes"
    }

    private func previews(_ options: DecodeOptions, counted: inout Int) async throws {
        // The decoder reports to the gate as soon as there is a header, even if the file later has too many frames.
        let coder = try self.registry.coder(decoding: self.file)
        for end in stride(
            from: self.load.pieceBytes,
            to: self.file.count + self.load.pieceBytes,
            by: self.load.pieceBytes
        ) {
            let start = self.file.prefix(end)
            guard
                let decoder = try? ImageDecoder(
                    start,
                    registry: self.registry,
                    coder: coder,
                    limits: options.limits
                )
            else { continue }
            counted = decoder.byteCount(for: .incremental, options: options)
            break
        }
        let decoder = PreviewDecoder(registry: self.registry, options: options, lanes: DecodeLanes(count: 1))
        for start in stride(from: 0, to: self.file.count, by: self.load.pieceBytes) {
            _ = await decoder.append(self.file[start..<min(self.file.count, start + self.load.pieceBytes)])
        }
    }

    private static func oneLine(_ error: any Error) -> String {
        String("\(error)".map { $0.isNewline ? " " : $0 }.prefix(200))
    }

    // MARK: The process

    static var processorSeconds: Double {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return usage.seconds
    }

    /// Makes the peak the present size (proc(5), `clear_refs`).
    private static func resetPeak() throws {
        let file = open("/proc/self/clear_refs", O_WRONLY)
        defer { close(file) }
        guard file >= 0, write(file, "5", 1) == 1 else {
            throw Failure("the peak of memory cannot be reset: /proc/self/clear_refs is not writable")
        }
    }

    private static func status(_ name: String) throws -> Int {
        let text = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
        guard let value = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) }) else {
            throw Failure("/proc/self/status has no \(name)")
        }
        return value << 10
    }
}

extension rusage {
    /// The processor's time, user and system.
    var seconds: Double {
        [self.ru_utime, self.ru_stime].reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
    }
}

/// Limits this process, as far as it may be limited.
private func setLimit(_ resource: __rlimit_resource, to value: Int) throws {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0 else {
        throw Failure("the limits of the process cannot be read: errno \(errno)")
    }
    limit.rlim_cur = min(rlim_t(value), limit.rlim_max)
    guard setrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0 else {
        throw Failure("the process cannot be limited: errno \(errno)")
    }
}

/// Writes a line at once, because a later step may end the process.
func say(_ line: String) {
    var line = line + "\n"
    line.withUTF8 { _ = write(1, $0.baseAddress, $0.count) }
}

/// A failure of the search itself.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
