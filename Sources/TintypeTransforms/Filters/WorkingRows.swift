// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
import TintypeImage

/// Converts stored rows to rows of numbers that can be added, and back.
///
/// Numbers are 0 to 255, as light or as samples. Colours are premultiplied if there is alpha.
struct WorkingRows {
    let format: PixelFormat
    let light: LightSpace

    /// The number of values for each pixel.
    var channels: Int { self.format.channelCount }

    /// Reads `count` pixels as fractions.
    func load(_ samples: UnsafePointer<UInt8>, to numbers: UnsafeMutablePointer<Float>, count: Int) {
        let light = self.light == .linear ? LightTables.shared.samples : nil
        cpixels_load_samples(samples, self.channels, light, numbers, count)
    }

    /// Writes `count` pixels from fractions.
    func store(_ numbers: UnsafePointer<Float>, to samples: UnsafeMutablePointer<UInt8>, count: Int) {
        let table = self.light == .linear ? LightTables.shared.ofSteps : nil
        cpixels_store_samples(numbers, table, samples, self.channels, count)
    }

    /// Reads `count` pixels as whole numbers, without conversion to light.
    func load(_ samples: UnsafePointer<UInt8>, to numbers: UnsafeMutablePointer<UInt16>, count: Int) {
        cpixels_load_words(samples, self.channels, numbers, count)
    }

    /// Writes `count` pixels from whole numbers, without conversion from light.
    func store(_ numbers: UnsafePointer<UInt16>, to samples: UnsafeMutablePointer<UInt8>, count: Int) {
        cpixels_store_words(numbers, samples, self.channels, count)
    }
}

/// The number type of filtered rows, with its kernels.
protocol FilterNumber {
    /// Returns the weight for a share of a sum; with `ofBothSides`, for two columns with the same share.
    static func weight(_ share: Float, ofBothSides: Bool) -> Self

    static var combine: CombineRows<Self> { get }
    static var convolve: ConvolveRow<Self> { get }
}

/// Adds weighted rows to the targets, or sets the targets to the sums.
typealias CombineRows<Number> = (
    _ rows: UnsafePointer<UnsafePointer<Number>>,
    _ rowCount: Int,
    _ weights: UnsafePointer<Number>,
    _ targets: UnsafePointer<UnsafeMutablePointer<Number>>,
    _ targetCount: Int,
    _ adds: Int32,
    _ count: Int
) -> Void

/// Filters a row with a symmetric kernel, given the weights of its middle and of one side.
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
struct FilteredImage<Number> {
    let width: Int
    let height: Int
    /// The number of values for each pixel.
    let channels: Int
    /// Writes the source values of some columns of a row into `numbers`.
    let load: (_ row: Int, _ columns: Range<Int>, _ numbers: UnsafeMutablePointer<Number>) -> Void
    /// Receives the filtered values of some columns of a row; strips may come in any order.
    let emit: (_ row: Int, _ columns: Range<Int>, _ numbers: UnsafeMutablePointer<Number>) -> Void
}

/// The rows of a source image and of its result.
struct StoredRows {
    private let source: UnsafePointer<UInt8>
    private let target: UnsafeMutablePointer<UInt8>
    private let bytesPerSourceRow: Int
    private let bytesPerTargetRow: Int
    private let sourceChannels: Int
    private let targetChannels: Int

    /// - Returns: `nil` if a buffer is empty, which no image's is.
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

    /// Returns the samples of a source row from a column on.
    func source(_ row: Int, _ column: Int) -> UnsafePointer<UInt8> {
        self.source + row * self.bytesPerSourceRow + column * self.sourceChannels
    }

    /// Returns the samples of a target row from a column on.
    func target(_ row: Int, _ column: Int) -> UnsafeMutablePointer<UInt8> {
        self.target + row * self.bytesPerTargetRow + column * self.targetChannels
    }
}

extension Image {
    /// Returns the image with new pixels, which `body` writes row by row.
    ///
    /// By default the pixel format does not change.
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

/// Rows of numbers in one block of memory, for row kernels.
final class NumberRows<Number> {
    private let memory: AlignedMemory
    private let distance: Int

    /// Allocates `count` rows of `width` numbers, all 0.
    ///
    /// - Throws: `ImageError` if memory runs out.
    init(count: Int, width: Int) throws(ImageError) {
        self.distance = Self.distance(width: width)
        self.memory = try AlignedMemory(byteCount: Self.byteCount(count: count, width: width))
        self.memory.bytes.initializeMemory(as: UInt8.self, repeating: 0)
        self.memory.start.bindMemory(to: Number.self, capacity: count * self.distance)
    }

    /// Returns a row.
    subscript(_ index: Int) -> UnsafeMutablePointer<Number> {
        self.memory.start.assumingMemoryBound(to: Number.self) + index * self.distance
    }

    /// Returns the bytes of `count` rows.
    static func byteCount(count: Int, width: Int) -> Int {
        count * Self.distance(width: width) * MemoryLayout<Number>.stride
    }

    /// Returns the distance from one row to the next, in numbers.
    ///
    /// It leaves room for whole steps of the kernels, and is not near a multiple of the page size, at which rows would
    /// evict each other from the cache.
    private static func distance(width: Int) -> Int {
        let step = Int(CPIXELS_ROW_STEP)
        let padded = (width + 2 * step - 1) / step * step
        return padded * MemoryLayout<Number>.stride % 4096 < 256 ? padded + 2 * step : padded
    }
}
