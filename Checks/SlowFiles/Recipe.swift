// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeTestSupport

/// A number that a generator reads, and the search changes.
struct Gene {
    enum Scale {
        /// All values are alike near: sizes of a few, switches.
        case linear
        /// A scale by ratio, for pixels, bytes and counts.
        case logarithmic
    }

    let name: String
    let range: ClosedRange<Int>
    let scale: Scale

    /// The value for a recipe without this gene: 0, or the lowest allowed value.
    var rest: Int { self.range.contains(0) ? 0 : self.range.lowerBound }

    static func linear(_ name: String, _ range: ClosedRange<Int>) -> Gene {
        Gene(name: name, range: range, scale: .linear)
    }

    static func logarithmic(_ name: String, _ range: ClosedRange<Int>) -> Gene {
        Gene(name: name, range: range, scale: .logarithmic)
    }

    func anyValue(_ random: inout SeededGenerator) -> Int {
        switch self.scale {
        case .linear: return Int.random(in: self.range, using: &random)
        case .logarithmic:
            let low = Double(self.range.lowerBound + 1)
            let high = Double(self.range.upperBound + 1)
            let value = low * pow(high / low, Double.random(in: 0...1, using: &random))
            return min(max(Int(value) - 1, self.range.lowerBound), self.range.upperBound)
        }
    }

    /// A value that is near to `value`, or at one of the ends.
    func value(near value: Int, _ random: inout SeededGenerator) -> Int {
        let step: Int
        switch Int.random(in: 0..<8, using: &random) {
        case 0: return self.anyValue(&random)
        case 1: return Bool.random(using: &random) ? self.range.lowerBound : self.range.upperBound
        case 2: step = Bool.random(using: &random) ? 1 : -1
        default:
            switch self.scale {
            case .linear: step = Int.random(in: -4...4, using: &random)
            case .logarithmic:
                let factor = pow(4, Double.random(in: -1...1, using: &random))
                step = Int(Double(value + 1) * factor) - 1 - value
            }
        }
        return min(max(value + step, self.range.lowerBound), self.range.upperBound)
    }
}

/// One file to be written: a value for each gene of its generator.
struct Recipe {
    let genes: [Gene]
    private(set) var values: [String: Int]

    /// Creates a recipe from values, with default values for all other genes.
    init(_ genes: [Gene], _ values: [String: Int] = [:]) {
        self.genes = genes
        self.values = Dictionary(uniqueKeysWithValues: genes.map { ($0.name, $0.rest) })
        for (name, value) in values {
            precondition(self.values[name] != nil, "no generator reads \(name)")
            self.values[name] = value
        }
    }

    subscript(name: String) -> Int {
        guard let value = self.values[name] else { preconditionFailure("\(name) is no gene of this generator") }
        return value
    }

    /// Makes a value smaller than a limit.
    mutating func reduce(_ name: String, to limit: Int) {
        self.values[name] = min(self[name], max(1, limit))
    }

    /// Any recipe at all.
    static func any(_ genes: [Gene], _ random: inout SeededGenerator) -> Recipe {
        var recipe = Recipe(genes)
        for gene in genes { recipe.values[gene.name] = gene.anyValue(&random) }
        return recipe
    }

    /// Returns this recipe with a few changed values, some of which may come from `other`.
    func mutated(with other: Recipe, _ random: inout SeededGenerator) -> Recipe {
        var child = self
        if Int.random(in: 0..<4, using: &random) == 0 {
            for gene in self.genes where Int.random(in: 0..<3, using: &random) == 0 {
                child.values[gene.name] = other[gene.name]
            }
        }
        var isChanged = false
        while !isChanged {
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let gene = self.genes[Int.random(in: 0..<self.genes.count, using: &random)]
                let value = gene.value(near: child[gene.name], &random)
                if value != child[gene.name] { isChanged = true }
                child.values[gene.name] = value
            }
        }
        return child
    }

    /// The values that differ from their defaults, by name.
    var description: String {
        self.genes.filter { self[$0.name] != $0.rest }.map { "\($0.name)=\(self[$0.name])" }
            .joined(separator: " ")
    }

    /// A width and a height of about `pixels`, `aspect` powers of two from a square.
    func size(pixels: String, aspect: String, limit: Int) -> (width: Int, height: Int) {
        let pixels = Double(self[pixels])
        let width = (pixels * pow(2, Double(self[aspect]))).squareRoot()
        let clamped = min(max(Int(width), 1), limit)
        return (clamped, min(max(Int(pixels) / clamped, 1), limit))
    }

    /// The numbers that the rest of the recipe leaves open.
    var random: SeededGenerator { SeededGenerator(seed: UInt64(self["seed"])) }
}
