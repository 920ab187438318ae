// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import TintypeCoding
import TintypeConcurrency
package import TintypeImage

/// Divides the images that loads make of one body among decodes: as few as are worth it.
///
/// The loads that wait for the body when it arrives have one, if they decode it in the same way. The first load that comes to
/// its decode plans the images of all of them in one visit to a lane. The division therefore depends on no order, and no
/// load waits for another one: a plan takes microseconds when the header is read, which happens once.
///
/// A smaller image is made of what the codec gives for a larger one, if the resize of more pixels costs less than another
/// decode. It costs no sharpness, because the resize reads more pixels than it would alone.
package final class DecodeSharing: Sendable {
    /// Names a load.
    package typealias ID = UInt64

    /// The part of one load in the sharing.
    ///
    /// It ends when the load has taken the shared result or needs none, at the latest with the last reference. So a load that is
    /// cancelled or fails keeps no memory. Until then the sharing keeps the result of a decode for the load. A load must end its
    /// part before it waits for memory of its own.
    package final class Part: Sendable {
        package let sharing: DecodeSharing
        private let id: ID

        fileprivate init(_ sharing: DecodeSharing, _ id: ID) {
            self.sharing = sharing
            self.id = id
        }

        deinit { self.end() }

        /// Plans the load's image, and finds the decode that it shares.
        ///
        /// - Returns: The plan; `nil` if the part has ended.
        /// - Throws: `CodingError`, `TransformError`, `CancellationError`.
        package func plan(by decoding: DecodePipeline) async throws -> Plan? {
            try await self.sharing.planAll(by: decoding)
            return try self.sharing.plan(of: self.id)?.get()
        }

        package func end() { self.sharing.end(self.id) }
    }

    /// The plan of an image, and its part in a shared decode.
    package struct Plan: Sendable {
        package let plan: DecodePlan
        /// The shared decode; `nil` if the plan is carried out alone.
        package let share: Share?
    }

    /// The decode that a plan shares.
    package struct Share: Sendable {
        /// The size of the codec's result.
        package let layout: PixelLayout
        /// The plan that is carried out up to there.
        package let plan: DecodePlan
        /// The most bytes that the decode takes at once, with all images that are made of it.
        package let byteCount: Int
        /// The numbers of transforms after which other plans have the same image, in ascending order.
        package let transformCounts: [Int]
    }

    package typealias Plans = [ID: Result<Plan, any Error>]

    private struct Decode {
        /// The loads that have not taken the result yet.
        var loads: Set<ID> = []
        /// The result, until the last load has taken it.
        var result: DecodePipeline.SharedStep?
    }

    private struct State {
        /// The requests of the loads whose parts have not ended.
        var requests: [ID: RenderingRequest]
        /// The plans of the images; `nil` until they are made.
        var plans: Plans?
        var decodes: [PixelLayout: Decode] = [:]
    }

    private let data: Data
    private let state: Locked<State>
    private let planning = SharedTask<Void>()

    private init(_ data: Data, _ requests: [ID: RenderingRequest]) {
        self.data = data
        self.state = Locked(State(requests: requests))
    }

    /// Returns the parts of loads that make images of the same bytes.
    ///
    /// A load whose decode no other load needs has no part.
    package static func parts(of data: Data, for requests: [ID: RenderingRequest]) -> [ID: Part] {
        var parts: [ID: Part] = [:]
        for group in Dictionary(grouping: requests, by: { $0.value.decodingName }).values
        where group.count > 1 {
            let sharing = DecodeSharing(data, group.reduce(into: [:]) { $0[$1.key] = $1.value })
            for (id, _) in group { parts[id] = Part(sharing, id) }
        }
        return parts
    }

    // MARK: Planning

    /// Plans the images of all loads.
    ///
    /// Callers share one task. If all of them leave, it ends, and the next caller plans.
    private func planAll(by decoding: DecodePipeline) async throws {
        try await self.planning.value {
            guard let requests = self.requestsToPlan else { return }
            let plans = try await decoding.plans(of: self.data, for: requests)
            // A cancelled task may have ended a plan with an error that is not the load's.
            try Task.checkCancellation()
            self.take(plans)
        }
    }

    // No function that takes the lock is inlined into an asynchronous one. Otherwise optimised code of Swift 6.3 reads the
    // thread's identity before a suspension, and gives the lock back with it afterwards, on another thread.

    /// The requests of the loads; `nil` if their images are planned.
    private var requestsToPlan: [ID: RenderingRequest]? {
        @inline(never) get { self.state.withLock { $0.plans == nil ? $0.requests : nil } }
    }

    @inline(never)
    private func take(_ plans: Plans) {
        self.state.withLock { state in
            let plans = plans.filter { state.requests[$0.key] != nil }
            state.plans = plans
            for (id, plan) in plans {
                guard let share = try? plan.get().share else { continue }
                state.decodes[share.layout, default: Decode()].loads.insert(id)
            }
        }
    }

    @inline(never)
    private func plan(of id: ID) -> Result<Plan, any Error>? {
        self.state.withLock { $0.plans?[id] }
    }

    // MARK: Decoding

    /// The result of a decode, if it was made.
    @inline(never)
    package func result(of share: Share) -> DecodePipeline.SharedStep? {
        self.state.withLock { $0.decodes[share.layout]?.result }
    }

    /// Keeps the result of a decode for the loads that have not taken it yet.
    @inline(never)
    package func keep(_ result: DecodePipeline.SharedStep, of share: Share) {
        self.state.withLock { state in
            if state.decodes[share.layout] != nil { state.decodes[share.layout]?.result = result }
        }
    }

    @inline(never)
    private func end(_ id: ID) {
        // Free the result outside the lock, because the memory gate may admit others then.
        let result = self.state.withLock { state -> DecodePipeline.SharedStep? in
            state.requests[id] = nil
            guard let plan = state.plans?.removeValue(forKey: id), let layout = try? plan.get().share?.layout else {
                return nil
            }
            state.decodes[layout]?.loads.remove(id)
            guard state.decodes[layout]?.loads.isEmpty ?? false else { return nil }
            return state.decodes.removeValue(forKey: layout)?.result
        }
        withExtendedLifetime(result) {}
    }
}

