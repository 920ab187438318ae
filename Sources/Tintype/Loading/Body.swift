// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeConcurrency
import TintypeFlights
import TintypeHTTP
import TintypeRendering
import TintypeRequests

/// The encoded bytes of a source on their way through a load.
struct Body: Sendable {
    /// The encoded bytes; empty if the origin has confirmed an image whose bytes are not there.
    let data: Data
    let source: LoadSource
    /// The name of the byte tier that had the bytes.
    var tier: String?
    let metadata: EntryMetadata
    /// The header fields that HTTP hands on with the bytes.
    var headers: HeaderFields = [:]
    /// The reason why the bytes are not on disk, for loads that wait for the store.
    var storeError: LoadError?
    var revalidation: Revalidation?
    /// Whether HTTP permits to store what is made of the bytes.
    var mayBeKept = true
    /// How the bytes came, if they may be the newest of their source.
    var arrival: BodyOrder.Arrival?
    /// The response of the origin, if the bytes are one.
    var fetched: FetchedResponse?
    /// The demand for which the bytes were stored, or were not; `nil` if nothing may be stored.
    var keptFor: Demand?
    /// Counts the bytes as long as the loader has them.
    var claim: ByteClaim?
    /// The durations of the load, and of the call that got the bytes.
    var call: CallRecord?
    /// The load's part in the decodes that it shares with other loads of the bytes; `nil` if it shares none.
    var sharing: DecodeSharing.Part?
    /// The flight that has brought the bytes.
    var flightID: FlightTable.ID?
}

/// The image that a load makes of the bytes for which it waits.
struct DecodeWish: Sendable {
    let request: ImageRequest
    /// The bodies whose image the load has already: it decodes nothing if one of them comes.
    let bodies: Set<UInt64>
}

extension Body: FlightOutput {
    var effect: FlightEffect {
        guard let body = self.metadata.bodyDigest, let arrival else { return .none }
        return .brought(body, arrival, self.metadata.responseDate, self.fetched)
    }

    func divided(among wishes: [FlightTable.ID: DecodeWish]) -> [FlightTable.ID: Body] {
        guard !self.data.isEmpty else { return [:] }
        let body = self.metadata.bodyDigest
        let requests = wishes.filter { wish in body.map { !wish.value.bodies.contains($0) } ?? true }
            .mapValues(\.request.renderingRequest)
        return DecodeSharing.parts(of: self.data, for: requests).mapValues { part in
            var copy = self
            copy.sharing = part
            return copy
        }
    }
}

/// Bytes that one flight has got, and of which another one makes an image.
///
/// The first flight that takes them has them, with their claim, for itself.
final class BytesOffer: Sendable {
    private let bytes = Locked<Body?>(nil)

    func make(_ bytes: Body) {
        self.bytes.withLock { $0 = bytes }
    }

    func take() -> Body? {
        self.bytes.withLock { $0.take() }
    }

    /// Ends the part in shared decodes, because the flight serves another image, which may wait for memory.
    func endSharing() {
        self.bytes.withLock { $0?.sharing }?.end()
    }
}
