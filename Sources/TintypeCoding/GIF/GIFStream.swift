// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage

/// The blocks of a GIF, without pixels, parsed further when more bytes have arrived.
///
/// Source: GIF89a, CompuServe 1990. Purely cosmetic blocks are skipped, and bytes that are not a block end the file, as
/// in browsers. The cost is one visit of each block of up to 255 bytes.
struct GIFStream: Sendable {
    /// The work of skipping a block, and the number of blocks to count at once.
    private static let (unitsPerBlock, blocksAtOnce) = (8, 1 << 12)

    private enum State: Sendable {
        case signature
        case block
        case extensionBlocks(Extension)
        case imageData
        case ended
    }

    /// The meaning of an extension's blocks.
    private enum Extension: Sendable {
        case control
        case application
        case loop
        case other
    }

    /// The control block for the next frame.
    private struct Control: Sendable {
        var disposal = AnimationFrame.Disposal.keep
        var delay: UInt16 = 0
        var transparentIndex: UInt8?
    }

    private(set) var width = 0
    private(set) var height = 0
    /// The frames in their order; the codes of the last one may be missing.
    private(set) var frames: [GIFFrame] = []
    /// How long each frame is shown, and how often all of them.
    private(set) var animation = AnimationTiming()
    /// Whether any frame, as shown, may have a transparent pixel.
    private(set) var hasAlpha = false
    /// The pixels of the largest area to restore after a frame.
    private(set) var restoredPixelCount = 0
    /// The pixels of the largest frame.
    private(set) var largestPixelCount = 0
    /// Whether the file draws text before the first frame, which decoders do not support.
    private(set) var beginsWithText = false
    /// The offset of the first XMP packet, behind the name of its extension.
    private(set) var packetOffset: Int?
    /// The number of parsed bytes.
    private(set) var offset = 0

    private var state = State.signature
    private var globalPalette: GIFPaletteLocation?
    private var control = Control()
    private var isCanvasOpaque = false
    /// Whether the canvas is empty before the next frame.
    private var isCanvasClear = true
    /// The pixels that the last frame covered, if they are restored before the next frame.
    private var lastRestoredPixelCount = 0

    private let limits: DecodingLimits

    /// Creates a parser at the start of a file.
    init(limits: DecodingLimits) {
        self.limits = limits
    }

    /// Parses a whole file as far as possible.
    ///
    /// - Throws: `CodingError` if the file has no screen, or the frames exceed the limits; `CancellationError`.
    init(_ data: Data, limits: DecodingLimits) throws {
        self.init(limits: limits)
        try self.advance(through: data, work: DecodeWork(limits, format: .gif))
        guard self.hasScreen else { throw CodingError.truncated(.gif) }
    }

    /// Whether the size of the screen is known.
    var hasScreen: Bool { self.width > 0 }

    /// Returns whether a file of `count` bytes is complete: it ends with the end block, or behind a complete block.
    func isComplete(at count: Int) -> Bool {
        switch self.state {
        case .ended: true
        case .block: self.offset == count && !self.frames.isEmpty
        default: false
        }
    }

