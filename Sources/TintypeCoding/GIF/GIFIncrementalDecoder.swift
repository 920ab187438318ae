// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage

/// Decodes the first frame of a GIF while its bytes arrive: by rows, or by passes if it is interlaced.
final class GIFIncrementalDecoder: IncrementalDecoder {
    private let options: DecodeOptions
    private var data = Data()
    private var stream: GIFStream
    /// The work of all calls together, including previews.
    private let work: DecodeWork
    private var canvas: GIFCanvas?
    private(set) var header: ImageHeader?
    private var hasNews = false

    /// Creates a decoder at the start of a file.
    init(options: DecodeOptions) {
        self.options = options
        self.stream = GIFStream(limits: options.limits)
        self.work = DecodeWork(options.limits, format: .gif)
    }

    var workDone: Int { self.work.spent }
    var previewUnits: Int { self.canvas?.copyUnits ?? 0 }

    func append(_ bytes: Data) throws {
        try Task.checkCancellation()
        self.data.append(bytes)
        try self.options.limits.check(self.data)
        let frameCount = self.stream.frames.count
        try self.stream.advance(through: self.data, work: self.work)
        guard self.stream.hasScreen else { return }
        if self.header == nil || self.stream.frames.count > frameCount {
            let header = ImageHeader(self.stream)
            try self.options.limits.check(header)
            // Before the first frame, the content of the file is unknown.
            if frameCount == 0, let frame = self.stream.frames.first {
                try GIFFile.check(frame, limits: self.options.limits)
                self.canvas = try GIFCanvas(self.stream, frame, in: self.data)
            }
            if !self.stream.frames.isEmpty { self.header = header }
        }
        guard let canvas else { return }
        if try canvas.advance(through: self.data, work: self.work) { self.hasNews = true }
        if !self.options.allowsTruncated { try canvas.checkCodes() }
    }

    func preview() throws -> Image? {
        guard self.hasNews, let canvas else { return nil }
        self.hasNews = false
        return Image(pixels: try canvas.pixels(as: .rgba8, work: self.work), sourceFormat: .gif)
    }

    func finish() throws -> DecodedImage {
        try GIFFile.check(self.stream, byteCount: self.data.count, options: self.options)
        guard let canvas else { throw CodingError.truncated(.gif) }
        let isWhole = try canvas.finish(
            with: self.data,
            allowsTruncated: self.options.allowsTruncated,
            work: self.work
        )
        let pixels = try canvas.pixels(as: isWhole ? PixelFormat.gif(self.stream) : .rgba8, work: self.work)
        return DecodedImage(Image(pixels: pixels, sourceFormat: .gif))
    }
}

/// The canvas on which the first frame of a GIF is decoded, with the decoder that writes to it.
final class GIFCanvas {
    private let layout: PixelLayout
    private let memory: AlignedMemory
    private var decoder: GIFFrameDecoder

    /// Allocates a transparent canvas for the first frame.
    ///
    /// - Throws: `ImageError`.
    init(_ stream: GIFStream, _ frame: GIFFrame, in data: Data) throws {
        self.layout = try PixelLayout(format: .rgba8, width: stream.width, height: stream.height)
        self.memory = try AlignedMemory(zeroedByteCount: self.layout.byteCount)
        let writer = GIFRowWriter(
            target: self.memory.start,
            layout: self.layout,
            origin: (Int(frame.left), Int(frame.top)),
            frame: frame,
            visible: frame.visibleSize(width: stream.width, height: stream.height),
            palette: GIFPalette(frame.palette, transparentIndex: frame.transparentIndex, in: data)
        )
        self.decoder = GIFFrameDecoder(frame, writer: writer)
    }

    /// Decodes the new bytes in `data`, and returns whether there are new pixels.
    func advance(through data: Data, work: DecodeWork) throws -> Bool {
        let before = self.decoder.missingPixelCount
        try self.decoder.advance(through: data, isAll: false, work: work)
        return self.decoder.missingPixelCount < before
    }

    /// Throws if the codes are invalid.
    func checkCodes() throws(CodingError) {
        if self.decoder.progress == .isDamaged { try self.decoder.check() }
    }

    /// Decodes the rest after the last byte, and returns whether all pixels are decoded.
    func finish(with data: Data, allowsTruncated: Bool, work: DecodeWork) throws -> Bool {
        try self.decoder.advance(through: data, isAll: true, work: work)
        if !allowsTruncated { try self.decoder.check() }
        return self.decoder.progress == .isComplete
    }

    /// The work of a copy.
    var copyUnits: Int { DecodeWork.units(ofCopying: self.layout.byteCount) }

    /// Returns a copy of the pixels so far, with or without alpha.
    ///
    /// - Throws: `ImageError` when memory runs out, `CodingError.Code.tooMuchWork`, `CancellationError`.
    func pixels(as format: PixelFormat, work: DecodeWork) throws -> PixelBuffer {
        let target = try PixelLayout(format: format, width: self.layout.width, height: self.layout.height)
        let strip = DecodeWork.rowsAtOnce(ofWidth: target.width)
        let (from, to) = (self.layout.planes[0], target.planes[0])
        let unitsPerRow = format == .rgba8 ? DecodeWork.units(ofCopying: to.bytesPerRow) : target.width / 2
        return try PixelBuffer(
            target,
            fillingUnsafely: { bytes in
                guard let start = bytes.baseAddress else { return }
                for first in stride(from: 0, to: target.height, by: strip) {
                    let end = min(first + strip, target.height)
                    try work.count((end - first) * unitsPerRow)
                    for row in first..<end {
                        let (source, row) = (self.memory.start + row * from.bytesPerRow, start + row * to.bytesPerRow)
                        if format == .rgba8 {
                            row.copyMemory(from: source, byteCount: from.usedBytesPerRow)
                        } else {
                            Self.dropAlpha(source, to: row, count: target.width)
                        }
                    }
                }
            }
        )
    }

    private static func dropAlpha(
        _ source: UnsafeMutableRawPointer,
        to target: UnsafeMutableRawPointer,
        count: Int
    ) {
        for column in 0..<count {
            for channel in 0..<3 {
                let sample = source.load(fromByteOffset: column * 4 + channel, as: UInt8.self)
                target.storeBytes(of: sample, toByteOffset: column * 3 + channel, as: UInt8.self)
            }
        }
    }
}
