// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage

/// Decodes a PNG while its bytes arrive: by rows, or by passes if it is interlaced.
///
/// It keeps the chunks before the pixels until the pixels begin, and keeps no compressed pixels. For an animation it
/// keeps all bytes. It shows the default image while they arrive, and decodes the requested frame at the end.
final class PNGIncrementalDecoder: IncrementalDecoder {
    /// The decoder of the pixels and its output, once the pixels have begun.
    private struct Pixels {
        let lines: PNGScanlines
        let canvas: PNGCanvas
    }

    private(set) var header: ImageHeader?
    private let options: DecodeOptions
    private let work: DecodeWork
    private var receivedByteCount = 0
    /// The bytes kept for later.
    private var kept = Data()
    private var keepsAll = false
    /// Whether the header has arrived and is within the limits.
    private var isWithinLimits = false
    /// The offset of the next chunk before the pixels.
    private var offset = PNGHeader.firstChunk
    private var pixels: Pixels?
    private var chunks = PNGChunkStream()
    /// The content of a metadata chunk behind the pixels.
    private var metadata = Data()
    private var havePixelsEnded = false
    /// Whether the end of the compressed bytes was found, with the right checksum; not checked if truncation is
    /// allowed.
    private var haveCompressedBytesEnded = false
    private var hasEnded = false
    /// An error that is allowed, or that does not matter.
    private var failure: CodingError?
    private var previewedLineCount = 0

    init(options: DecodeOptions) {
        self.options = options
        self.work = DecodeWork(options.limits, format: .png)
    }

    var workDone: Int { self.work.spent.saturatingAdded(to: self.pixels?.canvas.previewWork.spent ?? 0) }

    var previewUnits: Int { self.pixels?.canvas.previewUnits ?? 0 }

    func append(_ bytes: Data) throws {
        guard !bytes.isEmpty else { return }
        try Task.checkCancellation()
        self.receivedByteCount += bytes.count
        try self.options.limits.check(encodedByteCount: self.receivedByteCount)
        if self.keepsAll, self.pixels != nil { self.kept.append(bytes) }
        guard self.failure == nil else { return }
        do {
            if self.pixels != nil {
                try bytes.withUnsafeBytes { try self.consume($0) }
            } else {
                self.kept.append(bytes)
                try self.beginPixels()
            }
        } catch let error as CodingError {
            // The default image of an animation need not be its frame.
            let isShown = self.options.allowsTruncated && (self.pixels?.lines.lineCount ?? 0) > 0
            guard error.isDamage, self.pixels != nil, self.keepsAll || isShown else {
                throw error
            }
            self.failure = error
        }
    }

    func preview() throws -> Image? {
        guard let pixels, let header, pixels.lines.lineCount > self.previewedLineCount else { return nil }
        self.previewedLineCount = pixels.lines.lineCount
        return Image(pixels: try pixels.canvas.preview(), orientation: header.orientation, sourceFormat: .png)
    }

    func finish() throws -> DecodedImage {
        guard let pixels else {
            // The decoder of whole files reports best why the file has no pixels.
            _ = try EncodedPNG(self.kept, limits: self.options.limits).decode(options: self.options)
            throw CodingError.truncated(.png)
        }
        if self.keepsAll { return try self.finishAnimation() }
        if !self.options.allowsTruncated {
            if let failure { throw failure }
            guard pixels.lines.isFinished, self.hasEnded else { throw CodingError.truncated(.png) }
        } else if pixels.lines.lineCount == 0 {
            throw self.failure ?? CodingError.truncated(.png)
        }
        guard self.options.frame == 0 else { throw CodingError.noFrame(self.options.frame, of: 1, .png) }
        let orientation = self.header?.orientation ?? .up
        let copy = try pixels.canvas.copy(work: self.work)
        return DecodedImage(Image(pixels: copy, orientation: orientation, sourceFormat: .png))
    }

    /// Returns the requested frame, composited; a still image if the animation turns out to be broken.
    private func finishAnimation() throws -> DecodedImage {
        let encoded = try EncodedPNG(self.kept, limits: self.options.limits)
        self.header = encoded.header
        return try encoded.decode(options: self.options)
    }

    // MARK: Before the pixels

