import Glibc

/// For each target sample of one axis: the source samples that it is made of, and their weights.
struct FilterWeights {
    /// One target sample.
    struct Span {
        let first: Int
        let weights: [Float]

        /// The last source sample that is used.
        var last: Int { self.first + self.weights.count - 1 }
    }

    let spans: [Span]

    /// The weights for an axis of `sourceCount` samples, of which the part from `start` with
    /// `length` becomes `targetCount` samples.
    ///
    /// When the picture shrinks the kernel is widened by as much, so that every sample counts.
    /// At the borders the weights of samples that do not exist are given to those that do.
    init(filter: Resize.Filter, sourceCount: Int, start: Double, length: Double, targetCount: Int) {
        let step = length / Double(targetCount)
        let width = max(1, step)
        self.spans = (0..<targetCount).map { index in
            let center = start + (Double(index) + 0.5) * step
            guard filter != .nearest else {
                return Span(first: min(max(0, Int(center.rounded(.down))), sourceCount - 1), weights: [1])
            }
            let support = Self.support(of: filter) * width
            let first = max(0, Int((center - support).rounded(.down)))
            let last = max(first, min(sourceCount - 1, Int((center + support).rounded(.up)) - 1))
            let raw = (first...last).map { Self.kernel(filter, (Double($0) + 0.5 - center) / width) }
            let total = raw.reduce(0, +)
            return Span(first: min(first, sourceCount - 1), weights: raw.map { Float($0 / total) })
        }
    }

    private static func support(of filter: Resize.Filter) -> Double {
        switch filter {
        case .lanczos3: 3
        case .bicubic: 2
        case .bilinear, .nearest: 1
        }
    }

    /// Sources: Duchon, "Lanczos Filtering in One and Two Dimensions", 1979; Keys, "Cubic
    /// Convolution Interpolation for Digital Image Processing", 1981, with a = -1/2.
    private static func kernel(_ filter: Resize.Filter, _ position: Double) -> Double {
        let x = abs(position)
        switch filter {
        case .lanczos3: return x < 3 ? self.sinc(x) * self.sinc(x / 3) : 0
        case .bicubic:
            if x < 1 { return (1.5 * x - 2.5) * x * x + 1 }
            return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0
        case .bilinear: return max(0, 1 - x)
        case .nearest: return 1
        }
    }

    private static func sinc(_ x: Double) -> Double {
        x == 0 ? 1 : sin(.pi * x) / (.pi * x)
    }
}
