import CPixelKernels
import Glibc
import TintypeImage

/// Resamples a picture whose rows are read once, from the top.
///
/// Where the picture gets lower, rows are added by their weights to the few target rows that they count for. Complete
/// ones are brought to the target's width, several together. Where it gets higher, rows are brought to the target's
/// width first, and each target row is mixed of a few of them. So the memory is the target and a strip.
struct RowResampler {
    private let source: SourceRows
    private let layout: PixelLayout
    private let vertical: FilterWeights
    private let horizontal: FilterWeights
    private let light: LightTables?
    private let isEnlarged: Bool
    private let channels: Int
    /// The numbers of rows of the source's and the target's width, padded.
    private let (sourceCount, targetCount): (Int, Int)

    init(_ source: SourceRows, geometry: ResizeGeometry, resampling: Resampling) throws(ImageError) {
        let from = source.layout
        self.source = source
        self.layout = try PixelLayout(format: from.format, width: geometry.width, height: geometry.height)
        self.light = resampling.light == .linear ? .shared : nil
        self.isEnlarged = geometry.sourceHeight < Double(geometry.height)
        self.channels = from.format.channelCount
        self.sourceCount = Self.padded(from.width * self.channels)
        self.targetCount = Self.padded(geometry.width * self.channels)
        self.vertical = try FilterWeights(
            filter: resampling.filter,
            bounds: geometry.boundedRows(of: from.height),
            start: geometry.top,
            length: geometry.sourceHeight,
            targetCount: geometry.height
        )
        self.horizontal = try FilterWeights(
            filter: resampling.filter,
            bounds: geometry.boundedColumns(of: from.width),
            start: geometry.left,
            length: geometry.sourceWidth,
            targetCount: geometry.width
        )
    }

    /// The resampled pixels, in the source's format.
    ///
    /// - Throws: What the source throws, `ImageError`, `CancellationError`.
    func resample() throws -> PixelBuffer {
        try PixelBuffer(
            self.layout,
            fillingUnsafely: { target in
                try self.withSamples { samples in
                    try self.isEnlarged ? self.enlarge(to: target, samples) : self.reduce(to: target, samples)
                }
            }
        )
    }

    // MARK: Lower

    /// A target row that has begun.
    private struct Sum {
        let row: FloatRow
        /// The target row.
        let index: Int
        /// Its weights, of all its source rows.
        let weights: UnsafePointer<Float>
    }

    private func reduce(to target: UnsafeMutableRawBufferPointer, _ samples: UnsafePointer<cpixels_samples>) throws {
        let pack = try RowPack(self.source.layout.width, channels: self.channels, horizontal: self.horizontal)
        let finished = try FloatRow.rows(pack.rowCount, count: self.targetCount)
        var sums: [Sum] = []
        var spare: [FloatRow] = []
        var (begun, stored) = (0, 0)
        var nextWeights = UnsafePointer(self.vertical.weights)
        var shares: [Float] = []
        var isNew: [Bool] = []
        var first = Int(self.vertical.firsts[0])
        let last = self.vertical.last(self.vertical.count - 1)
        while stored < self.vertical.count {
            try Task.checkCancellation()
            let rows = try self.source.lend(min(SourceRows.mostRows, last + 1 - first), from: first)
            let end = first + rows.count
            shares.removeAll(keepingCapacity: true)
            isNew.removeAll(keepingCapacity: true)
            isNew.append(contentsOf: repeatElement(false, count: sums.count))
            while begun < self.vertical.count, self.vertical.firsts[begun] < end {
                let row = try spare.popLast() ?? FloatRow(count: self.sourceCount)
                sums.append(Sum(row: row, index: begun, weights: nextWeights))
                isNew.append(true)
                nextWeights += Int(self.vertical.counts[begun])
                begun += 1
            }
            for sum in sums {
                let start = first - Int(self.vertical.firsts[sum.index])
                for place in start..<start + SourceRows.mostRows {
                    let counts = place >= 0 && place < self.vertical.counts[sum.index]
                    shares.append(counts ? sum.weights[place] : 0)
                }
            }
            if !sums.isEmpty {
                let width = self.source.layout.width
                cpixels_add_rows(rows, rows.count, samples, sums.map(\.row.numbers), shares, isNew, sums.count, width)
            }
            while let sum = sums.first, self.vertical.last(sum.index) < end {
                pack.put(sum.row, at: sum.index % pack.rowCount)
                spare.append(sum.row)
                sums.removeFirst()
                guard (sum.index + 1) % pack.rowCount == 0 || sum.index + 1 == self.vertical.count else { continue }
                let count = sum.index + 1 - stored
                pack.filter(into: finished.prefix(count))
                for row in finished.prefix(count) {
                    self.store(row, at: stored, in: target, samples)
                    stored += 1
                }
            }
            first = end
        }
    }

