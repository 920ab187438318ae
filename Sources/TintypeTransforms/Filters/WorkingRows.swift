import CPixelKernels
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
        let light = self.light == .linear ? LightTables.shared.samples : nil
        cpixels_load_samples(samples, self.channels, light, numbers, count)
    }

    /// Writes `count` pixels.
    func store(_ numbers: UnsafePointer<Float>, to samples: UnsafeMutablePointer<UInt8>, count: Int) {
        let table = self.light == .linear ? LightTables.shared.ofSteps : nil
        cpixels_store_samples(numbers, table, samples, self.channels, count)
    }

    /// Reads `count` pixels, which stand for themselves, as whole numbers.
    func load(_ samples: UnsafePointer<UInt8>, to numbers: UnsafeMutablePointer<UInt16>, count: Int) {
        cpixels_load_words(samples, self.channels, numbers, count)
    }

    /// Writes `count` pixels, which stand for themselves, of whole numbers.
    func store(_ numbers: UnsafePointer<UInt16>, to samples: UnsafeMutablePointer<UInt8>, count: Int) {
        cpixels_store_words(numbers, samples, self.channels, count)
    }
}

/// What rows that are filtered consist of, and the kernels that filter them.
protocol FilterNumber {
    /// The number for a share of a sum; of both sides at once where the sides have the same share.
    static func weight(_ share: Float, ofBothSides: Bool) -> Self

    static var combine: CombineRows<Self> { get }
    static var convolve: ConvolveRow<Self> { get }
}

/// Adds rows by their weights to targets, or sets the targets to the sums.
typealias CombineRows<Number> = (
    _ rows: UnsafePointer<UnsafePointer<Number>>,
    _ rowCount: Int,
    _ weights: UnsafePointer<Number>,
    _ targets: UnsafePointer<UnsafeMutablePointer<Number>>,
    _ targetCount: Int,
    _ adds: Int32,
    _ count: Int
) -> Void

/// Filters a row by the weights of its middle and of one side.
typealias ConvolveRow<Number> = (
    _ row: UnsafePointer<Number>,
    _ weights: UnsafePointer<Number>,
    _ radius: Int,
    _ step: Int,
    _ target: UnsafeMutablePointer<Number>,
    _ count: Int
) -> Void

extension FilterNumber {
    static func weight(_ share: Float) -> Self { Self.weight(share, ofBothSides: false) }
}

extension Float: FilterNumber {
    static func weight(_ share: Float, ofBothSides: Bool) -> Float { share }
    static var combine: CombineRows<Float> { cpixels_combine_rows }
    static var convolve: ConvolveRow<Float> { cpixels_convolve_row }
}

extension UInt16: FilterNumber {
    static func weight(_ share: Float, ofBothSides: Bool) -> UInt16 {
        UInt16(Swift.min((share * (ofBothSides ? 131_072 : 65_536)).rounded(), 65_535))
    }
    static var combine: CombineRows<UInt16> { cpixels_combine_words }
    static var convolve: ConvolveRow<UInt16> { cpixels_convolve_words }
}

/// An image whose rows are read and written while it is filtered.
struct FilteredPicture<Number> {
    let width: Int
    let height: Int
    /// The numbers of a pixel.
    let channels: Int
    /// Writes the numbers of some columns of a row.
    let load: (_ row: Int, _ columns: Range<Int>, _ numbers: UnsafeMutablePointer<Number>) -> Void
    /// Takes the filtered numbers of some columns of a row, in any order of strips.
    let emit: (_ row: Int, _ columns: Range<Int>, _ numbers: UnsafeMutablePointer<Number>) -> Void
}

/// The rows of an image and of what is made of it.
struct StoredRows {
    private let source: UnsafePointer<UInt8>
    private let target: UnsafeMutablePointer<UInt8>
    private let bytesPerSourceRow: Int
    private let bytesPerTargetRow: Int
    private let sourceChannels: Int
    private let targetChannels: Int

    /// - Returns: `nil` for memory without bytes, which no image has.
    init?(
        _ source: UnsafeRawBufferPointer,
        _ sourceLayout: PixelLayout,
        to target: UnsafeMutableRawBufferPointer,
        _ targetLayout: PixelLayout
    ) {
        guard let from = source.baseAddress, let to = target.baseAddress else { return nil }
        self.source = from.assumingMemoryBound(to: UInt8.self)
        self.target = to.assumingMemoryBound(to: UInt8.self)
        self.bytesPerSourceRow = sourceLayout.planes[0].bytesPerRow
        self.bytesPerTargetRow = targetLayout.planes[0].bytesPerRow
        self.sourceChannels = sourceLayout.format.channelCount
        self.targetChannels = targetLayout.format.channelCount
    }

    /// The samples of a row from a column on.
    func source(_ row: Int, _ column: Int) -> UnsafePointer<UInt8> {
        self.source + row * self.bytesPerSourceRow + column * self.sourceChannels
    }

    /// The place of a row from a column on.
    func target(_ row: Int, _ column: Int) -> UnsafeMutablePointer<UInt8> {
        self.target + row * self.bytesPerTargetRow + column * self.targetChannels
    }
}

extension Image {
    /// The image with pixels that `body` makes of its own, row by row.
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
final class NumberRows<Number> {
    private let memory: AlignedMemory
    private let distance: Int

    /// Takes memory for rows of `width` numbers, which are 0 at first.
    ///
    /// - Throws: `ImageError` when memory runs out.
    init(count: Int, width: Int) throws(ImageError) {
        self.distance = Self.distance(width: width)
        self.memory = try AlignedMemory(byteCount: Self.byteCount(count: count, width: width))
        self.memory.bytes.initializeMemory(as: UInt8.self, repeating: 0)
        self.memory.start.bindMemory(to: Number.self, capacity: count * self.distance)
    }

    /// One row.
    subscript(_ index: Int) -> UnsafeMutablePointer<Number> {
        self.memory.start.assumingMemoryBound(to: Number.self) + index * self.distance
    }

    /// The memory of so many rows.
    static func byteCount(count: Int, width: Int) -> Int {
        count * Self.distance(width: width) * MemoryLayout<Number>.stride
    }

    /// The numbers from one row to the next: with room for whole steps of the kernels, and not close to a multiple of the
    /// size of a page, at which rows would be in each other's way in the cache.
    private static func distance(width: Int) -> Int {
        let step = Int(CPIXELS_ROW_STEP)
        let padded = (width + 2 * step - 1) / step * step
        return padded * MemoryLayout<Number>.stride % 4096 < 256 ? padded + 2 * step : padded
    }
}
