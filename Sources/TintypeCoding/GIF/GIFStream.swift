import FoundationEssentials
import TintypeImage

/// The blocks of a GIF, pixels left out; goes on where it stopped when more bytes are there.
///
/// Source: GIF89a, CompuServe 1990. Blocks that are only cosmetic are passed over, and bytes that are no block
/// end the image, as in browsers. The cost is one look at each block of up to 255 bytes.
struct GIFStream: Sendable {
    /// The work of passing over a block, and the blocks that are counted at once.
    private static let (unitsPerBlock, blocksAtOnce) = (8, 1 << 12)

    private enum State: Sendable {
        case signature
        case block
        case extensionBlocks(Extension)
        case imageData
        case ended
    }

    /// What the blocks of an extension mean.
    private enum Extension: Sendable {
        case control
        case application
        case loop
        case other
    }

    /// The control block that holds for the next image.
    private struct Control: Sendable {
        var disposal = AnimationFrame.Disposal.keep
        var delay: UInt16 = 0
        var transparentIndex: UInt8?
    }

    private(set) var width = 0
    private(set) var height = 0
    /// The images in their order; of the last one the codes may be missing.
    private(set) var frames: [GIFFrame] = []
    /// How long the images are shown, and how often.
    private(set) var animation = AnimationTiming()
    /// Whether any image on the screen may have a transparent pixel.
    private(set) var hasAlpha = false
    /// The pixels of the largest area that is kept while an image is shown that is taken back before the next one.
    private(set) var restoredPixelCount = 0
    /// The pixels of the largest image.
    private(set) var largestPixelCount = 0
    /// Whether the first thing to be drawn is text, which no decoder draws.
    private(set) var beginsWithText = false
    /// Where the first XMP packet begins, behind the name of its extension.
    private(set) var packetOffset: Int?
    /// The bytes that were parsed.
    private(set) var offset = 0

    private var state = State.signature
    private var globalPalette: GIFPaletteLocation?
    private var control = Control()
    private var isCanvasOpaque = false
    /// Whether nothing is on the screen before the next image.
    private var isCanvasClear = true
    /// The pixels that the last image covered, where the next one is drawn on what was there before.
    private var lastRestoredPixelCount = 0

    private let limits: DecodingLimits

    /// Prepares to parse a file from its start.
    init(limits: DecodingLimits) {
        self.limits = limits
    }

    /// Parses a whole file as far as it goes.
    ///
    /// - Throws: `CodingError` when there is no screen, or more images than the limits allow; `CancellationError`.
    init(_ data: Data, limits: DecodingLimits) throws {
        self.init(limits: limits)
        try self.advance(through: data, work: DecodeWork(limits, format: .gif))
        guard self.hasScreen else { throw CodingError.truncated(.gif) }
    }

    /// Whether the size of the screen is known.
    var hasScreen: Bool { self.width > 0 }

    /// Whether nothing is missing of a file of `count` bytes: it ends with the end block, or behind a complete block.
    func isComplete(at count: Int) -> Bool {
        switch self.state {
        case .ended: true
        case .block: self.offset == count && !self.frames.isEmpty
        default: false
        }
    }

    /// Parses on, through a file that has grown; blocks that are not all there wait.
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

    /// `false` when more bytes are needed, or none are.
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
        // A file of one image is no animation.
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

    /// Notes what is kept while images are shown that are taken back: nothing where the next one needs nothing of it.
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
            // Text is drawn under the control block before it.
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

    /// The XMP packet of a file, as it stands in its bytes.
    ///
    /// It is no list of blocks: 258 bytes behind it lead whatever takes it for one to its end. Some writers cut it into
    /// blocks all the same. Source: XMP specification, part 3, 1.1.2.
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
        // The end is the last byte of the 258, or the one before.
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

    /// The size of the block at the offset, or `nil` when it is not all there.
    private func nextBlock(_ data: borrowing RawSpan) -> Int? {
        guard let size = data.byte(at: self.offset), self.offset + 1 + Int(size) <= data.byteCount else { return nil }
        return Int(size)
    }

    private static func disposal(_ flags: UInt8) -> AnimationFrame.Disposal {
        switch flags >> 2 & 7 {
        case 2: .background
        // Some writers took the specification's number for a bit.
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

/// Checked reads from untrusted bytes: `nil` past the end, never a trap.
///
/// `Data` can do the same, and takes ten times as long for each byte.
extension RawSpan {
    /// The byte at `offset`, which is not negative.
    func byte(at offset: Int) -> UInt8? {
        offset < self.byteCount ? self.unsafeLoad(fromByteOffset: offset, as: UInt8.self) : nil
    }

    /// The unsigned number of two bytes at `offset`, the lower byte first.
    func uint16(at offset: Int) -> Int? {
        guard let low = self.byte(at: offset), let high = self.byte(at: offset + 1) else { return nil }
        return Int(high) << 8 | Int(low)
    }

    /// Whether the ASCII `text` stands at `offset`.
    func has(_ text: StaticString, at offset: Int) -> Bool {
        guard offset + text.utf8CodeUnitCount <= self.byteCount else { return false }
        for index in 0..<text.utf8CodeUnitCount where self.byte(at: offset + index) != text.utf8Start[index] {
            return false
        }
        return true
    }
}
