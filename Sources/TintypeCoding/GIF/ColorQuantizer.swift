/// Chooses the few colours that show a picture best.
///
/// Boxes of colour space are cut where that lowers the squared error most; then the colours move to the means of what
/// is nearest to them. Sources: X. Wu, "Color Quantization by Dynamic Programming and Principal Analysis",
/// ACM Transactions on Graphics 11 (1992), its greedy variant; S. Lloyd, "Least Squares Quantization in PCM",
/// IEEE Transactions on Information Theory 28 (1982).
package struct ColorQuantizer {
    /// Colours are told apart by their upper bits at first.
    private static let bits: UInt32 = 5
    private static let side = 1 << 5
    private static let refinements = 4

    /// The sums of red, green, blue and the number of pixels, for each cell of colour space.
    private var sums = [SIMD4<Double>](repeating: .zero, count: side * side * side)
    /// The sums of the squares of all three.
    private var squares = [Double](repeating: 0, count: side * side * side)

    /// Begins without pixels.
    package init() {}

    /// Counts the pixels of a picture; those that are zero are transparent and left out.
    package mutating func count(_ pixels: [UInt32]) {
        for pixel in pixels where pixel != 0 {
            let (red, green, blue) = (pixel & 255, pixel >> 8 & 255, pixel >> 16 & 255)
            let cell = Self.cell(red >> (8 - Self.bits), green >> (8 - Self.bits), blue >> (8 - Self.bits))
            self.sums[cell] += SIMD4(Double(red), Double(green), Double(blue), 1)
            self.squares[cell] += Double(red * red + green * green + blue * blue)
        }
    }

    /// The best colours, at most `maximum`; opaque pixels, red in the lowest byte.
    ///
    /// - Throws: `CancellationError`.
    package func colors(maximum: Int) throws -> [UInt32] {
        let space = ColorMoments(sums: self.sums, squares: self.squares, side: Self.side)
        let boxes = space.boxes(maximum: maximum)
        let means = boxes.map { Self.pixel(space.sum(of: $0)) }
        try Task.checkCancellation()
        return try self.refine(means)
    }

    /// The mean squared distance of the pixels from the nearest of `colors`, as far as the cells of colour space tell.
    func error(of colors: [UInt32]) -> Double {
        let search = NearestColor(colors)
        var (error, count) = (0.0, 0.0)
        for (cell, square) in zip(self.sums, self.squares) where cell.w > 0 {
            let mean = cell / cell.w
            let color = colors[search.index(red: Float(mean.x), green: Float(mean.y), blue: Float(mean.z))]
            let shown = SIMD4(Double(color & 255), Double(color >> 8 & 255), Double(color >> 16 & 255), 0)
            // The squared distances of many pixels from one colour, of their sums.
            error += square - 2 * (shown * cell).sum() + cell.w * (shown * shown).sum()
            count += cell.w
        }
        return count > 0 ? max(0, error / count) : 0
    }

    /// Moves each colour to the mean of the cells that are nearest to it, some times.
    private func refine(_ colors: [UInt32]) throws -> [UInt32] {
        let cells = self.sums.filter { $0.w > 0 }
        var colors = colors
        for _ in 0..<Self.refinements {
            try Task.checkCancellation()
            let search = NearestColor(colors)
            var sums = [SIMD4<Double>](repeating: .zero, count: colors.count)
            for cell in cells {
                let mean = cell / cell.w
                sums[search.index(red: Float(mean.x), green: Float(mean.y), blue: Float(mean.z))] += cell
            }
            let moved = zip(colors, sums).map { $1.w > 0 ? Self.pixel($1) : $0 }
            if moved == colors { break }
            colors = moved
        }
        return colors
    }

    private static func cell(_ red: UInt32, _ green: UInt32, _ blue: UInt32) -> Int {
        Int(red << (2 * self.bits) | green << self.bits | blue)
    }

    /// The mean of some pixels.
    private static func pixel(_ sum: SIMD4<Double>) -> UInt32 {
        guard sum.w > 0 else { return 0xFF00_0000 }
        let mean = (sum / sum.w).rounded(.toNearestOrAwayFromZero).clamped(
            lowerBound: .zero,
            upperBound: .init(repeating: 255)
        )
        return 0xFF00_0000 | UInt32(mean.z) << 16 | UInt32(mean.y) << 8 | UInt32(mean.x)
    }
}

/// Finds the colour of a palette that is nearest to another, by the squared distance in red, green and blue.
struct NearestColor {
    private static let laneCount = 16
    /// Farther away than any colour.
    private static let nowhere: Float = 10_000

    private var reds: [SIMD16<Float>] = []
    private var greens: [SIMD16<Float>] = []
    private var blues: [SIMD16<Float>] = []

    /// Prepares a search in some colours, at least one; opaque pixels, red in the lowest byte.
    init(_ colors: [UInt32]) {
        for start in stride(from: 0, to: colors.count, by: Self.laneCount) {
            var (red, green, blue) = (SIMD16<Float>(repeating: Self.nowhere), SIMD16<Float>.zero, SIMD16<Float>.zero)
            for lane in 0..<min(Self.laneCount, colors.count - start) {
                let color = colors[start + lane]
                red[lane] = Float(color & 255)
                green[lane] = Float(color >> 8 & 255)
                blue[lane] = Float(color >> 16 & 255)
            }
            self.reds.append(red)
            self.greens.append(green)
            self.blues.append(blue)
        }
    }

