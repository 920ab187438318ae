// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
import TintypeImage

/// Resamples an image whose rows are read once, from the top.
///
/// Weighted rows are added to the few target rows that they count for. Finished rows are packed in groups, and each
/// pack is brought to the target's width at once. So only the target and a strip are in memory. Samples are added as
/// whole numbers, light as fractions.
///
/// If the image gets higher but narrower, rows are first brought to the target's width, and each target row is a mix of
/// a few of them.
struct RowResampler {
    /// The order of the work.
    private enum Way {
        /// Each group of target rows is made from the few source rows that it needs.
        case gathering
        /// Each group of source rows is added to all target rows that it counts for.
        case adding
        /// Columns are filtered before rows.
        case columnsFirst
    }

    /// The columns left out at the start are a multiple of this, so that rows stay aligned and columns stay in pairs.
    private static let columnStep = PixelLayout.alignment

    private let source: SourceRows
    /// The layout of the source columns that count.
    private let columns: PixelLayout
    private let layout: PixelLayout
    private let way: Way
    private let vertical: FilterWeights
    private let horizontal: FilterWeights
    private let light: LightTables?

    private var channels: Int { self.layout.format.channelCount }

    init(_ source: SourceRows, geometry: ResizeGeometry, resampling: Resampling) throws(ImageError) {
        let from = source.layout
        self.source = source
        self.layout = try PixelLayout(format: from.format, width: geometry.width, height: geometry.height)
        self.light = resampling.light == .linear ? .shared : nil
        self.way = Self.way(geometry, of: (from.width, from.height), resampling)
        try source.reserve(Self.rowsTogether(self.way))
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
        let used = self.horizontal.used
        let start = used.lowerBound / Self.columnStep * Self.columnStep
        self.columns = try PixelLayout(format: from.format, width: used.upperBound - start, height: from.height)
        self.horizontal.leaveOut(start)
        source.leftOut = start * from.format.channelCount
    }

    /// Returns the number of source rows used together.
    private static func rowsTogether(_ way: Way) -> Int {
        way == .gathering ? Int(cpixels_most_packed_rows) : Int(cpixels_most_rows)
    }

    private static func way(
        _ geometry: ResizeGeometry,
        of source: (width: Int, height: Int),
        _ resampling: Resampling
    ) -> Way {
        let step = geometry.sourceHeight / Double(geometry.height)
        let isNarrowed = geometry.sourceWidth > Double(geometry.width)
        if step < 1, isNarrowed || resampling.light == .linear { return .columnsFirst }
        guard resampling.light == .sRGB else { return .adding }
        // Gathering loads a row again for each pack that it counts for. With many packs, adding is cheaper.
        let needed = FilterKernel(resampling.filter, step: step).mostWeights(sourceCount: source.height)
        return needed <= Int(cpixels_most_packed_rows) / 2 ? .gathering : .adding
    }

    /// Returns the resampled pixels, in the source's format.
    ///
    /// - Throws: The errors of the source, `ImageError`, `CancellationError`.
    func resample() throws -> PixelBuffer {
        try PixelBuffer(
            self.layout,
            fillingUnsafely: { target in
                guard let base = target.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
                let rows = TargetRows(base: base, bytesPerRow: self.layout.planes[0].bytesPerRow)
                switch self.way {
                case .gathering: try self.gather(into: rows)
                case .adding where self.light == nil:
                    try self.add(
                        into: rows,
                        WholeStrip(self.columns, vertical: self.vertical, horizontal: self.horizontal)
                    )
                case .adding:
                    try self.withSamples { samples in
                        let strip = try FractionStrip(self.columns, samples, self.vertical, self.horizontal)
                        try self.add(into: rows, strip)
                    }
                case .columnsFirst: try self.withSamples { try self.mix(into: rows, $0) }
                }
            }
        )
    }

    // MARK: Gathering

    private func gather(into target: TargetRows) throws {
        let width = self.columns.width
        let pack = try WholePack(width, channels: self.channels, self.horizontal)
        let whole = try WholeWeights(self.vertical, inPairs: false)
        let most = Int(cpixels_most_packed_rows)
        var shares = [Int16](repeating: 0, count: most * pack.placeCount)
        var next = whole.weights
        var index = 0
        while index < self.vertical.count {
            try Task.checkCancellation()
            let first = Int(self.vertical.firsts[index])
            var (end, count) = (first, 0)
            while count < pack.placeCount, index + count < self.vertical.count,
                self.vertical.last(index + count) < first + most
            {
                let lead = Int(whole.firsts[index + count]) - first
                let taps = Int(whole.counts[index + count])
                for place in 0..<most {
                    let isShare = place >= lead && place < lead + taps
                    shares[count * most + place] = isShare ? next[place - lead] : 0
                }
                next += taps
                end = max(end, first + lead + taps)
                count += 1
            }
            let rows = try self.source.lend(end - first, from: first)
            cpixels_pack_rows(
                rows,
                rows.count,
                self.channels,
                shares,
                count,
                CInt(whole.unitBits),
                pack.numbers,
                width
            )
            pack.store(into: target.rows(count, from: index))
            index += count
        }
    }

