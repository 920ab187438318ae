// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Blurs rows of numbers with a Gaussian, in strips of columns, from the top.
///
/// A Gaussian equals two Gaussians in sequence, each with half its variance. Between the two, one row in every ``step``
/// is enough: the first kernel makes only those rows, and the second makes all rows from them. Samples of a Gaussian
/// that are at most one standard deviation apart have a sum that is off by at most 1e-4, by Poisson's summation
/// formula. So each row takes about 15 multiplications vertically, whatever sigma is, and only the few remaining rows
/// are filtered horizontally.
///
/// Border rows and columns repeat beyond the borders. Kernels end at 3.7 standard deviations, which leaves out 2e-4 of
/// their sum: with three kernels, at most 0.2 levels. In linear light kernels end at 4.7, because little light makes a
/// level near black.
struct GaussianFilter {
    /// The smallest sigma that changes a sample.
    static let smallestSigma = 0.2
    /// The largest sigma; beyond it the result is nearly one colour.
    static let largestSigma = 1000.0
    /// The number of source rows added at once.
    fileprivate static let groupHeight = 8
    /// The target size of the rows in use, in bytes; they fit into the second-level cache unless kernels are wider than
    /// a strip.
    fileprivate static let workingByteCount = 960 << 10
    /// The number of result rows made at once.
    fileprivate static let batchHeight = 4

    /// The number of columns that count on each side.
    fileprivate let radius: Int
    private let acrossWeights: [Float]
    /// The number of source rows for each row between the two kernels.
    fileprivate let step: Int
    /// The cumulative weights of the first vertical kernel, from 0 to 1.
    private let downSums: [Double]
    fileprivate let downRadius: Int
    /// The second vertical kernel, for each phase of a step: its first row, and the weights of `phaseLength` rows.
    private let phaseFirsts: [Int]
    private let phaseWeights: [Float]
    private let phaseLength: Int
    fileprivate let upRadius: Int

    /// - Parameters:
    ///   - sigma: The standard deviation in samples, over 0.
    ///   - light: The scale of the numbers.
    init(sigma: Double, light: LightSpace = .sRGB) {
        func radius(_ sigma: Double) -> Int { Int(((light == .sRGB ? 3.7 : 4.7) * sigma).rounded(.up)) }
        self.radius = radius(sigma)
        self.acrossWeights = Self.weights((0...self.radius).map { Double($0) }, sigma, isHalf: true).map { Float($0) }
        self.step = max(1, Int(sigma / 2.0.squareRoot()))
        // If every row is made, there is no first kernel.
        let part = self.step == 1 ? sigma : sigma / 2.0.squareRoot()
        let (step, reach) = (self.step, radius(part))
        self.upRadius = reach
        self.downRadius = step == 1 ? 0 : reach
        let down = step == 1 ? [1] : Self.weights((-reach...reach).map { Double($0) }, part, isHalf: false)
        self.downSums = down.reduce(into: []) { $0.append(($0.last ?? 0) + $1) }
        let length = 2 * reach / step + 1
        self.phaseLength = length
        self.phaseFirsts = (0..<step).map { Self.quotientRoundedUp($0 - reach, step) }
        self.phaseWeights = self.phaseFirsts.enumerated().flatMap { phase, first in
            let distances = (first..<first + length).map { Double(phase - $0 * step) }
            return Self.weights(distances, part, isHalf: false).map { Float($0) }
        }
    }

    /// Returns Gaussian weights with a sum of 1; if `isHalf`, all weights except the first count twice.
    private static func weights(_ distances: [Double], _ sigma: Double, isHalf: Bool) -> [Double] {
        let raw = distances.map { exp(-0.5 * ($0 / sigma) * ($0 / sigma)) }
        let sum = raw.reduce(0, +)
        let total = isHalf ? 2 * sum - raw[0] : sum
        return raw.map { $0 / total }
    }

    private static func quotientRoundedUp(_ value: Int, _ divisor: Int) -> Int {
        Int((Double(value) / Double(divisor)).rounded(.up))
    }

    /// Returns the weight of an intermediate row in a result row.
    fileprivate func share(of low: Int, for row: Int) -> Float {
        let phase = row % self.step
        let place = low - row / self.step - self.phaseFirsts[phase]
        return (0..<self.phaseLength).contains(place) ? self.phaseWeights[phase * self.phaseLength + place] : 0
    }