    // MARK: Higher

    private func enlarge(to target: UnsafeMutableRawBufferPointer, _ samples: UnsafePointer<cpixels_samples>) throws {
        let width = self.source.layout.width
        let pack = try RowPack(width, channels: self.channels, horizontal: self.horizontal)
        let wide = try FloatRow.rows(pack.rowCount, count: self.sourceCount)
        // The last rows of the target's width: those of a kernel, and those that come with its last one.
        let recent = try FloatRow.rows(2 * SourceRows.mostRows, count: self.targetCount)
        let mixed = try FloatRow(count: self.targetCount)
        var weights = UnsafePointer(self.vertical.weights)
        var read = Int(self.vertical.firsts[0])
        let last = self.vertical.last(self.vertical.count - 1)
        for index in 0..<self.vertical.count {
            if index % 8 == 0 { try Task.checkCancellation() }
            while read <= self.vertical.last(index) {
                let rows = try self.source.lend(min(pack.rowCount, last + 1 - read), from: read)
                for (place, row) in rows.enumerated() {
                    cpixels_add_rows([row], 1, samples, [wide[place].numbers], Self.whole, [true], 1, width)
                    pack.put(wide[place], at: place)
                }
                pack.filter(into: (read..<read + rows.count).map { recent[$0 % recent.count] })
                read += rows.count
            }
            let first = Int(self.vertical.firsts[index])
            let count = Int(self.vertical.counts[index])
            let rows = (first..<first + count).map { UnsafePointer(recent[$0 % recent.count].numbers) }
            cpixels_mix_rows(rows, weights, count, mixed.numbers, self.layout.width * self.channels)
            weights += count
            self.store(mixed, at: index, in: target, samples)
        }
    }

    /// The shares of a row alone.
    private static let whole: [Float] = [1, 0, 0, 0, 0, 0, 0, 0]

    // MARK: Both

    private func store(
        _ row: FloatRow,
        at index: Int,
        in target: UnsafeMutableRawBufferPointer,
        _ samples: UnsafePointer<cpixels_samples>
    ) {
        guard let base = target.baseAddress else { return }
        let bytes = (base + index * self.layout.planes[0].bytesPerRow).assumingMemoryBound(to: UInt8.self)
        cpixels_store_row(row.numbers, samples, bytes, self.layout.width)
    }

    private func withSamples(_ body: (UnsafePointer<cpixels_samples>) throws -> Void) throws {
        var samples = cpixels_samples(channels: self.channels, light: nil, limits: nil, nearest: nil)
        guard let light else { return try body(&samples) }
        try light.samples.withUnsafeBufferPointer { values in
            try light.limits.withUnsafeBufferPointer { limits in
                try light.nearest.withUnsafeBufferPointer { nearest in
                    samples.light = values.baseAddress
                    samples.limits = limits.baseAddress
                    samples.nearest = nearest.baseAddress
                    try body(&samples)
                }
            }
        }
    }

    fileprivate static func padded(_ count: Int) -> Int {
        let unit = Int(cpixels_row_padding)
        return (count + unit - 1) / unit * unit
    }

    // MARK: Memory

