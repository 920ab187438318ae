// SPDX-License-Identifier: Apache-2.0

#if WebP
import CTintypeWebP
import FoundationEssentials
import TintypeImage

/// The content of a WebP's RIFF chunks, without pixels.
///
/// It reads the head of each chunk once and skips its content, so that the cost is linear in the number of chunks. It
/// continues where it stopped when more bytes have arrived. It is as strict as libwebp's own demuxer, except that it
/// accepts chunks that the flags of VP8X do not announce.
///
/// Source: RFC 9649, section 2.
struct WebPContainer {
    /// The work of reading a chunk's head.
    private static let unitsPerChunk = 16

    /// The size that VP8X declares; simple files have none.
    private(set) var canvas: PixelSize?
    /// Whether VP8X declares an animation.
    private(set) var isAnimated = false
    /// The loop count and the durations of the frames.
    private(set) var timing = AnimationTiming()
    /// The still image, or the frames; the end of the last one may be missing.
    private(set) var images: [WebPCodedImage] = []
    private(set) var orientation = Orientation.up
    private(set) var colorProfile: Data?
    /// The broken rule of the format, or `nil`; nothing behind that place is read.
    private(set) var damage: String?
    private(set) var transparency = WebPTransparency()
    /// The most memory in bytes that decoding one image takes in addition to the canvas.
    private(set) var codecByteCount = 0

    /// The end of the file according to its own size.
    private var end: Int?
    /// The offset of the next chunk.
    private var offset = 12
    private var alpha: WebPChunk?
    private var hasTiming = false
    private var hasEXIF = false
    /// Whether the end of the last image was missing when the image was found.
    private var isLastOpen = false

    private let limits: DecodingLimits

    /// Reads all chunks of `data`.
    ///
    /// - Throws: `CodingError` if the image or the frames exceed the limits, `CancellationError`.
    init(_ data: Data, limits: DecodingLimits = DecodingLimits()) throws {
        self.init(limits: limits)
        let work = DecodeWork(limits, format: .webp)
        try data.withUnsafeBytes { try self.scan($0, work: work) }
    }

    /// Creates a container that has no bytes yet.
    init(limits: DecodingLimits) {
        self.limits = limits
    }

    /// Returns whether `byteCount` bytes reach the end that the file declares.
    func isComplete(_ byteCount: Int) -> Bool {
        self.end.map { $0 <= byteCount } ?? false
    }

    /// The size of the whole image, once it is known.
    var size: PixelSize? {
        guard let first = self.images.first else { return nil }
        return self.canvas ?? PixelSize(width: first.frame.width, height: first.frame.height)
    }

    /// Continues with `bytes`, which are all bytes of the file from the first one on.
    ///
    /// - Throws: `CodingError` if the image or the frames exceed the limits, `CancellationError`.
    mutating func scan(_ bytes: UnsafeRawBufferPointer, work: DecodeWork) throws {
        guard self.damage == nil, let end = self.end ?? self.start(bytes) else { return }
        let known = UnsafeRawBufferPointer(rebasing: bytes.prefix(end))
        while self.damage == nil, self.offset + WebPChunk.headByteCount <= end,
            let chunk = WebPChunk(known, at: self.offset)
        {
            try work.count(Self.unitsPerChunk)
            guard chunk.body.upperBound <= end else {
                // Viewers ignore data behind the image of a simple file.
                if self.canvas != nil || self.images.isEmpty { self.damage = "a chunk is longer than the file" }
                return
            }
            guard try self.read(chunk, known) else { return }
            self.offset = chunk.next
        }
    }

    private mutating func start(_ bytes: UnsafeRawBufferPointer) -> Int? {
        guard bytes.count >= 12 else { return nil }
        let size = Int(bytes.uint32(at: 4))
        guard bytes.starts(with: "RIFF".utf8), bytes[8..<12].elementsEqual("WEBP".utf8), size >= 12 else {
            self.damage = "it does not begin as the format says"
            return nil
        }
        self.end = size + 8
        return self.end
    }

