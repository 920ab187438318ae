// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeCoding
import TintypeImage
import TintypeTestSupport

/// Prints the processor time of every encoder and decoder, one a line: the name, a tab, microseconds.
///
/// `Benchmarks/debug-times` runs it as a debug and as a release build and divides the times. An argument chooses the
/// coders whose name begins with it.
@main struct CodecTimes {
    private static let side = 400
    private static let (frameSide, frameCount) = (200, 40)
    private static let wanted = CommandLine.arguments.dropFirst().first ?? ""

    static func main() throws {
        let photograph = try Self.image(side: Self.side) { Self.photograph($0, $1, $2, 0) }
        let drawing = try Self.image(side: Self.side) { Self.drawing($0, $1, $2, 0) }
        let film = try Self.animation { Self.photograph($0, $1, $2, $3) }
        let cartoon = try Self.animation { Self.drawing($0, $1, $2, $3) }
        let lossless = EncodeOptions(compression: .lossless)
        try Self.measure("GIF, photograph", photograph, .gif)
        try Self.measure("GIF, drawing", drawing, .gif)
        try Self.measure("PNG, photograph", photograph, .png)
        try Self.measure("PNG, drawing", drawing, .png)
        try Self.measure("JPEG", photograph, .jpeg)
        try Self.measure("WebP, lossy", photograph, .webp)
        try Self.measure("WebP, lossless", photograph, .webp, lossless)
        try Self.measure("GIF, animated photograph", film, .gif)
        try Self.measure("GIF, animated drawing", cartoon, .gif)
        try Self.measure("PNG, animated photograph", film, .png)
        try Self.measure("PNG, animated drawing", cartoon, .png)
        try Self.measure("WebP, animated, lossy", film, .webp)
        try Self.measure("WebP, animated, lossless", cartoon, .webp, lossless)
    }

    // MARK: Measuring

    private static func measure(
        _ name: String,
        _ image: Image,
        _ format: ImageFormat,
        _ options: EncodeOptions = EncodeOptions()
    ) throws {
        guard name.hasPrefix(Self.wanted) else { return }
        let registry = CoderRegistry()
        let coder = try registry.coder(encoding: format)
        let data = try Self.time("encode \(name)") { try coder.encode(image, as: format, options: options) }
        _ = try Self.time("decode \(name)") { try ImageDecoder(data, registry: registry).decode() }
    }

    private static func measure(
        _ name: String,
        _ animation: AnimationContent,
        _ format: ImageFormat,
        _ options: EncodeOptions = EncodeOptions()
    ) throws {
        guard name.hasPrefix(Self.wanted) else { return }
        let registry = CoderRegistry()
        let coder = try registry.coder(encoding: format)
        let data = try Self.time("encode \(name)") { try coder.encode(animation, as: format, options: options) }
        try Self.time("decode \(name)") {
            let decoder = try ImageDecoder(data, registry: registry)
            guard let compositor = try decoder.makeCompositor() else { throw NoAnimation() }
            for index in 0..<decoder.header.animation.frameCount { _ = try compositor.frame(at: index) }
        }
    }

    private struct NoAnimation: Error {}

    /// Prints the shortest processor time of several runs of `body`.
    ///
    /// The first run counts only if it is long.
    @discardableResult
    private static func time<Result>(_ name: String, _ body: () throws -> Result) rethrows -> Result {
        let begin = Self.processorTime()
        var result = try body()
        var shortest = Self.processorTime() - begin
        var total = shortest
        if total < .seconds(1) { shortest = .seconds(1) }
        while total < .milliseconds(200) || shortest == .seconds(1) {
            let begin = Self.processorTime()
            result = try body()
            let time = Self.processorTime() - begin
            shortest = min(shortest, time)
            total += max(time, .microseconds(1))
        }
        print("\(name)\t\(Int(shortest / .microseconds(1)))")
        return result
    }

    private static func processorTime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    // MARK: Images

    private static func image(side: Int, _ sample: (_ column: Int, _ row: Int, _ channel: Int) -> UInt8) throws -> Image
    {
        Image(pixels: try PixelBuffer.make(.rgb8, width: side, height: side, sample))
    }

    private static func animation(
        _ sample: (_ column: Int, _ row: Int, _ channel: Int, _ frame: Int) -> UInt8
    ) throws -> AnimationContent {
        AnimationContent(
            frames: try (0..<Self.frameCount).map { frame in
                let image = try Self.image(side: Self.frameSide) { sample($0, $1, $2, frame) }
                return AnimationContent.Frame(image: image, milliseconds: 50)
            }
        )
    }

    /// A soft image with grain, which moves.
    private static func photograph(_ column: Int, _ row: Int, _ channel: Int, _ frame: Int) -> UInt8 {
        let (x, y) = (Double(column + 3 * frame) / 60, Double(row) / 40)
        let wave = sin(x + Double(channel)) * cos(y - Double(channel) / 2) + sin(x * y / 5)
        var grain = UInt32(truncatingIfNeeded: (column * 7_919 + row) &* 31 + channel + frame) &* 0x9E37_79B1
        grain ^= grain >> 15
        return UInt8(max(0, min(255, 128 + 55 * wave + Double(grain % 9))))
    }

    /// Returns a sample of a drawing of squares in a few colours, one of which moves.
    private static func drawing(_ column: Int, _ row: Int, _ channel: Int, _ frame: Int) -> UInt8 {
        let isMoving = (frame * 4..<frame * 4 + 40).contains(column) && (60..<100).contains(row)
        let square = isMoving ? 77 : column / 16 * 5 + row / 16 * 3
        return UInt8(square % 16 * (channel + 3) * 3)
    }
}