    /// The place of the nearest colour.
    func index(red: Float, green: Float, blue: Float) -> Int {
        var distances = SIMD16<Float>(repeating: .infinity)
        var groups = SIMD16<Int32>.zero
        for group in self.reds.indices {
            let (red, green, blue) = (self.reds[group] - red, self.greens[group] - green, self.blues[group] - blue)
            let distance = red * red + green * green + blue * blue
            let isNearer = distance .< distances
            distances.replace(with: distance, where: isNearer)
            groups.replace(with: Int32(truncatingIfNeeded: group), where: isNearer)
        }
        let least = distances.min()
        var nearest = 0
        for lane in 0..<Self.laneCount where distances[lane] == least {
            nearest = Int(groups[lane]) * Self.laneCount + lane
            break
        }
        return nearest
    }
}

/// The sums over any box of colour space in a few additions, and the cutting of boxes.
///
/// Source: X. Wu, "Efficient Statistical Computations for Optimal Color Quantization", Graphics Gems II (1991).
struct ColorMoments {
    /// A box of cells: from `lower` (not included) to `upper`.
    struct Box {
        var lower = SIMD3<Int>.zero
        var upper: SIMD3<Int>
    }

    /// One cell more on each side, which is empty.
    private let side: Int
    /// For each cell the sum over all cells that are not above it in any channel.
    private var sums: [SIMD4<Double>]
    private var squares: [Double]

    /// Adds up the cells of a space that is `side` cells long.
    init(sums cells: [SIMD4<Double>], squares cellSquares: [Double], side: Int) {
        self.side = side + 1
        self.sums = Array(repeating: .zero, count: self.side * self.side * self.side)
        self.squares = Array(repeating: 0, count: self.sums.count)
        for red in 1...side {
            var areas = [SIMD4<Double>](repeating: .zero, count: side + 1)
            var squareAreas = [Double](repeating: 0, count: side + 1)
            for green in 1...side {
                var line = SIMD4<Double>.zero
                var squareLine = 0.0
                for blue in 1...side {
                    let cell = ((red - 1) * side + green - 1) * side + blue - 1
                    line += cells[cell]
                    squareLine += cellSquares[cell]
                    areas[blue] += line
                    squareAreas[blue] += squareLine
                    let place = self.place(red, green, blue)
                    let below = self.place(red - 1, green, blue)
                    self.sums[place] = self.sums[below] + areas[blue]
                    self.squares[place] = self.squares[below] + squareAreas[blue]
                }
            }
        }
    }

    /// Cuts the space into boxes, always the one with the largest error.
    func boxes(maximum: Int) -> [Box] {
        var boxes = [Box(upper: SIMD3(repeating: self.side - 1))]
        var errors = [self.error(of: boxes[0])]
        while boxes.count < maximum {
            guard let worst = errors.indices.max(by: { errors[$0] < errors[$1] }), errors[worst] > 0 else { break }
            guard let (first, second) = self.cut(boxes[worst]) else {
                errors[worst] = 0
                continue
            }
            boxes[worst] = first
            errors[worst] = self.error(of: first)
            boxes.append(second)
            errors.append(self.error(of: second))
        }
        return boxes
    }

    /// The sums of red, green and blue over a box, and its number of pixels.
    func sum(of box: Box) -> SIMD4<Double> {
        self.total(box, in: self.sums, +, -)
    }

    /// The squared distance of all pixels of a box from their mean.
    private func error(of box: Box) -> Double {
        let sum = self.sum(of: box)
        guard sum.w > 1 else { return 0 }
        return max(0, self.total(box, in: self.squares, +, -) - Self.explained(sum))
    }

    /// What the mean explains of the sum of squares.
    private static func explained(_ sum: SIMD4<Double>) -> Double {
        (sum.x * sum.x + sum.y * sum.y + sum.z * sum.z) / sum.w
    }

    /// The two parts that leave the least error, or `nil` when all pixels lie in one cell.
    private func cut(_ box: Box) -> (Box, Box)? {
        let whole = self.sum(of: box)
        var best: (value: Double, channel: Int, place: Int)?
        for channel in 0..<3 {
            var part = box
            for place in box.lower[channel] + 1..<max(box.lower[channel] + 1, box.upper[channel]) {
                part.upper[channel] = place
                let first = self.sum(of: part)
                let second = whole - first
                guard first.w > 0, second.w > 0 else { continue }
                let value = Self.explained(first) + Self.explained(second)
                if value > best?.value ?? 0 { best = (value, channel, place) }
            }
        }
        guard let best else { return nil }
        var (first, second) = (box, box)
        first.upper[best.channel] = best.place
        second.lower[best.channel] = best.place
        return (first, second)
    }

    /// The sum over a box from its eight corners.
    private func total<Value>(
        _ box: Box,
        in table: [Value],
        _ add: (Value, Value) -> Value,
        _ subtract: (Value, Value) -> Value
    ) -> Value {
        let (low, high) = (box.lower, box.upper)
        var total = table[self.place(high.x, high.y, high.z)]
        total = subtract(total, table[self.place(low.x, high.y, high.z)])
        total = subtract(total, table[self.place(high.x, low.y, high.z)])
        total = subtract(total, table[self.place(high.x, high.y, low.z)])
        total = add(total, table[self.place(low.x, low.y, high.z)])
        total = add(total, table[self.place(low.x, high.y, low.z)])
        total = add(total, table[self.place(high.x, low.y, low.z)])
        return subtract(total, table[self.place(low.x, low.y, low.z)])
    }

    private func place(_ red: Int, _ green: Int, _ blue: Int) -> Int {
        (red * self.side + green) * self.side + blue
    }
}