    // MARK: Adding

    /// A target row that is not finished.
    private struct Sum {
        let row: NumberRow
        /// The index of the target row.
        let index: Int
        /// The index of its first weight.
        let place: Int
    }

    private func add(into target: TargetRows, _ strip: some Strip) throws {
        var sums: [Sum] = []
        var spare: [NumberRow] = []
        var (begun, stored, place) = (0, 0, 0)
        var first = Int(self.vertical.firsts[0])
        let last = self.vertical.last(self.vertical.count - 1)
        while stored < self.vertical.count {
            try Task.checkCancellation()
            let rows = try self.source.lend(min(Int(cpixels_most_rows), last + 1 - first), from: first)
            let end = first + rows.count
            let older = sums.count
            while begun < self.vertical.count, self.vertical.firsts[begun] < end {
                let row = try spare.popLast() ?? NumberRow(self.columns.width * self.channels)
                sums.append(Sum(row: row, index: begun, place: place))
                place += Int(self.vertical.counts[begun])
                begun += 1
            }
            if !sums.isEmpty {
                let shares = sums.map { sum in
                    let from = Int(self.vertical.firsts[sum.index])
                    return Share(place: sum.place, from: from, count: Int(self.vertical.counts[sum.index]))
                }
                let isNew = sums.indices.map { $0 >= older }
                strip.add(rows, from: first, to: sums.map(\.row), shares, isNew: isNew)
            }
            var complete = 0
            while complete < sums.count, self.vertical.last(sums[complete].index) < end {
                let sum = sums[complete]
                complete += 1
                strip.pack(sum.row, at: sum.index % strip.placeCount)
                spare.append(sum.row)
                guard (sum.index + 1) % strip.placeCount == 0 || sum.index + 1 == self.vertical.count else { continue }
                strip.store(into: target.rows(sum.index + 1 - stored, from: stored))
                stored = sum.index + 1
            }
            sums.removeFirst(complete)
            first = end
        }
    }

    // MARK: Columns first

    private func mix(into target: TargetRows, _ samples: UnsafePointer<cpixels_samples>) throws {
        let strip = try FractionStrip(self.columns, samples, self.vertical, self.horizontal)
        let targetCount = self.layout.width * self.channels
        let wide = try NumberRow(self.columns.width * self.channels)
        // The last rows at the target's width: the rows of a kernel, and the rows that come in a pack with its last
        // one.
        let recent = try NumberRow.rows(2 * Int(cpixels_most_rows), targetCount)
        let mixed = try NumberRow(targetCount)
        var weights = UnsafePointer(self.vertical.weights)
        var read = Int(self.vertical.firsts[0])
        let last = self.vertical.last(self.vertical.count - 1)
        for index in 0..<self.vertical.count {
            if index % 8 == 0 { try Task.checkCancellation() }
            while read <= self.vertical.last(index) {
                let rows = try self.source.lend(min(strip.placeCount, last + 1 - read), from: read)
                for (place, row) in rows.enumerated() {
                    strip.load(row, into: wide)
                    strip.pack(wide, at: place)
                }
                strip.filter(into: (read..<read + rows.count).map { recent[$0 % recent.count] })
                read += rows.count
            }
            let first = Int(self.vertical.firsts[index])
            let count = Int(self.vertical.counts[index])
            let rows = (first..<first + count).map { UnsafePointer(recent[$0 % recent.count].fractions) }
            cpixels_mix_rows(rows, weights, count, mixed.fractions, targetCount)
            weights += count
            cpixels_store_row(mixed.fractions, samples, target.row(index), self.layout.width)
        }
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

    // MARK: Memory

    /// Returns the most bytes that resampling needs in addition to source and target.
    ///
    /// - Parameters:
    ///   - geometry: The part and the size.
    ///   - source: The size and format of the source.
    ///   - resampling: The filter kernel and the light space.
    ///   - isStreamed: Whether the rows come one by one, instead of from a whole image.
    /// - Returns: The bytes.
    static func byteCount(
        _ geometry: ResizeGeometry,
        of source: (width: Int, height: Int, format: PixelFormat),
        _ resampling: Resampling,
        isStreamed: Bool
    ) -> Int {
        let channels = Double(source.format.channelCount)
        let places = Double(cpixels_places(source.format.channelCount))
        let across = FilterKernel(resampling.filter, step: geometry.sourceWidth / Double(max(1, geometry.width)))
        let reach = Double(across.mostWeights(sourceCount: source.width) + Self.columnStep + 2)
        let columns = min(Double(source.width), geometry.sourceWidth + reach)
        // A number takes four bytes, or two in a pack of whole numbers. Rows are padded.
        let (wide, narrow) = (4 * (columns * channels + 64), 4 * (Double(geometry.width) * channels + 64))
        let group = Double(cpixels_most_rows)
        let step = geometry.sourceHeight / Double(max(1, geometry.height))
        let needed = Double(FilterKernel(resampling.filter, step: step).mostWeights(sourceCount: source.height))
        let way = Self.way(geometry, of: (source.width, source.height), resampling)
        let rows: Double
        switch way {
        case .gathering: rows = wide * places / 2
        case .adding:
            let sums = min((needed + group) / step + 2, Double(geometry.height))
            rows =
                resampling.light == .sRGB
                ? wide * (sums + places / 2) : wide * (sums + places) + narrow * places
        case .columnsFirst: rows = wide * (1 + places) + narrow * (places + 2 * group + 1)
        }
        let horizontal = FilterWeights.byteCount(
            filter: resampling.filter,
            sourceCount: source.width,
            length: geometry.sourceWidth,
            targetCount: geometry.width
        )
        let vertical = FilterWeights.byteCount(
            filter: resampling.filter,
            sourceCount: source.height,
            length: geometry.sourceHeight,
            targetCount: geometry.height
        )
        let stored = isStreamed ? (Double(source.width) * channels + 128) * Double(self.rowsTogether(way)) : 0
        // Whole weights take less than the exact ones; 16 KiB cover the rest.
        return Int(min(rows + 2 * (horizontal + vertical) + stored + 16_384, Double(Int.max / 2)))
    }
}

/// The rows of the target.
private struct TargetRows {
    let base: UnsafeMutablePointer<UInt8>
    let bytesPerRow: Int