    /// Reads one chunk.
    ///
    /// Returns `false` if it must wait for more bytes.
    private mutating func read(_ chunk: WebPChunk, _ bytes: UnsafeRawBufferPointer) throws -> Bool {
        let isFirst = chunk.start == 12
        if isFirst, !chunk.isImage, chunk.name != WebPChunk.Name.extended {
            self.damage = "it does not begin with an image"
            return true
        }
        switch chunk.name {
        case WebPChunk.Name.extended: return self.readExtended(chunk, isFirst, bytes)
        case WebPChunk.Name.animation: return self.readTiming(chunk, bytes)
        case WebPChunk.Name.frame: return try !self.isAnimated || self.readFrame(chunk, bytes)
        case WebPChunk.Name.alpha:
            if self.alpha == nil { self.alpha = chunk }
            return true
        case WebPChunk.Name.lossy, WebPChunk.Name.lossless: return try self.readStill(chunk, bytes)
        case WebPChunk.Name.colorProfile, WebPChunk.Name.exif: return self.readMetadata(chunk, bytes)
        default: return true
        }
    }

    private mutating func readExtended(_ chunk: WebPChunk, _ isFirst: Bool, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard isFirst, chunk.body.count >= 10 else {
            self.damage = "its VP8X chunk is out of place or too short"
            return true
        }
        let body = chunk.body.lowerBound
        guard bytes.count >= body + 10 else { return false }
        self.isAnimated = bytes[body] & 2 != 0
        let canvas = PixelSize(width: bytes.uint24(at: body + 4) + 1, height: bytes.uint24(at: body + 7) + 1)
        guard canvas.width * canvas.height < 1 << 32 else {
            self.damage = "its canvas of \(canvas.width)x\(canvas.height) pixels is larger than the format allows"
            return true
        }
        self.canvas = canvas
        return true
    }

    private mutating func readTiming(_ chunk: WebPChunk, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard self.isAnimated, !self.hasTiming else { return true }
        guard chunk.body.count >= 6 else {
            self.damage = "its ANIM chunk is too short"
            return true
        }
        let body = chunk.body.lowerBound
        guard bytes.count >= body + 6 else { return false }
        self.timing.loopCount = Int(bytes[body + 4]) | Int(bytes[body + 5]) << 8
        self.hasTiming = true
        return true
    }

    private mutating func readMetadata(_ chunk: WebPChunk, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= chunk.body.upperBound else { return false }
        // Copy the bytes, because they may move before more of them arrive.
        if chunk.name == WebPChunk.Name.colorProfile, self.colorProfile == nil {
            self.colorProfile = Data(bytes[chunk.body])
        } else if chunk.name == WebPChunk.Name.exif, !self.hasEXIF {
            self.hasEXIF = true
            self.orientation = EXIF.orientation(in: Data(bytes[chunk.body])) ?? .up
        }
        return true
    }

    /// Returns the content of the first chunk with a name in a complete file, outside of frames.
    ///
    /// - Throws: `CodingError.Code.tooMuchWork`, `CancellationError`.
    func block(_ name: UInt32, of bytes: UnsafeRawBufferPointer, work: DecodeWork) throws -> Data? {
        var offset = 12
        while let chunk = WebPChunk(bytes, at: offset), chunk.body.upperBound <= bytes.count {
            try work.count(Self.unitsPerChunk)
            if chunk.name == name { return Data(bytes[chunk.body]) }
            offset = chunk.next
        }
        return nil
    }

    private mutating func readStill(_ chunk: WebPChunk, _ bytes: UnsafeRawBufferPointer) throws -> Bool {
        guard !self.isAnimated else {
            self.damage = "it has a still image and says that it is an animation"
            return true
        }
        if !self.isLastOpen, !self.images.isEmpty {
            if self.canvas != nil { self.damage = "it has two images" }
            return true
        }
        let alpha = self.canvas == nil ? nil : self.alpha
        guard let image = self.image(chunk, alpha: alpha, bytes) else { return self.damage != nil }
        if let canvas, (canvas.width, canvas.height) != (image.frame.width, image.frame.height) {
            self.damage = "the image has another size than its canvas"
            return true
        }
        return try self.append(image)
    }

