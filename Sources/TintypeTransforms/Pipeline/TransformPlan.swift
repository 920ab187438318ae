// SPDX-License-Identifier: Apache-2.0

package import TintypeImage

/// The plan of a pipeline for images of one size: a first step that the decoder can do, and the rest.
package struct TransformPlan: Sendable {
    /// The crops, the resize and the turns at the start.
    package let geometry: TransformGeometry
    /// The transformers that run after them.
    package let rest: TransformSequence

    /// Plans the transforms of an upright image.
    ///
    /// - Throws: `TransformError` if a parameter of the first transforms is invalid.
    package init(_ pipeline: TransformPipeline, of size: PixelSize) throws(TransformError) {
        try self.init(pipeline, after: TransformGeometry(of: size))
    }

    /// Plans the transforms that follow `geometry`.
    ///
    /// - Throws: `TransformError` if a parameter of the first transforms is invalid.
    package init(_ pipeline: TransformPipeline, after geometry: TransformGeometry) throws(TransformError) {
        var geometry = geometry
        var transformers = pipeline.flattened[...]
        _ = try transformers.addGeometry(to: &geometry)
        self.geometry = geometry
        self.rest = TransformSequence(transformers)
    }

    /// Runs the whole plan.
    ///
    /// - Parameters:
    ///   - image: The upright source image.
    ///   - check: Called with the size of each result of the rest, before the result is made.
    /// - Returns: The result.
    /// - Throws: The errors of the transforms and of `check`.
    package func image(of image: Image, _ check: (PixelSize) throws -> Void = { _ in }) throws -> Image {
        try self.rest.image(of: self.geometry.transform(image), check)
    }

    /// Returns the layout of the result for an image of the layout `source`, and the most bytes in use at once.
    ///
    /// - Throws: The errors of the transforms for such an image.
    package func footprint(for source: PixelLayout) throws -> TransformFootprint {
        var total = TransformFootprint(result: source)
        let isWhole = self.geometry.isIdentity
        if !isWhole { try total.add(.geometry(self.geometry), isFirst: true) }
        try self.rest.add(to: &total, isFirst: isWhole)
        return total
    }
}

/// Transformers that run in order.
///
/// Steps are formed one at a time during the run, because only then the size of the image is known: the pixels decide
/// how much `Trim` cuts off, for example.
package struct TransformSequence: Sendable {
    private let transformers: [any ImageTransformer]

    /// Creates an empty sequence.
    package init() {
        self.transformers = []
    }

    fileprivate init(_ transformers: ArraySlice<any ImageTransformer>) {
        self.transformers = Array(transformers)
    }

    /// Whether there are no transformers.
    package var isEmpty: Bool { self.transformers.isEmpty }

    /// The number of transformers.
    package var count: Int { self.transformers.count }

    /// Returns the keys of the first `count` transformers.
    package func keys(ofFirst count: Int) -> [String] { self.transformers.prefix(count).map(\.key) }

    /// Returns the transformers at these indices.
    package func part(_ indices: Range<Int>) -> TransformSequence { TransformSequence(self.transformers[indices]) }

    /// Returns the length of the longest common prefix that ends a step in both sequences.
    ///
    /// Two transformers in one step give other samples than the same transformers in two steps.
    package func commonCount(with other: TransformSequence) -> Int {
        let equal = zip(self.transformers, other.transformers).prefix { $0.key == $1.key }.count
        return (0...equal).last { self.endsStep($0) && other.endsStep($0) } ?? 0
    }

    private func endsStep(_ count: Int) -> Bool {
        guard count > 0, count < self.count else { return true }
        let (last, next) = (self.transformers[count - 1], self.transformers[count])
        // The transforms of a sized transformer may be of either kind.
        func arePoints(_ transformer: any ImageTransformer) -> Bool {
            transformer is any PointOperation || transformer is any SizedTransformer
        }
        func areGeometry(_ transformer: any ImageTransformer) -> Bool {
            transformer is any GeometricTransformer || transformer is any SizedTransformer
        }
        return !(arePoints(last) && arePoints(next)) && !(areGeometry(last) && areGeometry(next))
    }

    /// Runs all transformers.
    ///
    /// - Parameters:
    ///   - image: The source image; it is released as soon as the first step has made another image from it.
    ///   - check: Called with the size of each result before and after it is made, because a footprint can be inexact.
    /// - Returns: The result.
    /// - Throws: The errors of the transformers and of `check`.
    package func image(of image: consuming Image, _ check: (PixelSize) throws -> Void = { _ in }) throws -> Image {
        var image = image
        var left = self.transformers[...]
        while let (step, _) = try left.takeStep(size: PixelSize(width: image.width, height: image.height)) {
            try Task.checkCancellation()
            let result = try step.footprint(for: image.pixels.layout).result
            try check(PixelSize(width: result.width, height: result.height))
            // A program's own transformer may return an image that is not upright.
            image = try step.transform(image).upright()
            // The result of a program's own transformer may differ from its footprint.
            try check(PixelSize(width: image.width, height: image.height))
        }
        return image
    }

    /// Adds the memory of the steps to a footprint.
    ///
    /// - Parameters:
    ///   - total: The footprint so far. Its working bytes become the most in use at once in addition to source and
    ///     result.
    ///   - isFirst: Whether the first step reads the source itself, whose bytes are counted elsewhere.
    ///   - check: Called with the size of each result and the number of transformers in its step.
    /// - Throws: The errors of the transformers for such an image, and of `check`.
    package func add(
        to total: inout TransformFootprint,
        isFirst: Bool,
        _ check: (_ result: PixelSize, _ transformerCount: Int) throws -> Void = { _, _ in }
    ) throws {
        var isFirst = isFirst
        var left = self.transformers[...]
        while let (step, count) = try left.takeStep(
            size: PixelSize(width: total.result.width, height: total.result.height)
        ) {
            try total.add(step, isFirst: isFirst)
            try check(PixelSize(width: total.result.width, height: total.result.height), count)
            isFirst = false
        }
    }
}

