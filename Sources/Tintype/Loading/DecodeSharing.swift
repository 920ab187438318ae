import TintypeCoding
import TintypeConcurrency
import TintypeImage

/// Divides the images that are to be made of one body among as few decodes as are worth it.
///
/// The loads that got the bytes together have one. Each adds its plan when the header is read. The first load that comes
/// to decode divides the plans that are there by then: a smaller image is made of what the codec gives for a larger one,
/// if the resize of more pixels costs less than another decode. It costs no sharpness, because the resize reads more pixels
/// than it would alone. A load that comes later takes a decode that lasts, or whose result is still held.
final class DecodeSharing: Sendable {
    /// The decode that a plan shares.
    struct Share: Sendable {
        fileprivate let name: String
        /// The size of the codec's result.
        let layout: PixelLayout
        /// The plan that is carried out up to there.
        let plan: DecodePlan
        /// The bytes that the decode takes at most at once, with all that is made of it.
        let byteCount: Int
        /// The numbers of transforms after which other plans have the same image, in ascending order.
        let transformCounts: [Int]
    }

    private struct Step {
        let layout: PixelLayout
        let plan: DecodePlan
        var byteCount: Int
        var isMade = false
        weak var made: DecodePipeline.SharedStep?

        /// Whether the result is still to come or is still held.
        var isOfUse: Bool { !self.isMade || self.made != nil }
    }

    /// The plans that decode the same bytes in the same way.
    private struct Group {
        var plans: [DecodePlan] = []
        /// The indices of the plans that are not divided yet.
        var waiting: [Int] = []
        var steps: [Step] = []

        /// The index of the step with the fewest pixels that has enough of them.
        func step(covering layout: PixelLayout) -> Int? {
            self.steps.indices.filter { self.steps[$0].isOfUse && self.steps[$0].layout.covers(layout) }
                .min { self.steps[$0].layout.pixelCount < self.steps[$1].layout.pixelCount }
        }
    }

    /// The nanoseconds that a decode takes for a byte, whatever its scale, and for a pixel that it gives out, and a resize for
    /// a pixel that it reads; low figures for the decode, measured on a JPEG of 12 megapixels.
    private static let nanosecondsPerByte = 6
    private static let nanosecondsPerDecodedPixel = 2
    private static let nanosecondsPerReadPixel = 1

    private let byteCount: Int
    private let groups = Locked<[String: Group]>([:])

    /// - Parameter byteCount: The number of encoded bytes.
    init(byteCount: Int) {
        self.byteCount = byteCount
    }

    /// Adds a plan whose decode has `name`, and returns its index.
    func add(_ plan: DecodePlan, _ name: String) -> Int {
        self.groups.withLock { groups in
            let index = groups[name, default: Group()].plans.count
            groups[name, default: Group()].plans.append(plan)
            groups[name, default: Group()].waiting.append(index)
            return index
        }
    }

    /// The decode that a plan shares; `nil` if the plan is carried out alone.
    ///
    /// - Parameters:
    ///   - index: The index of the plan.
    ///   - name: The name of its decode.
    ///   - capacity: The memory of all decodes together. An image that could be streamed is decoded whole for several plans if
    ///     that takes at most a half of it.
    /// - Returns: The decode to share.
    func share(of index: Int, _ name: String, capacity: Int) -> Share? {
        self.groups.withLock { groups in
            guard var group = groups[name] else { return nil }
            defer { groups[name] = group }
            self.divide(&group, capacity)
            let plan = group.plans[index]
            guard let wanted = plan.step, let place = group.step(covering: wanted) else { return nil }
            let step = group.steps[place]
            // More than there is room for is done image by image.
            guard step.byteCount <= capacity else { return nil }
            let others = group.plans.indices.filter { $0 != index }.map { group.plans[$0] }
            let counts = Set(others.compactMap { plan.commonTransformCount(with: $0) }).sorted()
            return Share(
                name: name,
                layout: step.layout,
                plan: step.plan,
                byteCount: step.byteCount,
                transformCounts: counts
            )
        }
    }

    /// The result of a decode, if it is held.
    func made(_ share: Share) -> DecodePipeline.SharedStep? {
        self.groups.withLock { groups in
            // Each weak reference is read once: the `first` of a lazy sequence reads it again, when it may be gone.
            for step in groups[share.name]?.steps ?? [] where step.layout == share.layout {
                if let made = step.made { return made }
            }
            return nil
        }
    }

    /// Notes the result of a decode, which others may still come for.
    func note(_ made: DecodePipeline.SharedStep, of share: Share) {
        self.groups.withLock { groups in
            guard let index = groups[share.name]?.steps.firstIndex(where: { $0.layout == share.layout && !$0.isMade })
            else { return }
            groups[share.name]?.steps[index].isMade = true
            groups[share.name]?.steps[index].made = made
        }
    }

    /// Divides the plans that wait, the largest first.
    private func divide(_ group: inout Group, _ capacity: Int) {
        guard !group.waiting.isEmpty else { return }
        group.steps.removeAll { !$0.isOfUse }
        let plans = group.waiting.map { group.plans[$0] }
        group.waiting = []
        let wishes = Dictionary(grouping: plans.filter { $0.step != nil }, by: \.step)
            .compactMap { layout, plans in layout.map { (layout: $0, plans: plans) } }
            .sorted { $0.layout.pixelCount > $1.layout.pixelCount }
        for (number, wish) in wishes.enumerated() {
            guard !group.steps.contains(where: { self.isWorthSharing($0.layout, for: wish.layout, wish.plans.count) })
            else { continue }
            var plan = wish.plans[0]
            if plan.streams {
                let others = wishes[(number + 1)...]
                let isShared =
                    wish.plans.count > 1
                    || others.contains { self.isWorthSharing(wish.layout, for: $0.layout, $0.plans.count) }
                plan = plan.whole
                guard isShared, plan.byteCount <= capacity / 2 else { continue }
            }
            group.steps.append(Step(layout: wish.layout, plan: plan, byteCount: plan.byteCount))
        }
        for wish in wishes {
            guard let place = group.step(covering: wish.layout) else { continue }
            for plan in wish.plans {
                group.steps[place].byteCount = group.steps[place].byteCount.saturatingAdded(to: plan.partByteCount)
            }
        }
    }

    /// Whether `count` images for which `smaller` is enough are made sooner of `larger`.
    private func isWorthSharing(_ larger: PixelLayout, for smaller: PixelLayout, _ count: Int) -> Bool {
        guard larger.covers(smaller) else { return false }
        let decode =
            self.byteCount * Self.nanosecondsPerByte + smaller.pixelCount * Self.nanosecondsPerDecodedPixel
        return count * (larger.pixelCount - smaller.pixelCount) * Self.nanosecondsPerReadPixel <= decode
    }
}

extension PixelLayout {
    fileprivate var pixelCount: Int { self.width * self.height }

    /// Whether an image of this size has as many pixels on both sides as `other`.
    fileprivate func covers(_ other: PixelLayout) -> Bool {
        self.format == other.format && self.width >= other.width && self.height >= other.height
    }
}