    /// Checks whether the pixels have begun to arrive.
    private func beginPixels() throws {
        let kept = self.kept
        try kept.withUnsafeBytes { bytes in
            if !self.isWithinLimits, bytes.count >= PNGHeader.firstChunk {
                try self.options.limits.check(ImageHeader(try PNGHeader(bytes, .beforePixels, work: self.work)))
                self.isWithinLimits = true
            }
            while self.isWithinLimits, let chunk = PNGChunk(at: self.offset, in: bytes) {
                try self.work.count(PNGHeader.unitsPerChunk)
                if chunk.kind == .pixels { return try self.beginPixels(in: bytes) }
                guard chunk.kind != .end else { throw CodingError.corrupt(.png, "it has no pixels") }
                guard chunk.length <= PNGChunk.maximumLength else {
                    throw CodingError.corrupt(.png, "a chunk is too long")
                }
                guard chunk.isComplete(in: bytes) else { return }
                if chunk.kind == .animationControl { self.keepsAll = true }
                self.offset = chunk.next
            }
        }
    }

    private func beginPixels(in bytes: UnsafeRawBufferPointer) throws {
        let png = try PNGHeader(bytes, .beforePixels, work: self.work)
        self.header = ImageHeader(png)
        self.pixels = Pixels(
            lines: try PNGScanlines(png.layout, work: self.work),
            canvas: try PNGCanvas(png, output: self.keepsAll ? .rgba8 : png.pixelFormat)
        )
        try self.consume(UnsafeRawBufferPointer(rebasing: bytes[self.offset...]))
    }

    // MARK: Pixels and later chunks

    private func consume(_ bytes: UnsafeRawBufferPointer) throws {
        defer { if !self.keepsAll { self.kept = Data() } }
        var input = bytes
        while !self.hasEnded, let event = try self.chunks.next(&input) {
            try self.work.count(1)
            switch event {
            case .begin(let kind): try self.begin(kind)
            case .content(.pixels, let content) where !self.havePixelsEnded: try self.decode(content)
            case .content(.exif, let content), .content(.colorProfile, let content):
                self.metadata.append(contentsOf: content)
            case .content: break
            case .end(let kind, let isSound): try self.end(kind, isSound: isSound)
            }
        }
    }

    private func begin(_ kind: PNGChunk.Kind) throws(CodingError) {
        guard kind != .pixels else { return }
        if !self.havePixelsEnded, self.pixels?.lines.isFinished == false { throw .truncated(.png) }
        guard self.haveCompressedBytesEnded || self.options.allowsTruncated else { throw .truncated(.png) }
        self.havePixelsEnded = true
        switch kind {
        // Ignore its checksum, which guards no content.
        case .end: self.hasEnded = true
        case .exif, .colorProfile: self.metadata = Data()
        case .palette: break
        default:
            guard !kind.isCritical || self.options.allowsTruncated else {
                throw .corrupt(.png, "there is a critical chunk of an unknown kind")
            }
        }
    }

    private func end(_ kind: PNGChunk.Kind, isSound: Bool) throws(CodingError) {
        switch kind {
        case .pixels where !isSound && !self.havePixelsEnded && !self.options.allowsTruncated:
            throw .corrupt(.png, "the checksum of its pixels is wrong")
        case .exif where isSound:
            if self.header?.orientation == .up, let orientation = EXIF.orientation(in: self.metadata) {
                self.header?.orientation = orientation
            }
        case .colorProfile where isSound && self.header?.colorProfile == nil:
            self.header?.colorProfile = PNGColorProfile.inflated(self.metadata)
        default: break
        }
    }

    private func decode(_ content: UnsafeRawBufferPointer) throws {
        guard let pixels else { return }
        var input = content
        while let line = try pixels.lines.next(&input) { pixels.canvas.write(line) }
        guard pixels.lines.isFinished, !self.haveCompressedBytesEnded, !self.options.allowsTruncated else { return }
        self.haveCompressedBytesEnded = try pixels.lines.hasEnded(&input)
    }
}

/// The pixels of an image whose bytes are still arriving, and previews made from them.
final class PNGCanvas {
    private let layout: PixelLayout
    private let passes: [PNGPass]
    private let memory: AlignedMemory
    private var image: PNGImage
    /// Counts previews separately, so that they do not use up the budget of the image itself.
    ///
    /// It does not limit the number of previews.
    let previewWork = DecodeWork(.none, format: .png)
    /// The place of the last scanline.
    private var last: (pass: Int, row: Int)?

    /// Allocates black or transparent pixels.
    init(_ header: PNGHeader, output: PixelFormat) throws {
        let layout = try PixelLayout(format: output, width: header.layout.width, height: header.layout.height)
        let memory = try AlignedMemory(zeroedByteCount: layout.byteCount)
        self.layout = layout
        self.passes = header.layout.passes
        self.image = PNGImage(
            PNGSampleConverter(header, output: output),
            passes: self.passes,
            layout: layout,
            pixels: memory.bytes
        )
        self.memory = memory
    }