    func row(_ index: Int) -> UnsafeMutablePointer<UInt8> { self.base + index * self.bytesPerRow }

    func rows(_ count: Int, from first: Int) -> [UnsafeMutablePointer<UInt8>] {
        (first..<first + count).map(self.row)
    }
}

/// A row of numbers, read as fractions or as whole numbers.
private final class NumberRow {
    /// The numbers beyond the end of a row that kernels may read and write.
    private static let padding = 32

    let fractions: UnsafeMutablePointer<Float>
    private let memory: AlignedMemory

    /// Creates a row of `count` zeros.
    init(_ count: Int) throws(ImageError) {
        let count = count + Self.padding
        self.memory = try AlignedMemory(byteCount: count * MemoryLayout<Float>.size)
        self.fractions = self.memory.start.assumingMemoryBound(to: Float.self)
        self.fractions.initialize(repeating: 0, count: count)
    }

    static func rows(_ rowCount: Int, _ count: Int) throws(ImageError) -> [NumberRow] {
        var rows: [NumberRow] = []
        for _ in 0..<rowCount { rows.append(try NumberRow(count)) }
        return rows
    }

    var wholeNumbers: UnsafeMutablePointer<Int32> { self.memory.start.assumingMemoryBound(to: Int32.self) }
    var halves: UnsafeMutablePointer<Int16> { self.memory.start.assumingMemoryBound(to: Int16.self) }
}

/// The index of a target row's first weight, and the source rows that its weights are for.
private struct Share {
    let place: Int
    let from: Int
    let count: Int

    /// Returns the weights of the rows from `first` on, with 0 for rows that do not count.
    func weights<Weight: Numeric>(_ all: UnsafePointer<Weight>, from first: Int) -> some Sequence<Weight> {
        (first - self.from..<first - self.from + Int(cpixels_most_rows)).lazy.map { number in
            number >= 0 && number < self.count ? all[self.place + number] : 0
        }
    }
}

/// Adds rows and filters their columns.
private protocol Strip {
    /// The number of rows in a pack.
    var placeCount: Int { get }

    func add(
        _ rows: [UnsafePointer<UInt8>],
        from first: Int,
        to sums: [NumberRow],
        _ shares: [Share],
        isNew: [Bool]
    )
    func pack(_ row: NumberRow, at place: Int)
    func store(into rows: [UnsafeMutablePointer<UInt8>])
}

/// A pack of rows whose columns are filtered together, as whole numbers.
private final class WholePack {
    let placeCount: Int
    let numbers: UnsafeMutablePointer<Int16>
    private let memory: NumberRow
    private let channels: Int
    private let width: Int
    private let horizontal: WholeWeights

