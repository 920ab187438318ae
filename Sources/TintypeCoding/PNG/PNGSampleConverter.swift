// SPDX-License-Identifier: Apache-2.0

import TintypeImage

/// Converts the packed samples of a scanline to pixels with 8 bits a sample.
///
/// Source: W3C PNG, third edition, sections 7.2, 11.3.1.1 and 13.12. 16-bit samples keep their high byte, as in
/// browsers. Gamma is not applied.
struct PNGSampleConverter {
    let output: PixelFormat
    private let layout: PNGLayout
    /// The colours of all indices, with red in the lowest byte, then green, blue and alpha.
    ///
    /// Colours that the file does not define are opaque black.
    private let palette: [UInt32]
    /// The transparent colour, in samples of the stored depth; `nil` if all colours are opaque.
    private let transparentColor: (red: Int, green: Int, blue: Int)?

    /// Creates a converter.
    ///
    /// - Parameters:
    ///   - header: The parsed header of the file.
    ///   - output: The header's own pixel format, or `rgba8`.
    init(_ header: PNGHeader, output: PixelFormat) {
        self.layout = header.layout
        self.output = output
        self.palette = header.layout.colorType == .palette ? Self.palette(of: header) : []
        self.transparentColor = Self.transparentColor(of: header)
    }

    /// Whether the samples are the pixels, byte for byte.
    var isIdentity: Bool {
        guard self.layout.bitDepth == 8 else { return false }
        switch self.layout.colorType {
        case .gray: return self.output == .gray8
        case .rgb: return self.output == .rgb8
        case .rgba: return self.output == .rgba8
        case .palette, .grayAlpha: return false
        }
    }

    /// Writes `count` pixels.
    ///
    /// `samples` must hold as many samples, and `pixels` must have room for the pixels.
    func convert(_ samples: UnsafeRawBufferPointer, count: Int, to pixels: UnsafeMutableRawPointer) {
        guard let base = samples.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
        let target = pixels.assumingMemoryBound(to: UInt8.self)
        if self.isIdentity {
            target.update(from: base, count: count * self.output.channelCount)
            return
        }
        switch self.layout.colorType {
        case .gray: self.convertGray(base, count, target)
        case .palette: self.convertPalette(base, count, target)
        case .grayAlpha: self.convertGrayAlpha(base, count, target)
        case .rgb: self.convertRGB(base, count, target)
        case .rgba: self.convertRGBA(base, count, target)
        }
    }

    // MARK: Colour types

    private func convertGray(_ samples: UnsafePointer<UInt8>, _ count: Int, _ pixels: UnsafeMutablePointer<UInt8>) {
        let maximum = 1 << self.layout.bitDepth - 1
        let key = self.transparentColor?.red
        let channels = self.output.channelCount
        var pixel = pixels
        for index in 0..<count {
            let sample = self.sample(index, of: samples)
            let gray = self.layout.bitDepth == 16 ? UInt8(sample >> 8) : UInt8(sample * 255 / maximum)
            pixel[0] = gray
            if channels > 1 {
                pixel[1] = gray
                pixel[2] = gray
            }
            if channels == 4 { pixel[3] = sample == key ? 0 : 255 }
            pixel += channels
        }
    }

    private func convertPalette(
        _ samples: UnsafePointer<UInt8>,
        _ count: Int,
        _ pixels: UnsafeMutablePointer<UInt8>
    ) {
        let isByte = self.layout.bitDepth == 8
        let channels = self.output.channelCount
        self.palette.withUnsafeBufferPointer { palette in
            var pixel = pixels
            for index in 0..<count {
                // Indices of a smaller depth cannot exceed the 256 colours either.
                let color = palette[isByte ? Int(samples[index]) : self.sample(index, of: samples)]
                pixel[0] = UInt8(truncatingIfNeeded: color)
                pixel[1] = UInt8(truncatingIfNeeded: color >> 8)
                pixel[2] = UInt8(truncatingIfNeeded: color >> 16)
                if channels == 4 { pixel[3] = UInt8(truncatingIfNeeded: color >> 24) }
                pixel += channels
            }
        }
    }

