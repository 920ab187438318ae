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
