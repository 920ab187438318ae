import TintypeImage

/// The pixels of a picture that is being decoded: puts each scanline where it belongs.
struct PNGPicture {
    private let converter: PNGSampleConverter
    private let passes: [PNGPass]
    private let pixels: UnsafeMutableRawBufferPointer
    private let bytesPerRow: Int
    /// One scanline of an interlaced picture, before its pixels are spread out.
    private var spread: [UInt8] = []

    /// - Parameters:
    ///   - converter: Makes the pixels.
    ///   - passes: The passes of the scanlines.
    ///   - layout: Where the rows lie.
    ///   - pixels: The memory of the picture; it must outlive this value.
    init(
        _ converter: PNGSampleConverter,
        passes: [PNGPass],
        layout: PixelLayout,
        pixels: UnsafeMutableRawBufferPointer
    ) {
        self.converter = converter
        self.passes = passes
        self.pixels = pixels
        self.bytesPerRow = layout.planes[0].bytesPerRow
        if passes.contains(where: { $0.columnStep > 1 }) {
            self.spread = Array(repeating: 0, count: layout.width * layout.format.channelCount)
        }
    }

    /// Writes the pixels of a scanline.
    mutating func write(_ line: PNGScanlines.Line) {
        guard let base = self.pixels.baseAddress else { return }
        let pass = self.passes[line.pass]
        let row = base + (pass.top + line.row * pass.rowStep) * self.bytesPerRow
        guard pass.columnStep > 1 else { return self.converter.convert(line.samples, count: pass.width, to: row) }
        let channels = self.converter.output.channelCount
        self.spread.withUnsafeMutableBytes { spread in
            guard let source = spread.baseAddress else { return }
            self.converter.convert(line.samples, count: pass.width, to: source)
            for index in 0..<pass.width {
                let target = row + (pass.left + index * pass.columnStep) * channels
                target.copyMemory(from: source + index * channels, byteCount: channels)
            }
        }
    }
}
