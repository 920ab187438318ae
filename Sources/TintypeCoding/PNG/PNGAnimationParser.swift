/// Collects the frames of an APNG from its chunks, and finds out whether they are sound.
///
/// An animation that breaks any rule is none: the default image is shown instead, as the
/// specification recommends.
struct PNGAnimationParser {
    private enum State {
        /// No control chunk yet.
        case still
        /// Before the pixels of the default image.
        case announced
        /// Behind the first of them.
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
    /// Whether the last frame's pixels have begun.
    private var hasPixels = true

    init(canvas: PNGLayout) {
        self.canvas = canvas
    }

    /// Takes over the next chunk, which is whole.
    mutating func read(_ chunk: PNGChunk, of bytes: UnsafeRawBufferPointer) {
        switch chunk.kind {
        case .animationControl: self.readControl(chunk, of: bytes)
        case .frameControl: self.readFrame(chunk, of: bytes)
        case .pixels: self.readDefaultPixels(chunk)
        case .framePixels: self.readPixels(chunk, of: bytes)
        default: break
        }
    }

    /// The frames that were found so far.
    var foundFrameCount: Int { self.frames.count }

    /// The animation, or `nil` when there is none or it is broken.
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
        // The first frame's control chunk may stand before the animation's, as libpng and browsers have it.
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
    /// Reads the content of an `fcTL` chunk; `nil` when the frame is not on the canvas or makes no sense.
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
