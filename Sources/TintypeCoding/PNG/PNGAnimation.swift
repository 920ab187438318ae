// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage

/// The frames of an APNG: their places on the canvas and in the file.
///
/// Source: W3C PNG, third edition, sections 4.9 and 11.3.6.
struct PNGAnimation {
    /// One frame.
    ///
    /// The type is small, because a hostile file may contain a million frames.
    struct Frame {
        let left: UInt32
        let top: UInt32
        let width: UInt32
        let height: UInt32
        let milliseconds: UInt32
        let disposal: AnimationFrame.Disposal
        let blend: AnimationFrame.Blend
        /// The offset of the first chunk with its pixels.
        var pixelsOffset = 0
    }

    /// How often the frames are shown, as stored: 0 is forever.
    let loopCount: Int
    let frames: [Frame]
    /// Whether the first frame is the default image, which decoders without animation support show.
    let includesDefaultImage: Bool

    /// The timing for the header; without durations if there is only one frame.
    var timing: AnimationTiming {
        var timing = AnimationTiming()
        timing.loopCount = self.loopCount
        if self.frames.count > 1 {
            for frame in self.frames { timing.appendFrame(milliseconds: Int(frame.milliseconds)) }
        }
        return timing
    }

    /// The bytes of the largest frame, and of the largest part of the canvas that is restored after a frame.
    var drawingByteCount: Int {
        func largest(_ frames: some Sequence<Frame>) -> Int { frames.map { Int($0.width) * Int($0.height) }.max() ?? 0 }
        // The first frame has nothing to restore, and no frame follows the last.
        let restored = self.frames.dropFirst().dropLast().lazy.filter { $0.disposal == .previous }
        return (largest(self.frames) + largest(restored)).saturatingMultiplied(by: 4)
    }

    /// Returns a frame for compositing.
    func frame(at index: Int, hasAlpha: Bool) -> AnimationFrame {
        let frame = self.frames[index]
        // There is nothing to restore before the first frame.
        let disposal = index == 0 && frame.disposal == .previous ? .background : frame.disposal
        return AnimationFrame(
            left: Int(frame.left),
            top: Int(frame.top),
            width: Int(frame.width),
            height: Int(frame.height),
            disposal: disposal,
            blend: frame.blend,
            hasAlpha: hasAlpha
        )
    }
}

/// Collects the frames of an APNG from its chunks, and validates them.
///
/// An animation that breaks any rule is ignored. Then the default image is shown, as the specification recommends.
struct PNGAnimationParser {
    private enum State {
        /// Before the control chunk.
        case still
        /// Behind the control chunk, before the pixels of the default image.
        case announced
        /// Behind the first pixels of the default image.
        case running
        /// A rule was broken, or the control chunk came too late.
        case broken
    }

    private static let controlLength = 8
    private static let frameControlLength = 26

    private let canvas: PNGLayout
    private var state = State.still
    private var frameCount = 0
    private var loopCount = 0
    private var nextSequenceNumber: UInt32 = 0
    private var frames: [PNGAnimation.Frame] = []
    private var includesDefaultImage = false
    /// Whether the pixels of the last frame have begun.
    private var hasPixels = true

    init(canvas: PNGLayout) {
        self.canvas = canvas
    }

    /// Reads the next chunk, which must be complete.
    mutating func read(_ chunk: PNGChunk, of bytes: UnsafeRawBufferPointer) {
        switch chunk.kind {
        case .animationControl: self.readControl(chunk, of: bytes)
        case .frameControl: self.readFrame(chunk, of: bytes)
        case .pixels: self.readDefaultPixels(chunk)
        case .framePixels: self.readPixels(chunk, of: bytes)
        default: break
        }
    }

    /// The number of frames found so far.
    var foundFrameCount: Int { self.frames.count }

    /// Returns the animation, or `nil` if it is missing or broken.
    func finish() -> PNGAnimation? {
        guard case .running = self.state, self.hasPixels, self.frames.count == self.frameCount else { return nil }
        return PNGAnimation(
            loopCount: self.loopCount,
            frames: self.frames,
            includesDefaultImage: self.includesDefaultImage
        )
    }

    private mutating func readControl(_ chunk: PNGChunk, of bytes: UnsafeRawBufferPointer) {
        guard case .still = self.state, chunk.length == Self.controlLength, chunk.isSound(in: bytes) else {
            self.state = .broken
            return
        }
        self.frameCount = Int(bytes.bigEndian(at: chunk.start) as UInt32)
        self.loopCount = Int(bytes.bigEndian(at: chunk.start + 4) as UInt32)
        self.state = self.frameCount > 0 ? .announced : .broken
    }

