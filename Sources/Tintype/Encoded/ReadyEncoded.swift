// SPDX-License-Identifier: Apache-2.0

import TintypeCaching
import TintypeConcurrency
import TintypeFlights
import TintypeHTTP
import TintypeRequests

/// An encoded image that the disk had ready, read on its caller's thread without a flight.
///
/// The loader serves it only if the disk has the bytes of which it was made, and if no newer ones are known. In the
/// same step it stores the image in memory, unless its origin has changed since the read began. Until the origin
/// changes, other images of the same bytes need no such step.
struct ReadyEncoded: Sendable {
    /// The loader's decision about an image that was read without a flight.
    enum Admission: Sendable {
        /// A newer body is known, or the loader was shut down.
        case refused
        /// It may answer its call, which began before something changed.
        case served
        /// It may answer, and stay in the cache.
        case kept
    }

    private let request: ImageRequest
    private let encoding: OutputEncoding
    private let product: LoadTable.Product
    private let isKeptInMemory: Bool
    private let entry: EncodedEntry
    private let tier: String?
    private let body: UInt64
    private let mark: KeyChanges.Mark

    /// Reads the image; returns `nil` if that takes waiting, or if only a flight can tell whether it is current.
    init?(
        _ request: ImageRequest,
        as encoding: OutputEncoding,
        _ caching: CacheUse,
        services: LoadServices,
        changes: KeyChanges
    ) {
        let rules = services.rules
        let plan = rules.plan(for: request)
        guard plan.policy != .reload, caching.query.contains(.disk) else { return nil }
        // Before the read: any change that is not counted since was complete by then.
        let mark = changes.mark(of: rules.resourceKey(of: request))
        guard !services.hasGivenImage(for: request), let body = services.sources.readyBody(of: request)
        else { return nil }
        let product = LoadTable.Product(encoding, of: request, caching, rules: rules, mayServeStale: true)
        guard let found = services.cache.readyEntry(for: product.key), found.metadata.bodyDigest == body,
            !plan.obeysHTTP
                || rules.decision(found.metadata.response?.freshness, of: request, under: plan.policy) == .serve
        else { return nil }
        self.request = request
        self.encoding = encoding
        self.product = product
        self.isKeptInMemory = caching.store.contains(.memory)
        self.entry = EncodedEntry(key: product.key, data: found.data, metadata: found.metadata)
        self.tier = found.tier
        self.body = body
        self.mark = mark
    }

    /// Returns the image as a response, in memory if its call wants that; `nil` if `loader` knows of a newer body.
    func response(from loader: LoaderActor) async -> EncodedResponse? {
        let services = loader.services
        let admission = await loader.admit(self.product, madeOf: self.body, since: self.mark) { self.keep(in: loader) }
        guard admission != .refused else { return nil }
        if admission == .kept { loader.admittedBodies.insert(self.body, of: self.product.source, since: self.mark) }
        services.activities.send(.hit(.disk, tier: self.tier), .encoded, self.request, of: nil)
        if admission == .kept, self.isKeptInMemory {
            services.activities.send(.stored(.memory), .encoded, self.request, of: nil)
            // The program may have stored an image since the read began.
            if services.hasGivenImage(for: self.request) {
                _ = try? await services.cache.remove(self.entry.key, from: .memory)
            }
        }
        return EncodedResponse(self.entry, source: .disk)
    }

    /// Returns the image as a response, and does not store it in memory; `nil` if only the loader can tell whether a
    /// newer body is known.
    func admittedResponse(from loader: LoaderActor) -> EncodedResponse? {
        guard loader.admittedBodies.contains(self.body, of: self.product.source, loader.changes) else { return nil }
        loader.services.activities.send(.hit(.disk, tier: self.tier), .encoded, self.request, of: nil)
        return EncodedResponse(self.entry, source: .disk)
    }

    private func keep(in loader: LoaderActor) {
        guard self.isKeptInMemory else { return }
        let (changes, mark) = (loader.changes, self.mark)
        loader.services.keepEncoded(self.entry, of: self.request, as: self.encoding) {
            !changes.isUnchanged(since: mark)
        }
    }
}

/// The bodies that the loader has admitted as the newest of their sources, until their origins change.
final class AdmittedBodies: Sendable {
    private struct Admission: Sendable {
        let body: UInt64
        let mark: KeyChanges.Mark
    }

    private static let limit = 8_192
    private let admissions = Locked<[CacheKey: Admission]>([:])

    /// Records a body that was the newest one of `source` at `mark` or later.
    func insert(_ body: UInt64, of source: CacheKey, since mark: KeyChanges.Mark) {
        self.admissions.withLock { admissions in
            if admissions.count >= Self.limit { admissions.removeAll(keepingCapacity: true) }
            admissions[source] = Admission(body: body, mark: mark)
        }
    }

    /// Returns whether `body` is known to be the newest one of `source`.
    func contains(_ body: UInt64, of source: CacheKey, _ changes: KeyChanges) -> Bool {
        guard let admission = self.admissions.withLock({ $0[source] }), admission.body == body else { return false }
        return changes.isUnchanged(since: admission.mark)
    }
}
