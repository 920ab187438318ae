// SPDX-License-Identifier: Apache-2.0

import CTintypeJPEG
import FoundationEssentials
import Glibc
import TintypeImage

/// One encoder of libjpeg, which is freed with the object.
final class JPEGCompressor {
    /// The longest side that the library can store (JPEG_MAX_DIMENSION).
    private static let maximumSide = 65_500
    /// The lowest quality at which colour is stored in full resolution.
    private static let fullColorQuality = 90
    /// The rows between two checks for cancellation.
    private static let rowsAtOnce = 64

    private let handle: OpaquePointer

    init() throws(CodingError) {
        guard let handle = cjpeg_encoder_create({ Task.isCancelled }) else { throw .outOfMemory(.jpeg) }
        self.handle = handle
    }

    deinit {
        cjpeg_encoder_free(self.handle)
    }

    /// Returns the memory in bytes that an encode of the worst image takes.
    ///
    /// Noise of two values takes 0.75 bytes a sample at quality 80, and 1.9 at 100. The output buffer grows by
    /// doubling. Passes over the coefficients need all of them in memory, two bytes each.
    static func byteCount(of layout: PixelLayout, options: EncodeOptions) -> Int {
        let quality = min(max(options.quality, 1), 100)
        let steps = Self.subsampling(options.chromaSubsampling, quality: quality)
        let (unitWidth, unitHeight) = layout.format == .gray8 ? (8, 8) : (8 * Int(steps.across), 8 * Int(steps.down))
        let units = ((layout.width - 1) / unitWidth + 1).saturatingMultiplied(by: (layout.height - 1) / unitHeight + 1)
        let blocks = layout.format == .gray8 ? 1 : unitWidth * unitHeight / 64 + 2
        let samples = units.saturatingMultiplied(by: blocks * 64)
        let written = (samples / (130 - quality)).saturatingMultiplied(by: 66)
        let limit = options.requiresMaximumByteCount ? options.maximumByteCount : nil
        let file = limit.map { min(written, max(0, $0)) } ?? written
        let holdsCoefficients = options.isProgressive || options.maximumByteCount != nil
        // The buffer begins with a quarter byte a pixel. The best file so far stays while another one is encoded.
        return file.saturatingMultiplied(by: options.maximumByteCount == nil ? 2 : 3)
            .saturatingAdded(to: layout.pixelCount / 4)
            .saturatingAdded(to: holdsCoefficients ? samples.saturatingMultiplied(by: 2) : 0)
            .saturatingAdded(to: layout.width.saturatingMultiplied(by: layout.format.hasAlpha ? 384 : 192) + 128 << 10)
    }

    /// Encodes upright pixels, and blends transparent ones over the background.
    func compress(_ pixels: PixelBuffer, options: EncodeOptions) throws -> Data {
        guard max(pixels.width, pixels.height) <= Self.maximumSide else {
            throw CodingError.notEncoded(
                .jpeg,
                "A JPEG has at most \(Self.maximumSide) pixels a side; make the image smaller or choose PNG."
            )
        }
        let segments = try JPEGSegments(options.metadata)
        let quality = min(max(options.quality, 1), 100)
        guard let limit = options.maximumByteCount else {
            return try self.encode(pixels, segments, quality: quality, limit: .max, options)
        }
        func encodeIfFits(_ quality: Int) throws -> Data? {
            do {
                return try self.encode(pixels, segments, quality: quality, limit: limit, options)
            } catch is TooManyBytes {
                return nil
            }
        }
        if let data = try encodeIfFits(quality) ?? EncodeOptions.largest(below: quality, encodeIfFits) { return data }
        guard options.requiresMaximumByteCount else {
            return try self.encode(pixels, segments, quality: 1, limit: .max, options)
        }
        throw CodingError.notEncoded(
            .jpeg,
            "The image has more than \(limit) bytes as JPEG even at quality 1; make it smaller, or raise the limit."
        )
    }

    private struct TooManyBytes: Error {}

    private func encode(
        _ pixels: PixelBuffer,
        _ segments: JPEGSegments,
        quality: Int,
        limit: Int,
        _ options: EncodeOptions
    ) throws -> Data {
        let steps = Self.subsampling(options.chromaSubsampling, quality: quality)
        var settings = cjpeg_settings(
            width: CInt(pixels.width),
            height: CInt(pixels.height),
            components: pixels.format == .gray8 ? 1 : 3,
            quality: CInt(quality),
            is_progressive: options.isProgressive,
            // Optimised tables make a file some percent smaller and need a second pass. With a byte limit that pays
            // off, because the saved bytes allow a higher quality.
            has_own_tables: options.maximumByteCount != nil,
            restart_interval: 0,
            horizontal_subsampling: steps.across,
            vertical_subsampling: steps.down,
            maximum_bytes: max(0, limit)
        )
        try self.check(cjpeg_encoder_start(self.handle, &settings))
        for segment in segments.all { try self.write(segment) }
        try self.writeRows(of: pixels, over: options.background)
        try self.check(cjpeg_encoder_finish(self.handle))
        var count = 0
        guard let bytes = cjpeg_encoder_take(self.handle, &count) else { throw CodingError.outOfMemory(.jpeg) }
        return Data(bytesNoCopy: bytes, count: count, deallocator: .free)
    }

    private func write(_ segment: JPEGSegments.Segment) throws {
        try self.check(
            cjpeg_encoder_begin_segment(self.handle, segment.marker, segment.prefix.count + segment.content.count)
        )
        for part in [Data(segment.prefix), segment.content] {
            try part.withUnsafeBytes { bytes in
                let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
                try self.check(cjpeg_encoder_write_segment(self.handle, start, bytes.count))
            }
        }
    }

