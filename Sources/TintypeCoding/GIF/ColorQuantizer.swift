/// Chooses the few colours that show a picture best.
///
/// Boxes of colour space are cut where that lowers the squared error most; then the colours move to the means of what
/// is nearest to them. Sources: X. Wu, "Color Quantization by Dynamic Programming and Principal Analysis",
/// ACM Transactions on Graphics 11 (1992), its greedy variant; S. Lloyd, "Least Squares Quantization in PCM",
/// IEEE Transactions on Information Theory 28 (1982).
struct ColorQuantizer {
    /// Colours are told apart by their upper bits at first.
    private static let bits: UInt32 = 5
    private static let side = 1 << 5
    private static let refinements = 4

    /// The sums of red, green, blue and the number of pixels, for each cell of colour space.
    private var sums = [SIMD4<Double>](repeating: .zero, count: side * side * side)
    /// The sums of the squares of all three.
    private var squares = [Double](repeating: 0, count: side * side * side)

    /// Begins without pixels.
    init() {}

    /// Counts the pixels of a picture; those that are zero are transparent and left out.
    mutating func count(_ pixels: [UInt32]) {
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
    func colors(maximum: Int) throws -> [UInt32] {
        let space = ColorMoments(sums: self.sums, squares: self.squares, side: Self.side)
        let boxes = space.boxes(maximum: maximum)
        let means = boxes.map { Self.pixel(space.sum(of: $0)) }
        try Task.checkCancellation()
        return try self.refine(means)
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