    private mutating func readFrame(_ chunk: WebPChunk, _ bytes: UnsafeRawBufferPointer) throws -> Bool {
        let body = chunk.body.lowerBound
        guard self.hasTiming, chunk.body.count >= 16 else {
            self.damage = "a frame is out of place or too short"
            return true
        }
        guard bytes.count >= body + 16 else { return false }
        guard var next = self.inner(at: body + 16, of: chunk, bytes) else { return self.damage != nil }
        var alpha: WebPChunk?
        if next.name == WebPChunk.Name.alpha {
            alpha = next
            guard let image = self.inner(at: next.next, of: chunk, bytes) else { return self.damage != nil }
            next = image
        }
        guard next.isImage else {
            self.damage = "a frame has no image"
            return true
        }
        guard var image = self.image(next, alpha: alpha, bytes) else { return self.damage != nil }
        let flags = bytes[body + 15]
        image.frame.left = bytes.uint24(at: body) * 2
        image.frame.top = bytes.uint24(at: body + 3) * 2
        image.frame.disposal = flags & 1 == 0 ? .keep : .background
        image.frame.blend = flags & 2 == 0 ? .over : .source
        image.milliseconds = bytes.uint24(at: body + 12)
        let size = PixelSize(width: bytes.uint24(at: body + 6) + 1, height: bytes.uint24(at: body + 9) + 1)
        guard self.fits(image.frame, size) else {
            self.damage = "a frame does not lie on the canvas, or has another size than it says"
            return true
        }
        return try self.append(image)
    }

    private func fits(_ frame: AnimationFrame, _ size: PixelSize) -> Bool {
        guard let canvas, (frame.width, frame.height) == (size.width, size.height) else { return false }
        return frame.left + frame.width <= canvas.width && frame.top + frame.height <= canvas.height
    }

    /// Returns a chunk inside a frame's chunk; `nil` if it has not arrived yet, or breaks the format.
    private mutating func inner(at offset: Int, of outer: WebPChunk, _ bytes: UnsafeRawBufferPointer) -> WebPChunk? {
        guard offset + WebPChunk.headByteCount <= outer.body.upperBound else {
            self.damage = "a frame has no image"
            return nil
        }
        guard let chunk = WebPChunk(bytes, at: offset) else { return nil }
        guard chunk.body.upperBound <= outer.body.upperBound else {
            self.damage = "a frame's image is longer than the frame"
            return nil
        }
        return chunk
    }

    /// Returns the image in a VP8 or VP8L chunk; `nil` if its header has not arrived yet, or breaks the format.
    private mutating func image(
        _ chunk: WebPChunk,
        alpha: WebPChunk?,
        _ bytes: UnsafeRawBufferPointer
    ) -> WebPCodedImage? {
        let end = min(chunk.body.upperBound, bytes.count)
        var features = WebPBitstreamFeatures()
        let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let status = WebPGetFeatures(start.map { $0 + chunk.start }, end - chunk.start, &features)
        guard status == VP8_STATUS_OK, features.width > 0, features.height > 0 else {
            if status != VP8_STATUS_NOT_ENOUGH_DATA || end == chunk.body.upperBound {
                self.damage = "its bit stream begins with no image"
            }
            return nil
        }
        let isLossless = chunk.name == WebPChunk.Name.lossless
        // RFC 6386, section 9.1: the frame tag has the size of the first partition in its upper 19 bits.
        let prelude = isLossless ? 0 : 10 + (bytes.uint24(at: chunk.body.lowerBound) >> 5)
        let first = isLossless ? chunk.start : alpha?.start ?? chunk.start
        let size = PixelSize(width: Int(features.width), height: Int(features.height))
        var result = WebPCodedImage(
            frame: AnimationFrame(
                left: 0,
                top: 0,
                width: size.width,
                height: size.height,
                hasAlpha: isLossless ? features.has_alpha != 0 : alpha != nil
            ),
            bytes: first..<end,
            end: chunk.body.upperBound,
            isLossless: isLossless,
            preludeByteCount: min(chunk.body.lowerBound + prelude, chunk.body.upperBound) - first
        )
        if isLossless {
            let stream = result.losslessStream(of: bytes)
            result.losslessByteCount = VP8LDecoder.byteCount(
                width: size.width,
                height: size.height,
                of: stream,
                byteCount: chunk.body.count
            )
        }
        return result
    }