    /// The bytes that resampling takes at most besides source and target.
    ///
    /// - Parameters:
    ///   - geometry: The part and the size.
    ///   - source: How the source lies.
    ///   - filter: The kernel.
    ///   - isStreamed: Whether the rows come one by one, and are not there whole.
    static func byteCount(
        _ geometry: ResizeGeometry,
        of source: (width: Int, height: Int, format: PixelFormat),
        filter: Resize.Filter,
        isStreamed: Bool
    ) -> Int {
        let channels = Double(source.format.channelCount)
        let (width, target) = (Double(source.width) * channels, Double(geometry.width) * channels)
        let group = Double(SourceRows.mostRows)
        let packed = Double(cpixels_pack_rows(source.format.channelCount))
        let step = geometry.sourceHeight / Double(max(1, geometry.height))
        let weights = Double(FilterKernel(filter, step: step).mostWeights(sourceCount: source.height))
        // Numbers: rows of the source's width, and of the target's.
        let rows: (wide: Double, narrow: Double) =
            step < 1
            ? (2 * packed, 2 * group + 1) : ((weights + group) / step + 2 + packed, packed)
        let stored = isStreamed ? group * width : 0
        let axes =
            FilterWeights.byteCount(
                filter: filter,
                sourceCount: source.width,
                length: geometry.sourceWidth,
                targetCount: geometry.width
            )
            + FilterWeights.byteCount(
                filter: filter,
                sourceCount: source.height,
                length: geometry.sourceHeight,
                targetCount: geometry.height
            )
        let strip = 4 * (rows.wide * (width + 32) + rows.narrow * (target + 32)) + stored + 16_384
        return Int(min(strip + axes, Double(Int.max / 2)))
    }
}

/// A row of numbers.
final class FloatRow {
    /// The numbers; zero at first.
    let numbers: UnsafeMutablePointer<Float>
    private let memory: AlignedMemory

    init(count: Int) throws(ImageError) {
        self.memory = try AlignedMemory(byteCount: count * MemoryLayout<Float>.size)
        self.numbers = self.memory.start.bindMemory(to: Float.self, capacity: count)
        self.numbers.initialize(repeating: 0, count: count)
    }

    static func rows(_ rowCount: Int, count: Int) throws(ImageError) -> [FloatRow] {
        var rows: [FloatRow] = []
        for _ in 0..<rowCount { rows.append(try FloatRow(count: count)) }
        return rows
    }
}

/// A few rows of the source's width that are brought to the target's together.
private final class RowPack {
    let rowCount: Int
    private let numbers: FloatRow
    private let width: Int
    private let channels: Int
    private let horizontal: FilterWeights

    init(_ width: Int, channels: Int, horizontal: FilterWeights) throws(ImageError) {
        self.rowCount = cpixels_pack_rows(channels)
        self.width = width
        self.channels = channels
        self.horizontal = horizontal
        self.numbers = try FloatRow(count: width * channels * self.rowCount)
    }

    func put(_ row: FloatRow, at place: Int) {
        cpixels_pack_row(row.numbers, self.channels, place, self.numbers.numbers, self.width)
    }

    func filter(into rows: some Collection<FloatRow>) {
        cpixels_filter_columns(
            self.numbers.numbers,
            self.channels,
            self.horizontal.firsts,
            self.horizontal.counts,
            self.horizontal.weights,
            rows.map(\.numbers),
            rows.count,
            self.horizontal.count
        )
    }
}

/// The light of samples, and the way back.
struct LightTables: Sendable {
    static let shared = LightTables()

    /// The light of each sample, on the scale of samples.
    let samples: [Float]
    /// The light from which on each sample is the nearest one.
    let limits: [Float]
    /// The sample for the beginning of each 1/4096 of the light.
    let nearest: [UInt8]

    private init() {
        /// IEC 61966-2-1: the light of a value in the curve of sRGB.
        func light(_ value: Double) -> Double {
            value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
        }
        self.samples = (0..<256).map { Float(255 * light(Double($0) / 255)) }
        let limits = [0] + (1..<256).map { Float(255 * light((Double($0) - 0.5) / 255)) } + [.infinity]
        self.limits = limits
        var sample = 0
        self.nearest = (0...4_096).map { part in
            // A little less, as the place of a light among the parts is rounded too.
            let begin = Float(part) * 255 / 4_096 * 0.999_999
            while begin >= limits[sample + 1] { sample += 1 }
            return UInt8(sample)
        }
    }
}