    /// Returns the weight of a source row in an intermediate row.
    ///
    /// The first and the last row stand for the rows beyond the borders.
    fileprivate func share(of row: Int, in low: Int, height: Int) -> Float {
        let place = row - low * self.step + self.downRadius
        func sum(upTo index: Int) -> Double { index < 0 ? 0 : self.downSums[min(index, self.downSums.count - 1)] }
        let upper = row == height - 1 ? 1 : sum(upTo: place)
        return Float(upper - (row == 0 ? 0 : sum(upTo: place - 1)))
    }

    /// Returns the intermediate rows that count for a result row.
    fileprivate func lows(for row: Int) -> ClosedRange<Int> {
        let first = row / self.step + self.phaseFirsts[row % self.step]
        return first...first + self.phaseLength - 1
    }

    /// The sizes of a strip's row buffers.
    fileprivate struct Room {
        let columns: Int
        let sums: Int
        let lows: Int

        init(_ filter: GaussianFilter, width: Int, bytesPerPixel: Int) {
            self.sums = (2 * filter.downRadius + GaussianFilter.groupHeight) / filter.step + 3
            self.lows = 2 * filter.upRadius / filter.step + 3
            let count = GaussianFilter.groupHeight + self.sums + self.lows + GaussianFilter.batchHeight
            let most = GaussianFilter.workingByteCount / (count * bytesPerPixel) - 2 * filter.radius
            let strips = (width - 1) / max(most, 2 * filter.radius) + 1
            self.columns = (width + strips - 1) / strips
        }

        var count: Int { GaussianFilter.groupHeight + self.sums + self.lows + GaussianFilter.batchHeight }
    }

    /// Returns the most bytes of working memory for an image.
    func workingByteCount<Number: FilterNumber>(width: Int, channels: Int, _: Number.Type = Float.self) -> Int {
        let room = Room(self, width: width, bytesPerPixel: channels * MemoryLayout<Number>.stride)
        return NumberRows<Number>.byteCount(count: room.count, width: (room.columns + 2 * self.radius) * channels)
    }

    /// Blurs an image.
    ///
    /// - Throws: `ImageError` if memory runs out, `CancellationError`.
    func run<Number: FilterNumber>(_ image: FilteredImage<Number>) throws {
        let bytesPerPixel = image.channels * MemoryLayout<Number>.stride
        let room = Room(self, width: image.width, bytesPerPixel: bytesPerPixel)
        let width = (room.columns + 2 * self.radius) * image.channels
        let rows = try NumberRows<Number>(count: room.count, width: width)
        let weights = self.acrossWeights.enumerated().map { Number.weight($0.element, ofBothSides: $0.offset > 0) }
        for start in stride(from: 0, to: image.width, by: room.columns) {
            let columns = start..<min(start + room.columns, image.width)
            var strip = GaussianStrip(
                filter: self,
                image: image,
                columns: columns,
                rows: rows,
                room: room,
                acrossWeights: weights
            )
            try strip.run()
        }
    }
}

/// Blurs a strip of columns of an image.
private struct GaussianStrip<Number: FilterNumber> {
    let filter: GaussianFilter
    let image: FilteredImage<Number>
    let columns: Range<Int>
    let rows: NumberRows<Number>
    let room: GaussianFilter.Room
    let acrossWeights: [Number]
    /// The columns within the image that count; row buffers also have room for columns beyond the borders.
    private let read: Range<Int>
    /// The indices of all intermediate rows.
    private let lows: ClosedRange<Int>
    /// The end of the intermediate rows that have begun; `complete` is the end of the finished ones.
    private var begun: Int
    private var complete: Int
    /// The number of result rows made so far.
    private var made = 0

    init(
        filter: GaussianFilter,
        image: FilteredImage<Number>,
        columns: Range<Int>,
        rows: NumberRows<Number>,
        room: GaussianFilter.Room,
        acrossWeights: [Number]
    ) {
        self.filter = filter
        self.image = image
        self.columns = columns
        self.rows = rows
        self.room = room
        self.acrossWeights = acrossWeights
        self.read =
            max(0, columns.lowerBound - filter.radius)..<min(image.width, columns.upperBound + filter.radius)
        self.lows = filter.lows(for: 0).lowerBound...filter.lows(for: image.height - 1).upperBound
        self.begun = self.lows.lowerBound
        self.complete = self.lows.lowerBound
    }