    /// Appends an image, or updates the last one with its newly arrived bytes.
    ///
    /// Returns `false` while its end is missing.
    private mutating func append(_ image: WebPCodedImage) throws(CodingError) -> Bool {
        if self.isLastOpen {
            self.images[self.images.count - 1] = image
        } else {
            let count = self.images.count + 1
            if count == 1 {
                let size = self.canvas ?? PixelSize(width: image.frame.width, height: image.frame.height)
                try self.limits.check(ImageHeader(format: .webp, pixelWidth: size.width, pixelHeight: size.height))
            }
            let canvasPixelCount = self.isAnimated ? self.canvas.map { $0.width * $0.height } ?? 0 : 0
            try self.limits.check(
                frameCount: count,
                animationPixels: canvasPixelCount.saturatingMultiplied(by: count),
                format: .webp
            )
            self.images.append(image)
            let own = self.isAnimated ? image.frameByteCount(isFirst: count == 1) : 0
            self.codecByteCount = max(self.codecByteCount, image.codecByteCount.saturatingAdded(to: own))
            if let canvas, self.isAnimated {
                self.timing.appendFrame(milliseconds: image.milliseconds)
                self.transparency.draw(image.frame, canvas: canvas)
            }
        }
        self.isLastOpen = image.bytes.upperBound < image.end
        return !self.isLastOpen
    }
}

// MARK: Images

/// The head of a chunk: its name, and the size of its content.
struct WebPChunk {
    /// The names of chunks, as numbers with the first letter in the lowest byte.
    enum Name {
        static let animation = Self.number("ANIM")
        static let frame = Self.number("ANMF")
        static let alpha = Self.number("ALPH")
        static let lossy = Self.number("VP8 ")
        static let lossless = Self.number("VP8L")
        static let extended = Self.number("VP8X")
        static let colorProfile = Self.number("ICCP")
        static let exif = Self.number("EXIF")
        static let xmp = Self.number("XMP ")

        private static func number(_ name: StaticString) -> UInt32 {
            (0..<4).reversed().reduce(0) { $0 << 8 | UInt32(name.utf8Start[$1]) }
        }
    }

    /// The size of a chunk's name and size field in bytes.
    static let headByteCount = 8

    let name: UInt32
    /// The offset of the first byte of the name.
    let start: Int
    /// The range of the content, without padding.
    let body: Range<Int>

    /// Reads the head at `offset`; `nil` if fewer than eight bytes are available.
    init?(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        guard offset >= 0, bytes.count - offset >= Self.headByteCount else { return nil }
        self.name = bytes.uint32(at: offset)
        self.start = offset
        let body = offset + Self.headByteCount
        self.body = body..<body + Int(bytes.uint32(at: offset + 4))
    }

    /// The offset of the next chunk; chunks are padded to an even size.
    var next: Int { self.body.upperBound + self.body.count % 2 }

    /// Whether the chunk is VP8 or VP8L.
    var isImage: Bool { self.name == Name.lossy || self.name == Name.lossless }
}