    private func convertGrayAlpha(
        _ samples: UnsafePointer<UInt8>,
        _ count: Int,
        _ pixels: UnsafeMutablePointer<UInt8>
    ) {
        let step = self.layout.bitDepth / 8
        var sample = samples
        var pixel = pixels
        for _ in 0..<count {
            pixel[0] = sample[0]
            pixel[1] = sample[0]
            pixel[2] = sample[0]
            pixel[3] = sample[step]
            sample += 2 * step
            pixel += 4
        }
    }

    private func convertRGB(_ samples: UnsafePointer<UInt8>, _ count: Int, _ pixels: UnsafeMutablePointer<UInt8>) {
        let step = self.layout.bitDepth / 8
        let channels = self.output.channelCount
        var sample = samples
        var pixel = pixels
        for _ in 0..<count {
            pixel[0] = sample[0]
            pixel[1] = sample[step]
            pixel[2] = sample[2 * step]
            if channels == 4 { pixel[3] = self.isTransparent(sample) ? 0 : 255 }
            sample += 3 * step
            pixel += channels
        }
    }

    /// Converts 16-bit samples, because 8-bit ones are pixels already.
    private func convertRGBA(_ samples: UnsafePointer<UInt8>, _ count: Int, _ pixels: UnsafeMutablePointer<UInt8>) {
        for index in 0..<count * 4 { pixels[index] = samples[index * 2] }
    }

    // MARK: Samples

    /// Returns a sample of an image with one sample a pixel; the leftmost is in the highest bits.
    private func sample(_ index: Int, of samples: UnsafePointer<UInt8>) -> Int {
        switch self.layout.bitDepth {
        case 8: return Int(samples[index])
        case 16: return Int(samples[index * 2]) << 8 | Int(samples[index * 2 + 1])
        case let depth:
            let bit = index * depth
            return Int(samples[bit >> 3]) >> (8 - depth - bit & 7) & (1 << depth - 1)
        }
    }

    private func isTransparent(_ sample: UnsafePointer<UInt8>) -> Bool {
        guard let key = self.transparentColor else { return false }
        if self.layout.bitDepth == 8 {
            return Int(sample[0]) == key.red && Int(sample[1]) == key.green && Int(sample[2]) == key.blue
        }
        return Int(sample[0]) << 8 | Int(sample[1]) == key.red && Int(sample[2]) << 8 | Int(sample[3]) == key.green
            && Int(sample[4]) << 8 | Int(sample[5]) == key.blue
    }

    private static func palette(of header: PNGHeader) -> [UInt32] {
        (0..<256).map { index in
            let alpha = index < header.transparency.count ? header.transparency[index] : 255
            guard index * 3 + 2 < header.palette.count else { return UInt32(alpha) << 24 }
            let color = header.palette[index * 3..<index * 3 + 3].reversed().reduce(0) { $0 << 8 | UInt32($1) }
            return UInt32(alpha) << 24 | color
        }
    }

    /// Returns the transparent colour, ignoring bits above the depth (section 11.3.1.1).
    private static func transparentColor(of header: PNGHeader) -> (red: Int, green: Int, blue: Int)? {
        let mask = 1 << header.layout.bitDepth - 1
        let samples = header.transparency
        func sample(_ index: Int) -> Int { (Int(samples[index * 2]) << 8 | Int(samples[index * 2 + 1])) & mask }
        switch header.layout.colorType {
        case .gray where samples.count == 2: return (sample(0), 0, 0)
        case .rgb where samples.count == 6: return (sample(0), sample(1), sample(2))
        default: return nil
        }
    }
}

/// The pixels of an image that is being decoded, to which each scanline is written at its place.
struct PNGImage {
    private let converter: PNGSampleConverter
    private let passes: [PNGPass]
    private let pixels: UnsafeMutableRawBufferPointer
    private let bytesPerRow: Int
    /// One scanline of an interlaced image, before its pixels are spread out.
    private var spread: [UInt8] = []

    /// Creates an image without pixels.
    ///
    /// - Parameters:
    ///   - converter: The converter of the samples.
    ///   - passes: The passes of the scanlines.
    ///   - layout: The layout of the image.
    ///   - pixels: The memory of the image, which must outlive this value.
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