    private func writeRows(of pixels: PixelBuffer, over background: Color) throws {
        let plane = pixels.layout.planes[0]
        var strip = [UInt8](repeating: 0, count: pixels.format.hasAlpha ? plane.width * 3 * Self.rowsAtOnce : 0)
        for top in stride(from: 0, to: plane.height, by: Self.rowsAtOnce) {
            try Task.checkCancellation()
            let count = min(Self.rowsAtOnce, plane.height - top)
            try pixels.withUnsafeBytes { bytes in
                let rows = UnsafeRawBufferPointer(rebasing: bytes[(top * plane.bytesPerRow)...])
                guard pixels.format.hasAlpha else {
                    try self.write(rows, bytesPerRow: plane.bytesPerRow, count: count)
                    return
                }
                try strip.withUnsafeMutableBytes { strip in
                    for row in 0..<count {
                        background.flatten(
                            UnsafeRawBufferPointer(rebasing: rows[(row * plane.bytesPerRow)...]),
                            to: UnsafeMutableRawBufferPointer(rebasing: strip[(row * plane.width * 3)...]),
                            count: plane.width
                        )
                    }
                    try self.write(UnsafeRawBufferPointer(strip), bytesPerRow: plane.width * 3, count: count)
                }
            }
        }
    }

    private func write(_ rows: UnsafeRawBufferPointer, bytesPerRow: Int, count: Int) throws {
        guard let base = rows.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
        try self.check(cjpeg_encoder_write_rows(self.handle, base, bytesPerRow, CInt(count)))
    }

    private static func subsampling(
        _ wanted: EncodeOptions.ChromaSubsampling,
        quality: Int
    ) -> (across: CInt, down: CInt) {
        switch wanted {
        case .automatic: quality >= Self.fullColorQuality ? (1, 1) : (2, 2)
        case .none: (1, 1)
        case .half: (2, 1)
        case .quarter: (2, 2)
        }
    }

    private func check(_ status: cjpeg_status) throws {
        guard status != .done else { return }
        switch cjpeg_encoder_failure(self.handle) {
        case .size: throw TooManyBytes()
        case .stopped: throw CancellationError()
        case .memory: throw CodingError.outOfMemory(.jpeg)
        default:
            let reason = String(cString: cjpeg_encoder_message(self.handle))
            throw CodingError.notEncoded(.jpeg, "The image cannot be written as JPEG: \(reason).")
        }
    }
}

extension Color {
    /// Blends `count` pixels with alpha over the colour.
    fileprivate func flatten(
        _ source: UnsafeRawBufferPointer,
        to target: UnsafeMutableRawBufferPointer,
        count: Int
    ) {
        precondition(source.count >= count * 4 && target.count >= count * 3, "The row does not fit.")
        let backdrop = (UInt32(self.red), UInt32(self.green), UInt32(self.blue))
        for column in 0..<count {
            let alpha = UInt32(source[column * 4 + 3])
            let rest = 255 - alpha
            let red = (UInt32(source[column * 4]) * alpha + backdrop.0 * rest + 127) / 255
            let green = (UInt32(source[column * 4 + 1]) * alpha + backdrop.1 * rest + 127) / 255
            let blue = (UInt32(source[column * 4 + 2]) * alpha + backdrop.2 * rest + 127) / 255
            target[column * 3] = UInt8(truncatingIfNeeded: red)
            target[column * 3 + 1] = UInt8(truncatingIfNeeded: green)
            target[column * 3 + 2] = UInt8(truncatingIfNeeded: blue)
        }
    }
}

/// The marker segments that carry metadata.
///
/// Sources: Exif 2.32, 4.7.2; XMP specification part 3, 1.1.3; ICC.1, annex B.4.
struct JPEGSegments {
    /// One marker segment.
    struct Segment {
        let marker: CInt
        let prefix: [UInt8]
        let content: Data
    }

    /// The most bytes that a segment can hold: its length has two bytes and includes them.
    private static let maximumByteCount = 65_533

    let all: [Segment]

    /// Builds the segments.
    ///
    /// - Throws: `CodingError.Code.encodingFailed` if a block is too large for the format.
    init(_ metadata: EncodeOptions.Metadata) throws(CodingError) {
        var all: [Segment] = []
        if let exif = metadata.exif {
            all.append(try Self.segment("Exif\0\0", exif, "EXIF block"))
        }
        if let xmp = metadata.xmp {
            all.append(try Self.segment("http://ns.adobe.com/xap/1.0/\0", xmp, "XMP packet"))
        }
        if let profile = metadata.colorProfile { all += try Self.segments(profile: profile) }
        self.all = all
    }

    private static func segments(profile: Data) throws(CodingError) -> [Segment] {
        let name = Array("ICC_PROFILE\0".utf8)
        let step = Self.maximumByteCount - name.count - 2
        let count = (profile.count + step - 1) / step
        guard count <= 255 else { throw Self.tooLarge("ICC profile") }
        return (0..<count).map { index in
            Segment(
                marker: 0xE2,
                prefix: name + [UInt8(index + 1), UInt8(count)],
                content: profile.slice(from: index * step, to: (index + 1) * step)
            )
        }
    }

    private static func segment(_ prefix: String, _ content: Data, _ name: String) throws(CodingError) -> Segment {
        let prefix = Array(prefix.utf8)
        guard prefix.count + content.count <= Self.maximumByteCount else { throw Self.tooLarge(name) }
        return Segment(marker: 0xE1, prefix: prefix, content: content)
    }

    private static func tooLarge(_ name: String) -> CodingError {
        .notEncoded(.jpeg, "The \(name) is too large for a JPEG; leave it out or make it smaller.")
    }
}
