package import TintypeImage

/// How a pipeline is carried out on an image of one size: what comes first, as one step that may be a part of the
/// decode, and what follows it.
package struct TransformPlan: Sendable {
    /// The crops, the resize and the turns at the start.
    package let geometry: TransformGeometry
    /// What is done after them.
    package let rest: TransformSequence

    /// Plans transforms of an upright image.
    ///
    /// - Throws: `TransformError` where the parameters of the first ones make no sense.
    package init(_ pipeline: TransformPipeline, of size: PixelSize) throws(TransformError) {
        try self.init(pipeline, after: TransformGeometry(of: size))
    }

    /// Plans transforms of what `geometry` makes of an image.
    ///
    /// - Throws: `TransformError` where the parameters of the first ones make no sense.
    package init(_ pipeline: TransformPipeline, after geometry: TransformGeometry) throws(TransformError) {
        var geometry = geometry
        var transformers = pipeline.flattened[...]
        try transformers.addGeometry(to: &geometry)
        self.geometry = geometry
        self.rest = TransformSequence(transformers)
    }

    /// Carries out all of it.
    ///
    /// - Parameters:
    ///   - image: The image.
    ///   - check: Judges the size of each result of the rest before it is made.
    /// - Returns: The result.
    /// - Throws: What the transforms throw, and what `check` throws.
    package func image(of image: Image, _ check: (PixelSize) throws -> Void = { _ in }) throws -> Image {
        try self.rest.image(of: self.geometry.transform(image), check)
    }

    /// What it makes of an image that lies like `source`, and the bytes that all of it takes at most at once.
    ///
    /// - Throws: What the transforms throw of such an image.
    package func footprint(for source: PixelLayout) throws -> TransformFootprint {
        var total = TransformFootprint(result: source)
        let isWhole = self.geometry.isIdentity
        if !isWhole { try total.add(.geometry(self.geometry), isFirst: true) }
        try self.rest.add(to: &total, isFirst: isWhole)
        return total
    }
}

/// Transformers that are carried out in their order.
///
/// Those that can be one step are found when their turn comes, because only then the size of the image is known: a
/// border that is trimmed, say, has the width that the pixels say.
package struct TransformSequence: Sendable {
    private let transformers: [any ImageTransformer]

    /// Does nothing.
    package init() {
        self.transformers = []
    }

    fileprivate init(_ transformers: ArraySlice<any ImageTransformer>) {
        self.transformers = Array(transformers)
    }

    /// Whether there is nothing to do.
    package var isEmpty: Bool { self.transformers.isEmpty }

    /// The number of transformers.
    package var count: Int { self.transformers.count }

    /// The keys of the first transformers.
    package func keys(ofFirst count: Int) -> [String] { self.transformers.prefix(count).map(\.key) }

    /// The transformers with these indices.
    package func part(_ indices: Range<Int>) -> TransformSequence { TransformSequence(self.transformers[indices]) }

    /// The number of transformers that both sequences begin with and that end a step in both.
    ///
    /// Transformers that are carried out as one step give other samples than the same ones in two steps.
    package func commonCount(with other: TransformSequence) -> Int {
        let equal = zip(self.transformers, other.transformers).prefix { $0.key == $1.key }.count
        return (0...equal).last { self.endsStep($0) && other.endsStep($0) } ?? 0
    }

    private func endsStep(_ count: Int) -> Bool {
        guard count > 0, count < self.count else { return true }
        let (last, next) = (self.transformers[count - 1], self.transformers[count])
        return !(last is any PointOperation && next is any PointOperation)
            && !(last is any GeometricTransformer && next is any GeometricTransformer)
    }

    /// Carries out all of them.
    ///
    /// - Parameters:
    ///   - image: The image; it is let go when the first of them has made another of it.
    ///   - check: Judges the size of each result before it is made: what a border leaves was not known before.
    /// - Returns: The result.
    /// - Throws: What they throw, and what `check` throws.
    package func image(of image: consuming Image, _ check: (PixelSize) throws -> Void = { _ in }) throws -> Image {
        var image = image
        var left = self.transformers[...]
        while let step = try left.takeStep(size: PixelSize(width: image.width, height: image.height)) {
            try Task.checkCancellation()
            let result = try step.footprint(for: image.pixels.layout).result
            try check(PixelSize(width: result.width, height: result.height))
            // One of a program's own may have left the turn to others.
            image = try step.transform(image).upright()
            // A program's own transformer may have said something else.
            try check(PixelSize(width: image.width, height: image.height))
        }
        return image
    }

    /// Adds what they make of a result, and take for it.
    ///
    /// - Parameters:
    ///   - total: What was made before; its working bytes become the most that anything takes at once beside the source
    ///     and the result.
    ///   - isFirst: Whether the first of them is given the source itself, which counts by itself.
    ///   - check: Judges the size of each result, and how many transformers make it together.
    /// - Throws: What they throw of such an image, and what `check` throws.
    package func add(
        to total: inout TransformFootprint,
        isFirst: Bool,
        _ check: (_ result: PixelSize, _ transformerCount: Int) throws -> Void = { _, _ in }
    ) throws {
        var isFirst = isFirst
        var left = self.transformers[...]
        var count = left.count
        while let step = try left.takeStep(size: PixelSize(width: total.result.width, height: total.result.height)) {
            try total.add(step, isFirst: isFirst)
            try check(PixelSize(width: total.result.width, height: total.result.height), count - left.count)
            count = left.count
            isFirst = false
        }
    }
}

extension TransformFootprint {
    /// Adds a step, whose source is what was the result so far.
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

/// As many transformers as can be carried out as one.
private enum TransformStep {
    case geometry(TransformGeometry)
    /// Operations on single pixels, in one pass over the memory.
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
    /// Takes those at the start that can be a part of `geometry`.
    fileprivate mutating func addGeometry(to geometry: inout TransformGeometry) throws(TransformError) {
        while let first = self.first as? any GeometricTransformer, try first.add(to: &geometry) { self.removeFirst() }
    }

    /// Takes the next step for an image of a size: as many transformers as can be one; `nil` where none is left.
    fileprivate mutating func takeStep(size: PixelSize) throws(TransformError) -> TransformStep? {
        guard let first = self.first else { return nil }
        if first is any GeometricTransformer {
            var geometry = TransformGeometry(of: size)
            let count = self.count
            try self.addGeometry(to: &geometry)
            if self.count < count { return .geometry(geometry) }
        }
        let operations = self.prefix { $0 is any PointOperation }.compactMap { $0 as? any PointOperation }
        guard operations.isEmpty else {
            self.removeFirst(operations.count)
            return .points(try PointPass(operations))
        }
        return .single(self.removeFirst())
    }
}

extension TransformPipeline {
    /// The transformers, those of pipelines within as well.
    fileprivate var flattened: [any ImageTransformer] {
        self.transforms.flatMap { transform in
            (transform.transformer as? TransformPipeline)?.flattened ?? [transform.transformer]
        }
    }
}
