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
        let stored = UnsafeMutableRawBufferPointer.allocate(
            byteCount: source.planes[0].bytesPerRow,
            alignment: PixelLayout.alignment
        )
        defer { stored.deallocate() }
        let row = FloatRow(count: sampleCount)
        // Target rows that have begun and are not complete: from `complete` up to `begun`.
        var sums: [FloatRow] = []
        var spare: [FloatRow] = []
        var complete = 0
        let spans = self.vertical.spans
        for index in 0..<source.height where complete < spans.count {
            if index % 8 == 0 { try Task.checkCancellation() }
            try self.rows.readRow(into: stored)
            guard index >= spans[complete].first else { continue }
            row.load(stored, channelCount: source.format.channelCount)
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