extension TransformFootprint {
    /// Adds a step whose source is the result so far.
    fileprivate mutating func add(_ step: TransformStep, isFirst: Bool) throws {
        let footprint = try step.footprint(for: self.result)
        let source = isFirst ? 0 : self.result.byteCount
        let before = self.workingByteCount.saturating(adding: isFirst ? 0 : self.result.byteCount)
        let now = source.saturating(adding: footprint.workingByteCount).saturating(adding: footprint.result.byteCount)
        self.workingByteCount = max(before, now) - footprint.result.byteCount
        self.result = footprint.result
    }
}

extension Int {
    fileprivate func saturating(adding other: Int) -> Int {
        let (sum, overflows) = self.addingReportingOverflow(other)
        return overflows ? .max : sum
    }
}

/// The largest run of transformers that can run as one.
private enum TransformStep {
    case geometry(TransformGeometry)
    /// Operations on single pixels, in one pass over memory.
    case points(PointPass)
    case single(any ImageTransformer)

    func footprint(for source: PixelLayout) throws -> TransformFootprint {
        switch self {
        case .geometry(let geometry): try geometry.footprint(for: source)
        case .points(let pass): try pass.footprint(for: source)
        case .single(let transformer): try transformer.footprint(for: source)
        }
    }

    func transform(_ image: Image) throws -> Image {
        switch self {
        case .geometry(let geometry): try geometry.transform(image)
        case .points(let pass): try pass.transform(image)
        case .single(let transformer): try transformer.transform(image)
        }
    }
}

extension ArraySlice<any ImageTransformer> {
    /// Replaces sized transformers at the start by their transforms for an image of `size`.
    private mutating func expand(for size: PixelSize) throws(TransformError) {
        while let first = self.first as? any SizedTransformer {
            let transforms = try first.transforms(for: size).flattened
            self.replaceSubrange(self.startIndex...self.startIndex, with: transforms)
        }
    }

    /// Removes the transformers at the start that can be a part of `geometry`, and adds them to it.
    ///
    /// - Returns: The number of transformers added.
    fileprivate mutating func addGeometry(to geometry: inout TransformGeometry) throws(TransformError) -> Int {
        var count = 0
        while true {
            try self.expand(for: geometry.turnedSize)
            guard let first = self.first as? any GeometricTransformer, try first.add(to: &geometry) else {
                return count
            }
            self.removeFirst()
            count += 1
        }
    }

    /// Removes and returns the next step for an image of `size`, and the number of its transformers; returns `nil` if no
    /// transformer is left.
    fileprivate mutating func takeStep(
        size: PixelSize
    ) throws(TransformError) -> (step: TransformStep, transformerCount: Int)? {
        try self.expand(for: size)
        guard let first = self.first else { return nil }
        if first is any GeometricTransformer {
            var geometry = TransformGeometry(of: size)
            let count = try self.addGeometry(to: &geometry)
            if count > 0 { return (.geometry(geometry), count) }
        }
        var operations: [any PointOperation] = []
        while let operation = self.first as? any PointOperation {
            operations.append(operation)
            self.removeFirst()
            // The operation keeps the size.
            try self.expand(for: size)
        }
        guard operations.isEmpty else { return (.points(try PointPass(operations)), operations.count) }
        return (.single(self.removeFirst()), 1)
    }
}

extension TransformPipeline {
    /// The transformers, including the ones in nested pipelines.
    fileprivate var flattened: [any ImageTransformer] {
        self.transforms.flatMap { transform in
            (transform.transformer as? TransformPipeline)?.flattened ?? [transform.transformer]
        }
    }
}
