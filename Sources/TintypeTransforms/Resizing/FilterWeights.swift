// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeImage

/// The source samples and weights for each target sample of one axis; the weights of a target sample add up to 1.
final class FilterWeights {
    /// The first source sample of each target sample.
    let firsts: UnsafeMutablePointer<Int32>
    /// The number of source samples for each target sample.
    let counts: UnsafeMutablePointer<Int32>
    /// The weights of all target samples, in order.
    let weights: UnsafeMutablePointer<Float>
    /// The number of target samples.
    let count: Int

    private let memory: AlignedMemory

    /// Computes the weights for an axis of samples, whose part from `start` with `length` becomes `targetCount`
    /// samples.
    ///
    /// If the image shrinks, the kernel is widened by the same factor, so that every sample counts. Samples outside
    /// `bounds` are not read and have no weight.
    ///
    /// - Throws: `ImageError.Code.outOfMemory`.
    init(
        filter: Resize.Filter,
        bounds: Range<Int>,
        start: Double,
        length: Double,
        targetCount: Int
    ) throws(ImageError) {
        let sourceCount = bounds.count
        let step = length / Double(targetCount)
        let size = Self.byteCount(filter: filter, sourceCount: sourceCount, length: length, targetCount: targetCount)
        self.memory = try AlignedMemory(byteCount: Int(min(size, Double(Int.max / 2))))
        self.count = targetCount
        self.firsts = self.memory.start.assumingMemoryBound(to: Int32.self)
        self.counts = self.firsts + targetCount
        self.weights = UnsafeMutableRawPointer(self.counts + targetCount).assumingMemoryBound(to: Float.self)
        let kernel = FilterKernel(filter, step: step)
        var next = self.weights
        for index in 0..<targetCount {
            let center = start - Double(bounds.lowerBound) + (Double(index) + 0.5) * step
            let (first, weights) = kernel.weights(around: center, sourceCount: sourceCount, into: next)
            self.firsts[index] = Int32(bounds.lowerBound + first)
            self.counts[index] = Int32(weights)
            next += weights
        }
    }

    /// The source samples that count for any target sample.
    var used: Range<Int> {
        let first = (0..<self.count).map { Int(self.firsts[$0]) }.min() ?? 0
        return first..<(0..<self.count).map { self.last($0) + 1 }.reduce(first, max)
    }

    /// Shifts all source indices by a number of samples that are left out at the start.
    func leaveOut(_ sampleCount: Int) {
        for index in 0..<self.count { self.firsts[index] -= Int32(sampleCount) }
    }

    /// Returns the last source sample for a target sample.
    func last(_ index: Int) -> Int {
        Int(self.firsts[index]) + Int(self.counts[index]) - 1
    }

    /// Returns the bytes of the weights of an axis, without their copies as whole numbers.
    static func byteCount(filter: Resize.Filter, sourceCount: Int, length: Double, targetCount: Int) -> Double {
        let kernel = FilterKernel(filter, step: length / Double(max(1, targetCount)))
        let weights = kernel.mostWeights(sourceCount: sourceCount)
        return Double(targetCount) * Double(8 + 4 * weights)
    }
}

/// The weights as whole numbers.
final class WholeWeights {
    /// The first source sample, or the first pair, of each target sample.
    let firsts: UnsafeMutablePointer<Int32>
    /// The number of source samples, or of pairs, for each target sample.
    let counts: UnsafeMutablePointer<Int32>
    /// The weights of all target samples, in order.
    let weights: UnsafeMutablePointer<Int16>
    /// The weights of a target sample add up to 1 shifted left by this number.
    let unitBits: Int

    private let memory: AlignedMemory

    /// Rounds `exact`.
    ///
    /// - Parameters:
    ///   - exact: The weights.
    ///   - inPairs: Whether source samples are read in pairs that begin at even indices.
    /// - Throws: `ImageError.Code.outOfMemory`.
    init(_ exact: FilterWeights, inPairs: Bool) throws(ImageError) {
        let total = (0..<exact.count).reduce(0) { $0 + Int(exact.counts[$1]) + (inPairs ? 2 : 0) }
        self.memory = try AlignedMemory(byteCount: exact.count * 8 + total * 2)
        self.firsts = self.memory.start.assumingMemoryBound(to: Int32.self)
        self.counts = self.firsts + exact.count
        self.weights = UnsafeMutableRawPointer(self.counts + exact.count).assumingMemoryBound(to: Int16.self)
        self.unitBits = Self.unitBits(exact)
        let unit = Float(1 << self.unitBits)
        var (from, to) = (exact.weights, self.weights)
        for index in 0..<exact.count {
            let first = exact.firsts[index]
            let count = Int(exact.counts[index])
            let lead = inPairs ? Int(first & 1) : 0
            let places = inPairs ? (lead + count + 1) / 2 * 2 : count
            to.initialize(repeating: 0, count: places)
            // Carry the rounding error from one weight to the next, so that the sum is exact.
            var sum: Float = 0
            var rounded = 0
            for place in 0..<count {
                sum += from[place]
                let next = place + 1 == count ? 1 << self.unitBits : Int((sum * unit).rounded())
                to[lead + place] = Int16(next - rounded)
                rounded = next
            }
            self.firsts[index] = inPairs ? first / 2 : first
            self.counts[index] = Int32(inPairs ? places / 2 : places)
            from += count
            to += places
        }
    }