extension UnsafeRawBufferPointer {
    /// Returns the number in four bytes at `offset`, lowest byte first; the caller must check the bounds.
    func uint32(at offset: Int) -> UInt32 {
        UInt32(littleEndian: self.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// Returns the number in three bytes at `offset`, lowest byte first; the caller must check the bounds.
    func uint24(at offset: Int) -> Int {
        Int(self[offset]) | Int(self[offset + 1]) << 8 | Int(self[offset + 2]) << 16
    }
}

/// One coded image of a WebP: a still image, or a frame of an animation.
struct WebPCodedImage {
    /// The position and drawing of the image on the canvas; a still image covers its canvas.
    var frame: AnimationFrame
    /// How long a frame is shown in milliseconds, as stored.
    var milliseconds = 0
    /// The range of the arrived part of its chunks in the file: ALPH, and VP8 or VP8L.
    ///
    /// This part can be decoded by itself.
    var bytes: Range<Int>
    /// The end of its chunks according to their sizes.
    var end: Int
    /// Whether the image is VP8L.
    var isLossless: Bool
    /// The bytes before the data of a lossy image's first row.
    ///
    /// They include its first partition, which says how each block is predicted.
    var preludeByteCount = 0

    /// For VP8L, the memory in bytes of its coded pixels and its tables.
    var losslessByteCount = 0

    /// The memory in bytes that the decoder needs, without the output.
    var codecByteCount: Int {
        // Lossless images refer to all earlier pixels, so the decoder holds them whole, in four bytes a pixel. For
        // lossy ones it holds some rows; their alpha is a lossless image of its own, and a plane of bytes.
        let pixels = self.frame.width * self.frame.height
        if self.isLossless { return self.losslessByteCount }
        let rows = self.frame.width * (WebPImageDecoder.isInSteps(self) ? 260 : 150)
        return rows + (self.frame.hasAlpha ? pixels * 5 : 0)
    }

    /// Returns the bytes of a frame's own pixels, if it cannot be decoded directly onto the canvas.
    func frameByteCount(isFirst: Bool) -> Int {
        guard !isFirst, !self.isDrawnDirectly else { return 0 }
        return (self.frame.width * 4 + PixelLayout.alignment) * self.frame.height
    }

    /// Returns the content of a lossless image's chunk; `bytes` are the bytes of the file.
    func losslessStream(of bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let start = min(self.bytes.lowerBound + WebPChunk.headByteCount, self.bytes.upperBound)
        return UnsafeRawBufferPointer(rebasing: bytes[start..<self.bytes.upperBound])
    }

    /// Whether the pixels replace the canvas, so that no blending is needed.
    var isDrawnDirectly: Bool { self.frame.blend == .source || !self.frame.hasAlpha }

    /// Returns the layout of a still image with its own aspect ratio: as large as sufficient, but not larger than
    /// stored.
    ///
    /// Only lossy images are decoded to a smaller size.
    func layout(sufficientSize: PixelSize?) throws(ImageError) -> PixelLayout {
        var scale = 1.0
        if let size = sufficientSize, !self.isLossless, size.width > 0, size.height > 0 {
            let (width, height) = (Double(self.frame.width), Double(self.frame.height))
            scale = min(1, max(Double(size.width) / width, Double(size.height) / height))
        }
        return try PixelLayout(
            format: self.frame.hasAlpha ? .rgba8 : .rgb8,
            width: max(1, Int((Double(self.frame.width) * scale).rounded())),
            height: max(1, Int((Double(self.frame.height) * scale).rounded()))
        )
    }
}

/// Tracks whether an animation is ever transparent, from the areas of its frames, without pixels.
///
/// A frame without alpha that covers the canvas makes it opaque. A frame that replaces pixels, or whose area is
/// cleared, can make it transparent again.
struct WebPTransparency {
    /// Whether the canvas has a transparent part while any frame is shown.
    private(set) var isSeen = false
    private var isOpaque = false
    /// The frame whose area is cleared before the next one is drawn.
    private var cleared: AnimationFrame?

    /// Updates the state with the next frame.
    mutating func draw(_ frame: AnimationFrame, canvas: PixelSize) {
        if let cleared = self.cleared, frame.hasAlpha || !frame.covers(cleared) { self.isOpaque = false }
        if frame.hasAlpha {
            if frame.blend == .source { self.isOpaque = false }
        } else if frame.covers(canvas) {
            self.isOpaque = true
        }
        if !self.isOpaque { self.isSeen = true }
        self.cleared = frame.disposal == .background ? frame : nil
    }
}
#endif
