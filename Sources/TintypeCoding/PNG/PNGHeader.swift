// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage

/// The content of a PNG's chunks, without pixels.
///
/// Source: W3C PNG, third edition, sections 5 and 11; it covers APNG. A broken chunk without pixels is ignored, except
/// for the header chunk and the palette.
struct PNGHeader {
    /// The part of the file to read.
    enum Extent {
        /// The chunks before the pixels, which a decode needs.
        case beforePixels
        /// All chunks, because only the end shows whether an animation is complete.
        case wholeFile
    }

    /// The work of a chunk that is skipped.
    static let unitsPerChunk = 4

    private static let signature: UInt64 = 0x8950_4E47_0D0A_1A0A
    /// The offset of the first chunk behind the signature and the header chunk.
    static let firstChunk = 8 + PNGChunk.overhead + PNGLayout.headerLength

    let layout: PNGLayout
    /// The colours of a palette image, three bytes each.
    private(set) var palette: [UInt8] = []
    /// The content of a `tRNS` chunk that fits the colour type; otherwise empty.
    private(set) var transparency: [UInt8] = []
    private(set) var exif: Data?
    /// The content of an `iCCP` chunk, still compressed.
    private(set) var compressedProfile: Data?
    /// The offset of the first chunk with pixels; `nil` if no chunk has pixels.
    private(set) var pixelsOffset: Int?
    /// The number of the image's chunks with pixels, and their bytes, if the whole file was read.
    private(set) var pixelChunkCount = 0
    private(set) var pixelByteCount = 0
    /// The animation, if it is valid and the whole file was read.
    private(set) var animation: PNGAnimation?

    /// Reads the list of chunks up to its end, or up to an incomplete chunk, which the decoder reports.
    ///
    /// - Throws: `CodingError` for a broken header chunk, a broken palette, and more frames than the limits of `work`
    ///   allow; `CancellationError`.
    init(_ bytes: UnsafeRawBufferPointer, _ extent: Extent, work: DecodeWork) throws {
        self.layout = try Self.layout(of: bytes)
        var animation = PNGAnimationParser(canvas: self.layout)
        var offset = Self.firstChunk
        while let chunk = PNGChunk(at: offset, in: bytes) {
            try work.count(Self.unitsPerChunk)
            if chunk.kind == .end {
                // Without the end chunk, the animation may be incomplete.
                if extent == .wholeFile { self.animation = animation.finish() }
                break
            }
            if chunk.kind == .pixels, self.pixelsOffset == nil {
                self.pixelsOffset = offset
                if extent == .beforePixels { break }
            }
            guard chunk.isComplete(in: bytes) else { break }
            if chunk.kind == .pixels {
                self.pixelChunkCount += 1
                self.pixelByteCount += chunk.length
            }
            if self.pixelsOffset == nil {
                try self.read(chunk, of: bytes)
            } else {
                self.readMetadata(chunk, of: bytes)
            }
            animation.read(chunk, of: bytes)
            try work.limits.check(frameCount: animation.foundFrameCount, format: .png)
            offset = chunk.next
        }
        guard self.layout.colorType != .palette || self.pixelsOffset == nil || !self.palette.isEmpty else {
            throw CodingError.corrupt(.png, "its palette is missing")
        }
    }

    /// Reads the list of chunks of `data`.
    init(_ data: Data, _ extent: Extent, work: DecodeWork) throws {
        self = try data.withUnsafeBytes { try PNGHeader($0, extent, work: work) }
    }

    /// Whether a chunk before the pixels declares an animation, whose frames may be missing or not have arrived yet.
    private(set) var saysAnimation = false

    var hasAlpha: Bool {
        !self.transparency.isEmpty || self.layout.colorType == .grayAlpha || self.layout.colorType == .rgba
    }

    /// The format that the samples are decoded to.
    var pixelFormat: PixelFormat {
        if self.hasAlpha { return .rgba8 }
        return self.layout.colorType == .gray ? .gray8 : .rgb8
    }

    private static func layout(of bytes: UnsafeRawBufferPointer) throws(CodingError) -> PNGLayout {
        guard bytes.count >= 8, let chunk = PNGChunk(at: 8, in: bytes) else { throw .truncated(.png) }
        guard bytes.bigEndian(at: 0) == Self.signature, chunk.kind == .imageHeader else {
            throw .corrupt(.png, "it does not begin with a header chunk")
        }
        guard chunk.length == PNGLayout.headerLength else {
            throw .corrupt(.png, "its header chunk has a wrong length")
        }
        guard chunk.isComplete(in: bytes) else { throw .truncated(.png) }
        let layout = try PNGLayout(chunk.content(of: bytes))
        guard chunk.isSound(in: bytes) else { throw .corrupt(.png, "the checksum of its header chunk is wrong") }
        return layout
    }

    /// Reads a chunk before the pixels; of each kind the first one counts.
    private mutating func read(_ chunk: PNGChunk, of bytes: UnsafeRawBufferPointer) throws(CodingError) {
        let content = chunk.content(of: bytes)
        switch chunk.kind {
        case .palette where self.layout.colorType == .palette && self.palette.isEmpty:
            guard chunk.length > 0, chunk.length <= 768, chunk.length % 3 == 0, chunk.isSound(in: bytes) else {
                throw .corrupt(.png, "its palette is broken")
            }
            self.palette = Array(content)
        case .transparency where self.transparency.isEmpty:
            if self.allowsTransparency(chunk.length), chunk.isSound(in: bytes) { self.transparency = Array(content) }
        case .animationControl: self.saysAnimation = true
        default: self.readMetadata(chunk, of: bytes)
        }
    }

    /// Reads a chunk that may also stand behind the pixels.
    ///
    /// A profile does not belong there, but decoders read it.
    private mutating func readMetadata(_ chunk: PNGChunk, of bytes: UnsafeRawBufferPointer) {
        switch chunk.kind {
        case .exif where self.exif == nil:
            if chunk.isSound(in: bytes) { self.exif = Data(chunk.content(of: bytes)) }
        case .colorProfile where self.compressedProfile == nil:
            if chunk.isSound(in: bytes) { self.compressedProfile = Data(chunk.content(of: bytes)) }
        default: break
        }
    }

    private func allowsTransparency(_ length: Int) -> Bool {
        switch self.layout.colorType {
        case .gray: length == 2
        case .rgb: length == 6
        case .palette: length > 0 && length <= self.palette.count / 3
        case .grayAlpha, .rgba: false
        }
    }
}
