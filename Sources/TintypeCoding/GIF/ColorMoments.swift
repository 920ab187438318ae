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
