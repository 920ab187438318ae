import TintypeImage

/// Resamples a picture whose rows are read once, from the top.
///
/// zimg reads its source in tiles and more than once, so it needs the picture whole. Here each row
/// is added to the few target rows that it counts for, which are brought to the target's
/// width when they are complete: the memory is the target and a strip. Slower than zimg, and
/// used for pictures that are too large to be held.
struct RowResampler {
    private let rows: any RowSource
    private let layout: PixelLayout
    private let vertical: FilterWeights
    private let horizontal: FilterWeights

    init(_ rows: any RowSource, geometry: ResizeGeometry, filter: Resize.Filter) throws(ImageError) {
        let source = rows.layout
        self.rows = rows
        self.layout = try PixelLayout(format: source.format, width: geometry.width, height: geometry.height)
        self.vertical = FilterWeights(
            filter: filter,
            sourceCount: source.height,
            start: geometry.top,
            length: geometry.sourceHeight,
            targetCount: geometry.height
        )
        self.horizontal = FilterWeights(
            filter: filter,
            sourceCount: source.width,
            start: geometry.left,
            length: geometry.sourceWidth,
            targetCount: geometry.width
        )
    }

    /// The resampled pixels, in the source's format.
    ///
    /// - Throws: What the source throws, `ImageError`, `CancellationError`.
    func resample() throws -> PixelBuffer {
        try PixelBuffer(self.layout, fillingUnsafely: { target in try self.fill(target) })
    }

    private func fill(_ target: UnsafeMutableRawBufferPointer) throws {
        let source = self.rows.layout
        let sampleCount = source.width * source.format.channelCount
        let stored = try AlignedMemory(byteCount: source.planes[0].bytesPerRow)
        let row = FloatRow(count: sampleCount)
        // Target rows that have begun and are not complete: from `complete` up to `begun`.
        var sums: [FloatRow] = []
        var spare: [FloatRow] = []
        var complete = 0
        let spans = self.vertical.spans
        for index in 0..<source.height where complete < spans.count {
            if index % 8 == 0 { try Task.checkCancellation() }
            try self.rows.readRow(into: stored.bytes)
            guard index >= spans[complete].first else { continue }
            row.load(stored.bytes, channelCount: source.format.channelCount)
            while complete + sums.count < spans.count, spans[complete + sums.count].first <= index {
                let sum = spare.popLast() ?? FloatRow(count: sampleCount)
                sum.clear()
                sums.append(sum)
            }
            for (offset, sum) in sums.enumerated() {
                let span = spans[complete + offset]
                if index <= span.last { sum.add(row, weight: span.weights[index - span.first]) }
            }
            while let sum = sums.first, spans[complete].last <= index {
                if complete % 8 == 0 { try Task.checkCancellation() }
                self.write(sum, to: target, row: complete)
                spare.append(sums.removeFirst())
                complete += 1
            }
        }
    }

    /// Brings a complete row to the target's width.
    private func write(_ sum: FloatRow, to target: UnsafeMutableRawBufferPointer, row: Int) {
        guard let base = target.baseAddress else { return }
        let bytes = (base + row * self.layout.planes[0].bytesPerRow).assumingMemoryBound(to: UInt8.self)
        let channelCount = self.layout.format.channelCount
        for (column, span) in self.horizontal.spans.enumerated() {
            sum.store(span, to: bytes + column * channelCount, channelCount: channelCount)
        }
    }
}

/// A row of samples as numbers; colours are premultiplied where there is alpha.
final class FloatRow {
    private let samples: UnsafeMutablePointer<Float>
    private let count: Int

    init(count: Int) {
        self.count = count
        self.samples = .allocate(capacity: count)
        self.samples.initialize(repeating: 0, count: count)
    }

    deinit {
        self.samples.deallocate()
    }

    func clear() {
        self.samples.update(repeating: 0, count: self.count)
    }

    /// Takes over a stored row.
    func load(_ stored: UnsafeMutableRawBufferPointer, channelCount: Int) {
        guard let bytes = stored.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
        guard channelCount == 4 else {
            for index in 0..<self.count { self.samples[index] = Float(bytes[index]) }
            return
        }
        for index in stride(from: 0, to: self.count, by: 4) {
            let alpha = Float(bytes[index + 3])
            for channel in index..<index + 3 { self.samples[channel] = Float(bytes[channel]) * alpha / 255 }
            self.samples[index + 3] = alpha
        }
    }

    /// Adds a share of another row.
    func add(_ other: FloatRow, weight: Float) {
        let (samples, others) = (self.samples, other.samples)
        for index in 0..<self.count { samples[index] += others[index] * weight }
    }

    /// Writes the pixel that a span of this row makes.
    func store(_ span: FilterWeights.Span, to pixel: UnsafeMutablePointer<UInt8>, channelCount: Int) {
        var sums = SIMD4<Float>.zero
        var sample = self.samples + span.first * channelCount
        for weight in span.weights {
            for channel in 0..<channelCount { sums[channel] += sample[channel] * weight }
            sample += channelCount
        }
        if channelCount == 4 {
            let alpha = sums[3]
            // Without alpha there is no colour to give back.
            let scale = alpha > 0.5 ? 255 / alpha : 0
            sums *= SIMD4(scale, scale, scale, 1)
        }
        for channel in 0..<channelCount { pixel[channel] = UInt8(min(max(sums[channel], 0), 255).rounded()) }
    }
}

/// The rows of a picture that is there whole.
final class PixelBufferRows: RowSource {
    private let pixels: PixelBuffer
    private var row = 0

    init(_ pixels: PixelBuffer) {
        self.pixels = pixels
    }

    var layout: PixelLayout { self.pixels.layout }

    func readRow(into row: UnsafeMutableRawBufferPointer) {
        let plane = self.layout.planes[0]
        precondition(self.row < plane.height, "There are no more rows.")
        self.pixels.withUnsafeBytes { bytes in
            let start = self.row * plane.bytesPerRow
            row.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[start..<start + plane.usedBytesPerRow]))
        }
        self.row += 1
    }
}