    init(_ sourceWidth: Int, channels: Int, _ horizontal: FilterWeights) throws(ImageError) {
        self.placeCount = cpixels_places(channels)
        self.channels = channels
        self.width = horizontal.count
        self.horizontal = try WholeWeights(horizontal, inPairs: true)
        // Columns are stored in pairs.
        self.memory = try NumberRow((sourceWidth + 1) / 2 * channels * self.placeCount)
        self.numbers = self.memory.halves
    }

    func store(into rows: [UnsafeMutablePointer<UInt8>]) {
        cpixels_store_columns(
            self.numbers,
            self.channels,
            self.horizontal.firsts,
            self.horizontal.counts,
            self.horizontal.weights,
            CInt(self.horizontal.unitBits),
            rows,
            rows.count,
            self.width
        )
    }
}

/// Adds stored samples as whole numbers.
private final class WholeStrip: Strip {
    private let layout: PixelLayout
    private let vertical: WholeWeights
    private let numbers: WholePack

    init(_ layout: PixelLayout, vertical: FilterWeights, horizontal: FilterWeights) throws(ImageError) {
        self.layout = layout
        self.vertical = try WholeWeights(vertical, inPairs: false)
        self.numbers = try WholePack(layout.width, channels: layout.format.channelCount, horizontal)
    }

    var placeCount: Int { self.numbers.placeCount }

    func add(
        _ rows: [UnsafePointer<UInt8>],
        from first: Int,
        to sums: [NumberRow],
        _ shares: [Share],
        isNew: [Bool]
    ) {
        cpixels_add_rows(
            rows,
            rows.count,
            self.layout.format.channelCount,
            sums.map(\.wholeNumbers),
            shares.flatMap { $0.weights(self.vertical.weights, from: first) },
            isNew,
            sums.count,
            self.layout.width
        )
    }

    func pack(_ row: NumberRow, at place: Int) {
        let channels = self.layout.format.channelCount
        let unitBits = CInt(self.vertical.unitBits)
        cpixels_pack_sums(row.wholeNumbers, channels, place, unitBits, self.numbers.numbers, self.layout.width)
    }

    func store(into rows: [UnsafeMutablePointer<UInt8>]) {
        self.numbers.store(into: rows)
    }
}

/// Adds samples or their light as fractions.
private final class FractionStrip: Strip {
    let placeCount: Int
    private let layout: PixelLayout
    private let samples: UnsafePointer<cpixels_samples>
    private let vertical: FilterWeights
    private let horizontal: FilterWeights
    private let numbers: NumberRow
    private let filtered: [NumberRow]

    init(
        _ layout: PixelLayout,
        _ samples: UnsafePointer<cpixels_samples>,
        _ vertical: FilterWeights,
        _ horizontal: FilterWeights
    ) throws(ImageError) {
        let channels = layout.format.channelCount
        self.placeCount = cpixels_places(channels)
        self.layout = layout
        self.samples = samples
        self.vertical = vertical
        self.horizontal = horizontal
        self.numbers = try NumberRow(layout.width * channels * self.placeCount)
        self.filtered = try NumberRow.rows(self.placeCount, horizontal.count * channels)
    }

    func add(
        _ rows: [UnsafePointer<UInt8>],
        from first: Int,
        to sums: [NumberRow],
        _ shares: [Share],
        isNew: [Bool]
    ) {
        let weights = shares.flatMap { $0.weights(self.vertical.weights, from: first) }
        let numbers = sums.map(\.fractions)
        cpixels_add_numbers(rows, rows.count, self.samples, numbers, weights, isNew, sums.count, self.layout.width)
    }

    /// Converts a stored row to a row of numbers.
    func load(_ stored: UnsafePointer<UInt8>, into row: NumberRow) {
        let alone: [Float] = [1]
        cpixels_add_numbers([stored], 1, self.samples, [row.fractions], alone, [true], 1, self.layout.width)
    }

    func pack(_ row: NumberRow, at place: Int) {
        let channels = self.layout.format.channelCount
        cpixels_pack_row(row.fractions, channels, place, self.numbers.fractions, self.layout.width)
    }

    /// Filters the packed rows to the target's width.
    func filter(into rows: some Collection<NumberRow>) {
        cpixels_filter_columns(
            self.numbers.fractions,
            self.layout.format.channelCount,
            self.horizontal.firsts,
            self.horizontal.counts,
            self.horizontal.weights,
            rows.map(\.fractions),
            rows.count,
            self.horizontal.count
        )
    }

    func store(into rows: [UnsafeMutablePointer<UInt8>]) {
        self.filter(into: self.filtered.prefix(rows.count))
        for (from, to) in zip(self.filtered, rows) {
            cpixels_store_row(from.fractions, self.samples, to, self.horizontal.count)
        }
    }
}
