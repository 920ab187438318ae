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