    mutating func run() throws {
        let height = self.image.height
        for start in stride(from: 0, to: height, by: GaussianFilter.groupHeight) {
            try Task.checkCancellation()
            let group = start..<min(start + GaussianFilter.groupHeight, height)
            for row in group { self.image.load(row, self.read, self.rows[row - start]) }
            // The last row stands for the rows beyond the border.
            let end = group.upperBound == height ? Int.max : group.upperBound
            self.add(group, to: self.complete..<self.begun, isNew: false)
            try self.completeRows(before: end)
            while self.begun <= self.lows.upperBound, self.begun * self.filter.step - self.filter.downRadius < end {
                // At the borders more rows begin than there are buffers, but some of them finish at once.
                let first = self.begun
                while self.begun <= self.lows.upperBound, self.begun - self.complete < self.room.sums,
                    self.begun * self.filter.step - self.filter.downRadius < end
                {
                    self.begun += 1
                }
                self.add(group, to: first..<self.begun, isNew: true)
                try self.completeRows(before: end)
            }
        }
    }

    private func sum(_ low: Int) -> UnsafeMutablePointer<Number> {
        self.rows[GaussianFilter.groupHeight + (low - self.lows.lowerBound) % self.room.sums]
    }

    private func blurred(_ low: Int) -> UnsafeMutablePointer<Number> {
        self.rows[GaussianFilter.groupHeight + self.room.sums + (low - self.lows.lowerBound) % self.room.lows]
    }

    /// Adds source rows, which are in the first buffers, to intermediate rows.
    private func add(_ group: Range<Int>, to lows: Range<Int>, isNew: Bool) {
        guard !lows.isEmpty else { return }
        let before = (self.read.lowerBound - self.columns.lowerBound + self.filter.radius) * self.image.channels
        let height = self.image.height
        let weights = lows.flatMap { low in
            group.map { Number.weight(self.filter.share(of: $0, in: low, height: height)) }
        }
        Number.combine(
            group.indices.map { UnsafePointer(self.rows[$0 - group.lowerBound]) },
            group.count,
            weights,
            lows.map { self.sum($0) + before },
            lows.count,
            isNew ? 0 : 1,
            self.read.count * self.image.channels
        )
    }

    /// Finishes the intermediate rows that need no source row from `end` on, and makes result rows from them.
    private mutating func completeRows(before end: Int) throws {
        while self.complete < self.begun, self.complete * self.filter.step + self.filter.downRadius < end {
            // With a large sigma, one wide row takes tens of milliseconds.
            try Task.checkCancellation()
            self.blurAcross(self.sum(self.complete), to: self.blurred(self.complete))
            self.complete += 1
            self.makeRows()
        }
    }

    /// Extends a row beyond the borders, and blurs it horizontally.
    private func blurAcross(_ row: UnsafeMutablePointer<Number>, to target: UnsafeMutablePointer<Number>) {
        let (channels, radius) = (self.image.channels, self.filter.radius)
        let start = self.columns.lowerBound - radius
        func fill(_ missing: Range<Int>, with column: Int) {
            let pixel = row + (column - start) * channels
            for column in missing { (row + (column - start) * channels).update(from: pixel, count: channels) }
        }
        fill(start..<self.read.lowerBound, with: self.read.lowerBound)
        fill(self.read.upperBound..<self.columns.upperBound + radius, with: self.read.upperBound - 1)
        let count = self.columns.count * channels
        Number.convolve(row + radius * channels, self.acrossWeights, radius, channels, target, count)
    }

    /// Makes the result rows whose intermediate rows are all finished.
    private mutating func makeRows() {
        func isReady(_ row: Int) -> Bool {
            row < self.image.height && self.filter.lows(for: row).upperBound < self.complete
        }
        while isReady(self.made) {
            var end = self.made + 1
            while end < self.made + GaussianFilter.batchHeight, isReady(end) { end += 1 }
            let batch = self.made..<end
            let lows = self.filter.lows(for: self.made).lowerBound...self.filter.lows(for: end - 1).upperBound
            let weights = batch.flatMap { row in lows.map { Number.weight(self.filter.share(of: $0, for: row)) } }
            let place = GaussianFilter.groupHeight + self.room.sums + self.room.lows - batch.lowerBound
            Number.combine(
                lows.map { UnsafePointer(self.blurred($0)) },
                lows.count,
                weights,
                batch.map { self.rows[place + $0] },
                batch.count,
                0,
                self.columns.count * self.image.channels
            )
            for row in batch { self.image.emit(row, self.columns, self.rows[place + row]) }
            self.made = end
        }
    }
}
