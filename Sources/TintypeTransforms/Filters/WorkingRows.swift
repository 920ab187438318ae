import CPixelKernels
import Glibc
import TintypeImage

/// How stored rows become rows of numbers that can be added to each other, and back.
///
/// Numbers are 0 to 255, as light or as samples, and colours are premultiplied where there is alpha.
struct WorkingRows {
    let format: PixelFormat
    let light: LightSpace

    /// The numbers of a pixel.
    var channels: Int { self.format.channelCount }

    /// Reads `count` pixels.
    func load(_ samples: UnsafePointer<UInt8>, to numbers: UnsafeMutablePointer<Float>, count: Int) {
        let light = self.light == .linear ? Self.lightOfSamples : nil
        cpixels_load_samples(samples, self.channels, light, numbers, count)
    }

    /// Writes `count` pixels.
    func store(_ numbers: UnsafePointer<Float>, to samples: UnsafeMutablePointer<UInt8>, count: Int) {
        let table = self.light == .linear ? Self.samplesOfLight : nil
        cpixels_store_samples(numbers, table, samples, self.channels, count)
    }

    /// The light of each sample, 0 to 255.
    ///
    /// Source: IEC 61966-2-1.
    private static let lightOfSamples: [Float] = (0..<256).map { sample in
        let value = Double(sample) / 255
        return Float(255 * (value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)))
    }

    /// The sample of each of 65,536 steps of light: twenty of them make the first level.
    private static let samplesOfLight: [UInt8] = (0..<65_536).map { step in
        let light = Double(step) / 65_535
        let value = light <= 0.003_130_8 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
        return UInt8((value * 255).rounded())
    }
}

/// A picture whose rows are read and written while it is filtered.
struct FilteredPicture {
    let width: Int
    let height: Int
    /// The numbers of a pixel.
    let channels: Int
    /// Writes the numbers of some columns of a row.
    let load: (_ row: Int, _ columns: Range<Int>, _ numbers: UnsafeMutablePointer<Float>) -> Void
    /// Takes the filtered numbers of some columns of a row, in any order of strips.
    let emit: (_ row: Int, _ columns: Range<Int>, _ numbers: UnsafeMutablePointer<Float>) -> Void
}

/// The rows of a picture and of what is made of it.
struct StoredRows {
    private let source: UnsafePointer<UInt8>
    private let target: UnsafeMutablePointer<UInt8>
    private let sourceLayout: PixelLayout
    private let targetLayout: PixelLayout

    /// - Returns: `nil` for memory without bytes, which no picture has.
    init?(
        _ source: UnsafeRawBufferPointer,
        _ sourceLayout: PixelLayout,
        to target: UnsafeMutableRawBufferPointer,
        _ targetLayout: PixelLayout
    ) {
        guard let from = source.baseAddress, let to = target.baseAddress else { return nil }
        self.source = from.assumingMemoryBound(to: UInt8.self)
        self.target = to.assumingMemoryBound(to: UInt8.self)
        self.sourceLayout = sourceLayout
        self.targetLayout = targetLayout
    }

    /// The samples of a row from a column on.
    func source(_ row: Int, _ column: Int) -> UnsafePointer<UInt8> {
        self.source + row * self.sourceLayout.planes[0].bytesPerRow + column * self.sourceLayout.format.channelCount
    }

    /// The place of a row from a column on.
    func target(_ row: Int, _ column: Int) -> UnsafeMutablePointer<UInt8> {
        self.target + row * self.targetLayout.planes[0].bytesPerRow + column * self.targetLayout.format.channelCount
    }
}

extension Image {
    /// The picture with pixels that `body` makes of its own, row by row.
    func filtered(to format: PixelFormat? = nil, _ body: (StoredRows) throws -> Void) throws -> Image {
        let source = self.pixels
        let layout = try PixelLayout(
            format: format ?? source.format,
            width: source.width,
            height: source.height
        )
        let pixels = try PixelBuffer(
            layout,
            fillingUnsafely: { target in
                try source.withUnsafeBytes { bytes in
                    guard let rows = StoredRows(bytes, source.layout, to: target, layout) else { return }
                    try body(rows)
                }
            }
        )
        return self.replacingPixels(pixels, orientation: self.orientation)
    }
}

/// Rows of numbers in one block, for the kernels that work on rows.
final class NumberRows {
    private let memory: AlignedMemory
    private let distance: Int

    /// Takes memory for rows of `width` numbers, which are 0 at first.
    ///
    /// - Throws: `ImageError` when memory runs out.
    init(count: Int, width: Int) throws(ImageError) {
        self.distance = Self.distance(width: width)
        self.memory = try AlignedMemory(byteCount: Self.byteCount(count: count, width: width))
        self.memory.bytes.initializeMemory(as: UInt8.self, repeating: 0)
        self.memory.start.bindMemory(to: Float.self, capacity: count * self.distance)
    }

    /// One row.
    subscript(_ index: Int) -> UnsafeMutablePointer<Float> {
        self.memory.start.assumingMemoryBound(to: Float.self) + index * self.distance
    }

    /// The memory of so many rows.
    static func byteCount(count: Int, width: Int) -> Int {
        count * Self.distance(width: width) * MemoryLayout<Float>.stride
    }

    /// The numbers from one row to the next: with room for whole steps of the kernels, and never a multiple of the size
    /// of a page, at which rows would be in each other's way in the cache.
    private static func distance(width: Int) -> Int {
        let step = Int(CPIXELS_ROW_STEP)
        let padded = (width + 2 * step - 1) / step * step
        return padded % 1024 == 0 ? padded + 2 * step : padded + (padded / step) % 2 * step + step / 2
    }
}