    /// Parses the complete new blocks of a file that has grown.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    mutating func advance(through data: Data, work: DecodeWork) throws {
        let bytes = data.bytes
        var blockCount = 0
        while try self.parseNext(bytes) {
            blockCount += 1
            if blockCount % Self.blocksAtOnce == 0 { try work.count(Self.blocksAtOnce * Self.unitsPerBlock) }
        }
        try work.count(blockCount % Self.blocksAtOnce * Self.unitsPerBlock)
    }

    /// Parses the next block; returns `false` if more bytes are needed, or the end was reached.
    private mutating func parseNext(_ data: borrowing RawSpan) throws(CodingError) -> Bool {
        switch self.state {
        case .signature: try self.parseScreen(data)
        case .block: try self.parseBlock(data)
        case .extensionBlocks(let kind): self.parseExtension(kind, data)
        case .imageData: self.skipImageData(data)
        case .ended: false
        }
    }

    private mutating func parseScreen(_ data: borrowing RawSpan) throws(CodingError) -> Bool {
        guard data.byteCount >= 13 else { return false }
        guard data.has("GIF", at: 0) else { throw .corrupt(.gif, "it does not begin with a signature") }
        guard
            let width = data.uint16(at: 6), let height = data.uint16(at: 8),
            let flags = data.byte(at: 10)
        else { return false }
        guard width > 0, height > 0 else { throw .corrupt(.gif, "it declares an impossible size") }
        self.globalPalette = Self.palette(flags, at: 13)
        self.width = width
        self.height = height
        self.offset = Self.end(of: self.globalPalette, from: 13)
        self.state = .block
        return true
    }

    private mutating func parseBlock(_ data: borrowing RawSpan) throws(CodingError) -> Bool {
        guard let introducer = data.byte(at: self.offset) else { return false }
        switch introducer {
        case 0x2C: return try self.parseImage(data)
        case 0x21: return self.parseExtensionLabel(data)
        // Some writers end a list of blocks twice.
        case 0x00: self.offset += 1
        case 0x3B: self.state = .ended
        default:
            guard !self.frames.isEmpty else { throw .corrupt(.gif, "it holds bytes that are no block") }
            self.state = .ended
        }
        return true
    }

    private mutating func parseImage(_ data: borrowing RawSpan) throws(CodingError) -> Bool {
        let start = self.offset
        guard
            let left = data.uint16(at: start + 1), let top = data.uint16(at: start + 3),
            let width = data.uint16(at: start + 5), let height = data.uint16(at: start + 7),
            let flags = data.byte(at: start + 9)
        else { return false }
        let palette = Self.palette(flags, at: start + 10)
        let codes = Self.end(of: palette, from: start + 10)
        guard let minimumCodeSize = data.byte(at: codes) else { return false }
        let frame = GIFFrame(
            left: UInt16(left),
            top: UInt16(top),
            width: UInt16(width),
            height: UInt16(height),
            isInterlaced: flags & 0x40 != 0,
            minimumCodeSize: minimumCodeSize,
            transparentIndex: self.control.transparentIndex,
            disposal: self.control.disposal,
            delay: self.control.delay,
            palette: palette ?? self.globalPalette,
            dataOffset: codes + 1
        )
        try self.append(frame)
        self.offset = codes + 1
        self.state = .imageData
        return true
    }

    private mutating func append(_ frame: GIFFrame) throws(CodingError) {
        let count = self.frames.count + 1
        if count == 1 { try self.limits.check(ImageHeader(self)) }
        let canvasPixelCount = self.width * self.height
        // A file with one frame is not an animation.
        try self.limits.check(
            frameCount: count,
            animationPixels: count > 1 ? canvasPixelCount.saturatingMultiplied(by: count) : 0,
            format: .gif
        )
        self.frames.append(frame)
        self.largestPixelCount = max(self.largestPixelCount, Int(frame.width) * Int(frame.height))
        self.animation.appendFrame(milliseconds: Int(frame.delay) * 10)
        self.control = Control()
        let before = self.isCanvasOpaque
        if frame.covers(width: self.width, height: self.height), !frame.hasTransparency { self.isCanvasOpaque = true }
        if !self.isCanvasOpaque { self.hasAlpha = true }
        switch frame.disposal {
        case .keep: break
        case .background: self.isCanvasOpaque = false
        case .previous: self.isCanvasOpaque = before
        }
        self.noteRestoring(frame)
    }

    /// Updates the size of the largest area to restore, which excludes areas that the next frame covers anyway.
    private mutating func noteRestoring(_ frame: GIFFrame) {
        let covers = frame.covers(width: self.width, height: self.height)
        if !covers || frame.hasTransparency || frame.disposal == .previous {
            self.restoredPixelCount = max(self.restoredPixelCount, self.lastRestoredPixelCount)
        }
        self.lastRestoredPixelCount = 0
        switch frame.disposal {
        case .keep: self.isCanvasClear = false
        case .background: self.isCanvasClear = self.isCanvasClear || covers
        case .previous:
            guard !self.isCanvasClear else { break }
            let visible = frame.visibleSize(width: self.width, height: self.height)
            self.lastRestoredPixelCount = visible.width * visible.height
        }
    }

    private mutating func skipImageData(_ data: borrowing RawSpan) -> Bool {
        guard let size = self.nextBlock(data) else { return false }
        self.offset += 1 + size
        if size == 0 { self.state = .block }
        return true
    }

    private mutating func parseExtensionLabel(_ data: borrowing RawSpan) -> Bool {
        guard let label = data.byte(at: self.offset + 1) else { return false }
        switch label {
        case 0xF9: self.state = .extensionBlocks(.control)
        case 0xFF: self.state = .extensionBlocks(.application)
        case 0x01:
            // The control block before a text applies to the text.
            if self.frames.isEmpty { self.beginsWithText = true }
            self.control = Control()
            self.state = .extensionBlocks(.other)
        default: self.state = .extensionBlocks(.other)
        }
        self.offset += 2
        return true
    }

    private mutating func parseExtension(_ kind: Extension, _ data: borrowing RawSpan) -> Bool {
        guard let size = self.nextBlock(data) else { return false }
        let start = self.offset + 1
        self.offset = start + size
        guard size > 0 else {
            self.state = .block
            return true
        }
        switch kind {
        case .control: self.parseControl(data, at: start, size: size)
        case .application:
            if size == 11, self.packetOffset == nil, data.has("XMP DataXMP", at: start) {
                self.packetOffset = self.offset
            }
            let isLoop = data.has("NETSCAPE2.0", at: start) || data.has("ANIMEXTS1.0", at: start)
            self.state = .extensionBlocks(isLoop && size == 11 ? .loop : .other)
        case .loop:
            if size >= 3, data.byte(at: start) == 1, let count = data.uint16(at: start + 1) {
                self.animation.loopCount = count
            }
        case .other: break
        }
        return true
    }

    /// Returns the XMP packet of a file, as stored.
    ///
    /// A packet is not a list of blocks: the 258 bytes behind it lead a parser of blocks to its end. But some writers
    /// divide it into blocks. Source: XMP specification, part 3, 1.1.2.
    func packet(of data: Data) -> Data? {
        guard let start = self.packetOffset else { return nil }
        var end = start
        var blocks = Data()
        while let size = data.byte(at: end) {
            guard size > 0 else { break }
            blocks += data.slice(from: end + 1, to: end + 1 + Int(size))
            end += 1 + Int(size)
        }
        guard end < data.count else { return nil }
        // The list of blocks ended at the last of the 258 bytes, or at the one before.
        for trailer in [end - 257, end - 256] where trailer > start {
            let leads = data.byte(at: trailer) == 1 && data.byte(at: trailer + 1) == 0xFF
            if leads, data.byte(at: trailer + 2) == 0xFE { return data.slice(from: start, to: trailer) }
        }
        return blocks.isEmpty ? nil : blocks
    }

    private mutating func parseControl(_ data: borrowing RawSpan, at start: Int, size: Int) {
        self.state = .extensionBlocks(.other)
        guard
            size >= 4, let flags = data.byte(at: start), let delay = data.uint16(at: start + 1),
            let index = data.byte(at: start + 3)
        else { return }
        self.control = Control(
            disposal: Self.disposal(flags),
            delay: UInt16(delay),
            transparentIndex: flags & 1 != 0 ? index : nil
        )
    }

    /// Returns the size of the block at the offset; `nil` if the block is incomplete.
    private func nextBlock(_ data: borrowing RawSpan) -> Int? {
        guard let size = data.byte(at: self.offset), self.offset + 1 + Int(size) <= data.byteCount else { return nil }
        return Int(size)
    }

    private static func disposal(_ flags: UInt8) -> AnimationFrame.Disposal {
        switch flags >> 2 & 7 {
        case 2: .background
        // Some writers used the specification's number as a bit.
        case 3, 4: .previous
        default: .keep
        }
    }

    private static func palette(_ flags: UInt8, at offset: Int) -> GIFPaletteLocation? {
        flags & 0x80 == 0 ? nil : GIFPaletteLocation(offset: offset, count: 2 << Int(flags & 7))
    }

    private static func end(of palette: GIFPaletteLocation?, from offset: Int) -> Int {
        offset + (palette?.count ?? 0) * 3
    }
}

/// Checked reads from untrusted bytes, which return `nil` past the end and never trap.
///
/// `Data` has the same methods, which take ten times as long for each byte.
extension RawSpan {
    /// Returns the byte at `offset`, which must not be negative.
    func byte(at offset: Int) -> UInt8? {
        offset < self.byteCount ? self.unsafeLoad(fromByteOffset: offset, as: UInt8.self) : nil
    }

    /// Returns the unsigned number in the two bytes at `offset`, lower byte first.
    func uint16(at offset: Int) -> Int? {
        guard let low = self.byte(at: offset), let high = self.byte(at: offset + 1) else { return nil }
        return Int(high) << 8 | Int(low)
    }

    /// Returns whether the ASCII `text` is at `offset`.
    func has(_ text: StaticString, at offset: Int) -> Bool {
        guard offset + text.utf8CodeUnitCount <= self.byteCount else { return false }
        for index in 0..<text.utf8CodeUnitCount where self.byte(at: offset + index) != text.utf8Start[index] {
            return false
        }
        return true
    }
}