    /// Returns the largest shift at which weights fit into 16 bits and weighted sums into 32.
    private static func unitBits(_ exact: FilterWeights) -> Int {
        var from = exact.weights
        for index in 0..<exact.count {
            var sum: Float = 0
            for _ in 0..<exact.counts[index] {
                guard abs(from[0]) < 0.99 else { return 14 }
                sum += abs(from[0])
                from += 1
            }
            guard sum < 1.9 else { return 14 }
        }
        return 15
    }
}

/// The kernel of a filter, widened for the distance between two target samples.
struct FilterKernel {
    private let filter: Resize.Filter
    /// The factor by which the kernel is widened, at least 1.
    private let width: Double
    /// Whether target samples are at least one source sample apart.
    private let shrinks: Bool
    /// The reach to each side, in source samples.
    private let reach: Double

    /// Creates the kernel for target samples that are `step` source samples apart.
    init(_ filter: Resize.Filter, step: Double) {
        self.filter = filter
        self.width = max(1, step)
        self.shrinks = step >= 1
        let support: Double =
            switch filter {
            case .lanczos3: 3
            case .lanczos2, .bicubic, .mitchell: 2
            case .bilinear: 1
            case .box, .nearest: 0.5
            }
        self.reach = support * self.width
    }

    /// Returns the most source samples for a target sample.
    func mostWeights(sourceCount: Int) -> Int {
        guard self.filter != .nearest else { return 1 }
        return Int(min(Double(sourceCount), (2 * self.reach).rounded(.up) + 1))
    }

    /// Writes the weights of the target sample whose middle is at `center` in the source.
    ///
    /// - Returns: The first source sample, and the number of weights.
    func weights(around center: Double, sourceCount: Int, into weights: UnsafeMutablePointer<Float>) -> (Int, Int) {
        guard self.filter != .nearest else {
            weights[0] = 1
            return (min(max(0, Int(center.rounded(.down))), sourceCount - 1), 1)
        }
        // There are no samples beyond an edge; the weights within it are scaled up.
        var first = min(max(0, Int((center - self.reach).rounded(.down))), sourceCount - 1)
        var last = min(max(first, Int((center + self.reach).rounded(.up)) - 1), sourceCount - 1)
        // Leave out zero weights at the ends, so that a part at its own scale is copied. Do not do so when enlarging:
        // the first samples of the target samples would no longer be in ascending order.
        while self.shrinks, first < last, self.weight(of: first, center) == 0 { first += 1 }
        while self.shrinks, last > first, self.weight(of: last, center) == 0 { last -= 1 }
        var total = 0.0
        for index in first...last {
            let weight = self.weight(of: index, center)
            weights[index - first] = Float(weight)
            total += weight
        }
        let scale = Float(1 / total)
        for place in 0...last - first { weights[place] *= scale }
        return (first, last - first + 1)
    }

    private func weight(of index: Int, _ center: Double) -> Double {
        guard self.filter != .box else {
            // The covered share of the sample.
            let (left, right) = (center - self.reach, center + self.reach)
            return max(0, min(Double(index + 1), right) - max(Double(index), left))
        }
        return self.value(at: abs(Double(index) + 0.5 - center) / self.width)
    }

    /// Returns the filter's value at a distance of `x`.
    ///
    /// Sources: Duchon, "Lanczos Filtering in One and Two Dimensions", 1979; Keys, "Cubic Convolution Interpolation for
    /// Digital Image Processing", 1981, with a = -1/2; Mitchell and Netravali, "Reconstruction Filters in Computer
    /// Graphics", 1988, with B = C = 1/3.
    private func value(at x: Double) -> Double {
        switch self.filter {
        case .lanczos3: return Self.lanczos3(x)
        case .lanczos2: return Self.lanczos2(x)
        case .bicubic:
            if x < 1 { return (1.5 * x - 2.5) * x * x + 1 }
            return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0
        case .mitchell:
            if x < 1 { return (7 * x - 12) * x * x / 6 + 8.0 / 9 }
            return x < 2 ? ((-7.0 / 18 * x + 2) * x - 10.0 / 3) * x + 16.0 / 9 : 0
        case .bilinear: return max(0, 1 - x)
        case .box, .nearest: return x < 0.5 ? 1 : 0
        }
    }

    private static func lanczos3(_ x: Double) -> Double {
        guard x < 3 else { return 0 }
        guard x > 1e-9 else { return 1 }
        // At whole numbers the sine is 0 but computes to a tiny value.
        guard x != 1, x != 2 else { return 0 }
        // Compute the sine of the triple angle from the sine of the angle.
        let part = sin(.pi * x / 3)
        return 3 * part * part * (3 - 4 * part * part) / (.pi * .pi * x * x)
    }

    private static func lanczos2(_ x: Double) -> Double {
        guard x < 2 else { return 0 }
        guard x > 1e-9 else { return 1 }
        guard x != 1 else { return 0 }
        return 2 * sin(.pi * x) * sin(.pi * x / 2) / (.pi * .pi * x * x)
    }
}