    private var pixels: UnsafeMutableRawBufferPointer { self.memory.bytes }

    /// Writes the pixels of a scanline.
    func write(_ line: PNGScanlines.Line) {
        self.image.write(line)
        self.last = (line.pass, line.row)
    }

    /// Returns a copy of the pixels so far.
    func copy(work: DecodeWork) throws -> PixelBuffer {
        try PixelBuffer(self.layout, copying: UnsafeRawBufferPointer(self.pixels), work: work)
    }

    /// Returns a preview in which each known pixel of an interlaced image also fills its missing neighbours.
    func preview() throws -> PixelBuffer {
        guard let (whole, overlaid) = self.known else { return try self.copy(work: self.previewWork) }
        return try PixelBuffer(
            self.layout,
            fillingUnsafely: { target in
                if let whole {
                    try self.enlarge(whole, to: target)
                } else {
                    try target.clear(self.previewWork)
                }
                if let overlaid { try self.overlay(overlaid.pass, rows: overlaid.rows, on: target) }
            }
        )
    }

    /// The work of a preview.
    var previewUnits: Int {
        guard let (whole, overlaid) = self.known else { return DecodeWork.units(ofCopying: self.layout.byteCount) }
        let enlarging = whole.map { self.units(ofEnlarging: $0, rows: self.layout.height / $0.blockHeight + 1) }
        let overlaying = overlaid.map { self.units(ofEnlarging: $0.pass, rows: $0.rows) } ?? 0
        return (enlarging ?? DecodeWork.units(ofCopying: self.layout.byteCount)) + overlaying
    }

    /// The last complete pass of an interlaced image, and the part of the next pass that has arrived.
    ///
    /// `nil` if the image is not interlaced, has no pixels yet, or is complete.
    private var known: (whole: PNGPass?, overlaid: (pass: PNGPass, rows: Int)?)? {
        guard self.passes[0].columnStep > 1, let last = self.last else { return nil }
        let pass = self.passes[last.pass]
        guard last.row + 1 == pass.height else {
            return (last.pass > 0 ? self.passes[last.pass - 1] : nil, (pass, last.row + 1))
        }
        // The image is complete, so no pixel is missing.
        return pass.blockHeight == 1 ? nil : (pass, nil)
    }

    /// Returns the work of making a number of rows and filling the rows below each of them.
    private func units(ofEnlarging pass: PNGPass, rows: Int) -> Int {
        let copied = (pass.blockHeight - 1) * self.layout.planes[0].bytesPerRow
        return rows * (self.layout.width + DecodeWork.units(ofCopying: copied))
    }

    /// Fills the image from the grid of pixels that is complete after a pass.
    private func enlarge(_ pass: PNGPass, to target: UnsafeMutableRawBufferPointer) throws {
        let columns = stride(from: 0, to: self.layout.width, by: pass.blockWidth)
        for top in stride(from: 0, to: self.layout.height, by: pass.blockHeight) {
            try self.enlargeRow(top, of: pass, columns: columns, target)
        }
    }

    /// Draws the rows of an incomplete pass over the image.
    private func overlay(_ pass: PNGPass, rows: Int, on target: UnsafeMutableRawBufferPointer) throws {
        let columns = stride(from: pass.left, to: self.layout.width, by: pass.columnStep)
        for index in 0..<rows {
            try self.enlargeRow(pass.top + index * pass.rowStep, of: pass, columns: columns, target)
        }
    }

    /// Fills a row from its known pixels, and copies it to the rows below.
    ///
    /// Copying the whole row is right: the rows below were equal to it before, because a block of a pass lies within
    /// a block of the pass before.
    private func enlargeRow(
        _ top: Int,
        of pass: PNGPass,
        columns: StrideTo<Int>,
        _ target: UnsafeMutableRawBufferPointer
    ) throws {
        guard let from = self.pixels.baseAddress, let to = target.baseAddress else { return }
        try self.previewWork.count(self.units(ofEnlarging: pass, rows: 1))
        let plane = self.layout.planes[0]
        let channels = self.layout.format.channelCount
        let (source, row) = (from + top * plane.bytesPerRow, to + top * plane.bytesPerRow)
        for left in columns {
            for column in left..<min(left + pass.blockWidth, self.layout.width) {
                (row + column * channels).copyMemory(from: source + left * channels, byteCount: channels)
            }
        }
        for below in top + 1..<max(top + 1, min(top + pass.blockHeight, self.layout.height)) {
            (to + below * plane.bytesPerRow).copyMemory(from: row, byteCount: plane.usedBytesPerRow)
        }
    }
}
