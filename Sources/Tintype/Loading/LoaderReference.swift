// SPDX-License-Identifier: Apache-2.0

import TintypeCaching
import TintypeFlights

/// The way of a load to its loader, without keeping the loader alive: flights without callers end with it.
struct LoaderReference: Sendable {
    private weak let loader: LoaderActor?
    let services: LoadServices

    init(_ loader: LoaderActor) {
        self.loader = loader
        self.services = loader.services
    }

    /// Whether the loader has ended.
    var isGone: Bool { self.loader == nil }

    /// Returns the product of a plan, from a flight that equal plans share.
    ///
    /// - Parameters:
    ///   - plan: The product and the work that makes it.
    ///   - interest: The reason for the wait.
    ///   - observer: Receives the updates of the flight.
    ///   - wish: The image that the waiter makes of the bytes.
    ///   - didJoin: Is called if the flight is under way.
    /// - Returns: The product.
    /// - Throws: The error of the work; `CancellationError` if the task is cancelled.
    func result<Output>(
        of plan: FlightPlan<Output>,
        interest: FlightTable.Interest,
        observer: FlightState.Observer? = nil,
        wish: DecodeWish? = nil,
        didJoin: () -> Void = {}
    ) async throws -> Output {
        let start = ContinuousClock.now
        try Task.checkCancellation()
        guard let waiter = try await self.loader?.join(plan, interest, observer: observer, wish: wish) else {
            throw CancellationError()
        }
        if let flight = waiter.joinedFlight {
            didJoin()
            if plan.request != nil { self.services.activities.tellNoted(of: flight) }
        }
        do {
            var output = try await waiter.result()
            output.call = CallRecord(
                load: output.call?.load,
                total: start.duration(to: .now),
                isJoined: waiter.joinedFlight != nil
            )
            return output
        } catch is CancellationError {
            await self.loader?.leave(waiter.id)
            throw CancellationError()
        }
    }

    /// Returns when a flight may ask the origin.
    func waitForTurn(of flight: FlightState) async throws {
        try await self.loader?.requestTurn(of: flight.id)?.result()
    }

    /// Stores an image of `source` in the background.
    func store(
        _ key: CacheKey,
        of source: CacheKey,
        _ work: @escaping @Sendable (FlightState) async -> StoredEntry
    ) async {
        await self.loader?.store(key, of: source, work)
    }
}
