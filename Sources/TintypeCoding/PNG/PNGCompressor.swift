import CPNGFilters
import FoundationEssentials
import TintypeImage

/// Writes still pictures.
///
/// Source: W3C PNG, third edition. The colour type is the smallest that keeps every pixel; for
/// each scanline the filter is taken whose bytes are nearest to zero (section 12.7).
struct PNGCompressor {
    private let options: EncodeOptions

    init(_ options: EncodeOptions) {
        self.options = options
    }

    /// The file of an upright picture.
    ///
    /// - Throws: `CodingError.Code.encodingFailed` when it does not fit the limit of bytes; `CancellationError`.
    func compress(_ pixels: PixelBuffer) throws -> Data {
        try self.options.smallestPNG { try PNGCompressor($0).compressWhole(pixels) }
    }

    private func compressWhole(_ pixels: PixelBuffer) throws -> Data {
        let format = try PNGSampleFormat([pixels], format: pixels.format)
        var writer = PNGWriter()
        writer.append(.imageHeader, format.header(width: pixels.width, height: pixels.height))
        try writer.append(self.options.metadata)
        format.appendPalette(to: &writer)
        let rows = 0..<pixels.height
        writer.append(.pixels, try self.compressedPixels(of: pixels, format, rows: rows, columns: 0..<pixels.width))
        writer.append(.end)
        return writer.data
    }

    /// The scanlines of a part of a picture, filtered and compressed.
    func compressedPixels(
        of pixels: PixelBuffer,
        _ format: PNGSampleFormat,
        rows: Range<Int>,
        columns: Range<Int>
    ) throws -> Data {
        let lineByteCount = format.byteCount(ofLine: columns.count) + 1
        let filtered = UnsafeMutableRawBufferPointer.allocate(byteCount: lineByteCount * rows.count, alignment: 16)
        defer { filtered.deallocate() }
        var filter = PNGLineFilter(
            lineByteCount: lineByteCount - 1,
            width: columns.count,
            bytesPerPixel: max(1, format.bitDepth * format.colorType.channelCount / 8),
            choosesFilters: self.choosesFilters(for: format)
        )
        for row in rows {
            if row % 64 == 0 { try Task.checkCancellation() }
            let target = (row - rows.lowerBound) * lineByteCount
            filter.write(UnsafeMutableRawBufferPointer(rebasing: filtered[target..<target + lineByteCount])) { line in
                format.write(row: row, of: pixels, columns: columns, to: line)
            }
        }
        return try PNGDeflater(level: self.options.pngLevel).deflated(UnsafeRawBufferPointer(filtered))
    }

    private func choosesFilters(for format: PNGSampleFormat) -> Bool {
        switch self.options.pngFilter {
        case .automatic: format.suitsFilters && self.options.pngLevel > 0
        case .none: false
        case .all: true
        }
    }
}

extension EncodeOptions {
    /// The file that `compress` makes with these options or, where that is too large, with ones of more effort.
    ///
    /// Nothing else makes a PNG smaller: it keeps every pixel.
    ///
    /// - Throws: `CodingError.Code.encodingFailed` when no file fits the limit of bytes; what `compress` throws.
    func smallestPNG(_ compress: (EncodeOptions) throws -> Data) throws -> Data {
        let whole = try compress(self)
        guard let limit = self.maximumByteCount, whole.count > limit else { return whole }
        var smallest = whole.count
        for filter in [PNGFilter.automatic, .all, .none] {
            var options = self
            options.pngLevel = 9
            options.pngFilter = filter
            guard options != self else { continue }
            let data = try compress(options)
            if data.count <= limit { return data }
            smallest = min(smallest, data.count)
        }
        throw CodingError(
            code: .encodingFailed,
            message:
                "As PNG, which keeps every pixel, the picture takes \(smallest) bytes of \(limit); make it smaller "
                + "or choose a lossy format.",
            format: .png
        )
    }
}