    private mutating func readFrame(_ chunk: PNGChunk, of bytes: UnsafeRawBufferPointer) {
        // The first frame's control chunk may precede the animation's, as libpng and browsers allow.
        let isBeforePixels: Bool
        switch self.state {
        case .still, .announced: isBeforePixels = true
        case .running: isBeforePixels = false
        case .broken: return
        }
        guard
            self.hasPixels, chunk.length == Self.frameControlLength, chunk.isSound(in: bytes),
            self.takesSequenceNumber(of: chunk, bytes), isBeforePixels || self.frames.count < self.frameCount,
            let frame = PNGAnimation.Frame(chunk.content(of: bytes), canvas: self.canvas)
        else {
            self.state = .broken
            return
        }
        if isBeforePixels {
            guard Int(frame.width) == self.canvas.width, Int(frame.height) == self.canvas.height else {
                self.state = .broken
                return
            }
            self.includesDefaultImage = true
        }
        self.frames.append(frame)
        self.hasPixels = false
    }

    private mutating func readDefaultPixels(_ chunk: PNGChunk) {
        switch self.state {
        case .still: self.state = .broken
        case .announced:
            if self.includesDefaultImage { self.beginPixels(of: chunk) }
            self.state = .running
        case .running, .broken: break
        }
    }

    private mutating func readPixels(_ chunk: PNGChunk, of bytes: UnsafeRawBufferPointer) {
        guard case .running = self.state else {
            self.state = .broken
            return
        }
        let isOfDefaultImage = self.frames.isEmpty || (self.frames.count == 1 && self.includesDefaultImage)
        guard !isOfDefaultImage, chunk.length >= 4, self.takesSequenceNumber(of: chunk, bytes) else {
            self.state = .broken
            return
        }
        if !self.hasPixels { self.beginPixels(of: chunk) }
    }

    private mutating func beginPixels(of chunk: PNGChunk) {
        self.frames[self.frames.count - 1].pixelsOffset = chunk.start - 8
        self.hasPixels = true
    }

    private mutating func takesSequenceNumber(of chunk: PNGChunk, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.bigEndian(at: chunk.start) == self.nextSequenceNumber else { return false }
        self.nextSequenceNumber += 1
        return true
    }
}

extension PNGAnimation.Frame {
    /// Reads the content of an `fcTL` chunk; `nil` if the frame is outside the canvas or invalid.
    fileprivate init?(_ content: UnsafeRawBufferPointer, canvas: PNGLayout) {
        let width: UInt32 = content.bigEndian(at: 4)
        let height: UInt32 = content.bigEndian(at: 8)
        let left: UInt32 = content.bigEndian(at: 12)
        let top: UInt32 = content.bigEndian(at: 16)
        guard
            width > 0, height > 0, Int(left) + Int(width) <= canvas.width, Int(top) + Int(height) <= canvas.height,
            let disposal = Self.disposal(content[24]), content[25] < 2
        else { return nil }
        let numerator = UInt32(content.bigEndian(at: 20) as UInt16)
        let denominator = UInt32(content.bigEndian(at: 22) as UInt16)
        self.init(
            left: left,
            top: top,
            width: width,
            height: height,
            milliseconds: numerator * 1_000 / (denominator == 0 ? 100 : denominator),
            disposal: disposal,
            blend: content[25] == 0 ? .source : .over
        )
    }

    private static func disposal(_ value: UInt8) -> AnimationFrame.Disposal? {
        switch value {
        case 0: .keep
        case 1: .background
        case 2: .previous
        default: nil
        }
    }
}

/// The frames of an APNG, each decoded by itself on request.
struct PNGFrameReader: FrameReader {
    let canvas: PixelSize
    let frames: [AnimationFrame]
    private let data: Data
    private let header: PNGHeader
    private let animation: PNGAnimation
    private let isLenient: Bool
    private let limits: DecodingLimits

    init(_ data: Data, _ header: PNGHeader, _ animation: PNGAnimation, options: DecodeOptions) {
        self.canvas = PixelSize(width: header.layout.width, height: header.layout.height)
        self.frames = animation.frames.indices.map { animation.frame(at: $0, hasAlpha: header.hasAlpha) }
        self.data = data
        self.header = header
        self.animation = animation
        self.isLenient = options.allowsTruncated
        self.limits = options.limits
    }

    func pixels(of index: Int) throws -> PixelBuffer {
        try self.pixels(of: index, work: DecodeWork(self.limits, format: .png))
    }

    func pixels(of index: Int, work: DecodeWork) throws -> PixelBuffer {
        let size = PixelSize(width: self.frames[index].width, height: self.frames[index].height)
        return try self.data.withUnsafeBytes { bytes in
            try PNGDecompressor(bytes, header: self.header, output: .rgba8, isLenient: self.isLenient, work: work)
                .decompress(frameAt: self.animation.frames[index].pixelsOffset, size: size)
        }
    }
}