/// The division of plans.
extension DecodeSharing {
    /// The nanoseconds of a decode for each byte at any scale, and for each pixel of its result, and of a resize for
    /// each pixel that it reads.
    ///
    /// Low figures for the decode, measured on a photograph of 12 megapixels.
    private static let nanosecondsPerByte = 6
    private static let nanosecondsPerDecodedPixel = 2
    private static let nanosecondsPerReadPixel = 1

    /// The loads whose plans need the same result of the codec.
    private struct Wish {
        let layout: PixelLayout
        /// In ascending order.
        let loads: [ID]
    }

    private struct Step {
        let layout: PixelLayout
        let plan: DecodePlan
        var loads: [ID]
    }

    /// Divides plans among decodes, the largest first.
    ///
    /// - Parameters:
    ///   - plans: The plans, all of which decode the same bytes in the same way.
    ///   - byteCount: The number of encoded bytes.
    ///   - capacity: The memory of all decodes together. An image that could be streamed is decoded whole for several plans if
    ///     that takes at most a half of it. A decode for which there is no room with all that is made of it is not shared.
    /// - Returns: The decodes that the plans share; a plan without one is carried out alone.
    static func divide(_ plans: [ID: DecodePlan], byteCount: Int, capacity: Int) -> [ID: Share] {
        var steps: [Step] = []
        for wish in self.wishes(plans) {
            let large = steps.indices.filter {
                self.isWorthSharing(steps[$0].layout, for: wish, byteCount: byteCount)
            }
            if let index = large.min(by: { steps[$0].layout.pixelCount < steps[$1].layout.pixelCount }) {
                steps[index].loads += wish.loads
            } else if let plan = plans[wish.loads[0]] {
                guard !plan.streams || plan.whole.byteCount <= capacity / 2 else { continue }
                steps.append(Step(layout: wish.layout, plan: plan.streams ? plan.whole : plan, loads: wish.loads))
            }
        }
        var shares: [ID: Share] = [:]
        for step in steps where step.loads.count > 1 {
            let plans = step.loads.compactMap { id in plans[id].map { (id: id, plan: $0) } }
            let byteCount = plans.reduce(step.plan.byteCount) {
                $0.saturatingAdded(to: $1.plan.partByteCount(of: step.layout))
            }
            guard byteCount <= capacity else { continue }
            for alike in Dictionary(grouping: plans, by: \.plan.base).values {
                for (id, plan) in alike {
                    let others = alike.filter { $0.id != id }
                    shares[id] = Share(
                        layout: step.layout,
                        plan: step.plan,
                        byteCount: byteCount,
                        transformCounts: Set(others.map { plan.commonTransformCount(with: $0.plan) }).sorted()
                    )
                }
            }
        }
        return shares
    }

    /// The wishes for different results of the codec, the largest first.
    private static func wishes(_ plans: [ID: DecodePlan]) -> [Wish] {
        var loads: [PixelLayout: [ID]] = [:]
        for id in plans.keys.sorted() {
            if let layout = plans[id]?.step { loads[layout, default: []].append(id) }
        }
        return loads.map { Wish(layout: $0, loads: $1) }
            .sorted { ($0.layout.pixelCount, $1.loads[0]) > ($1.layout.pixelCount, $0.loads[0]) }
    }

    /// Whether the images of a wish are sooner made of `larger`.
    private static func isWorthSharing(_ larger: PixelLayout, for wish: Wish, byteCount: Int) -> Bool {
        let smaller = wish.layout
        guard larger.covers(smaller) else { return false }
        let decode = byteCount * Self.nanosecondsPerByte + smaller.pixelCount * Self.nanosecondsPerDecodedPixel
        let surplus = larger.pixelCount - smaller.pixelCount
        return wish.loads.count * surplus * Self.nanosecondsPerReadPixel <= decode
    }
}

extension PixelLayout {
    /// Whether an image of this size has as many pixels on both sides as `other`.
    fileprivate func covers(_ other: PixelLayout) -> Bool {
        self.format == other.format && self.width >= other.width && self.height >= other.height
    }
}
