// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
package import TintypeCaching

/// The newest body of each source, and the images that were made of it.
///
/// An image that was made of an older body is obsolete. A pure value.
package struct BodyOrder: Sendable {
    package typealias ID = FlightTable.ID
    package typealias Product = FlightTable.Product

    /// How a body came, and its name on disk, whether or not it is stored there.
    package struct Arrival: Hashable, Sendable {
        package let name: CacheKey
        /// Whether the origin sent or confirmed the body; otherwise it was read from the disk.
        package let isFetched: Bool

        package static func fetched(as name: CacheKey) -> Arrival { Arrival(name: name, isFetched: true) }

        package static func read(as name: CacheKey) -> Arrival { Arrival(name: name, isFetched: false) }
    }

    /// The changes that a new body of a source makes.
    package struct Succession: Hashable, Sendable {
        /// The images that were made of other bodies, and the tiers that may have them.
        package var obsolete: [CacheKey: CacheTiers] = [:]
        /// The flights that must know the body: flights of its source, and of other sources that may select it.
        package var flights: Set<ID> = []
        /// The flights that no new waiter may join, because they make their products of older bodies.
        var closed: Set<ID> = []
    }

    private struct Flight {
        let product: Product
        /// Whether the origin has sent a body since the flight began to read: its own may be older.
        var isOutdated = false
    }

    private struct Source {
        let origin: CacheKey
        /// The flights whose tasks have not ended.
        var flights: Set<ID> = []
        /// The newest body that is known, and the time at which the origin sent or confirmed it.
        var body: UInt64?
        var date: Date?
        /// The name of that body on disk; `nil` if it may be any of the origin's names.
        var name: CacheKey?
        /// The body of another source that has replaced the one of this source, whose own newest body is unknown, and the
        /// flights from before that have not ended: they may still store what they made of older bodies.
        var replacement: (body: UInt64, olderFlights: Set<ID>)?
        /// The images in the cache that were made of that body; some may have been evicted since.
        var images: Set<CacheKey> = []
        /// The flight that used the source last.
        var lastUse: ID = 0

        /// The share of the images in the limit.
        var weight: Int { self.images.reduce(0) { $0 + BodyOrder.weight(of: $1) } }
    }

    private var flights: [ID: Flight] = [:]
    private var sources: [CacheKey: Source] = [:]
    /// The sources of each origin, except the one with the origin's own name.
    private var sourcesOfOrigin: [CacheKey: Set<CacheKey>] = [:]
    /// The images that flights are about to remove from the cache, because they have brought other bodies.
    private var clearings: [ID: (origin: CacheKey, images: [CacheKey: CacheTiers])] = [:]
    private var weight = 0
    private let limit: Int

    /// Creates an order that remembers up to `limit` images; an image with a long key counts as several.
    ///
    /// Beyond the limit the order forgets the sources that were not loaded for the longest time. A new body of such a source
    /// does not make its images obsolete: they stay in the cache until they are evicted or stale.
    init(limit: Int) {
        self.limit = limit
    }

    /// Whether there is no flight; sources whose images are remembered do not count.
    var isEmpty: Bool {
        self.flights.isEmpty && self.clearings.isEmpty && self.sources.values.allSatisfy { $0.flights.isEmpty }
            && self.sourcesOfOrigin.allSatisfy { origin, sources in
                !sources.isEmpty && sources.allSatisfy { self.sources[$0]?.origin == origin }
            }
    }

    /// The number of sources that are loaded, or whose images are remembered.
    var sourceCount: Int { self.sources.count }

    /// Returns the newest known body of a source.
    ///
    /// If another source has replaced it, that is the other source's body as long as flights from before may store images of
    /// older ones.
    func newestBody(of source: CacheKey) -> UInt64? {
        self.sources[source].flatMap { $0.body ?? $0.replacement?.body }
    }

    /// Returns the flights of all sources that may select the same response as others of `origin`.
    package func flights(of origin: CacheKey) -> Set<ID> {
        self.sources(of: origin).reduce(into: []) { $0.formUnion(self.sources[$1]?.flights ?? []) }
    }

    // MARK: Flights

    mutating func begin(_ id: ID, _ product: Product) {
        self.flights[id] = Flight(product: product)
        var source = self.takeSource(of: product)
        source.flights.insert(id)
        source.lastUse = id
        self.sources[product.source] = source
    }

    /// Notes that a flight for bytes looks at the disk once more, because it may ask the origin now.
    mutating func restart(_ id: ID) {
        if self.flights[id]?.product.kind == .bytes { self.flights[id]?.isOutdated = false }
    }

    mutating func end(_ id: ID) {
        self.clearings[id] = nil
        guard let key = self.flights.removeValue(forKey: id)?.product.source else { return }
        self.sources[key]?.flights.remove(id)
        self.sources[key]?.replacement?.olderFlights.remove(id)
        if self.sources[key]?.replacement?.olderFlights.isEmpty ?? false { self.sources[key]?.replacement = nil }
        guard let source = self.sources[key], source.flights.isEmpty else { return }
        // A set keeps its memory when its last element is removed.
        if source.images.isEmpty { self.forget(key) } else { self.sources[key]?.flights = [] }
    }

    // MARK: Bodies and images

    /// Records a body that a flight has brought, and finds what it makes obsolete.
    ///
    /// A body that was read while the origin sent another one is older, and changes nothing. If it was read at another time,
    /// another process has stored it, provided that its `date` is later: the disk may have refused the newest body.
    ///
    /// Images that another flight of the origin is about to remove are obsolete for this flight as well, until the other one
    /// has ended: callers of this flight must not find them either.
    ///
    /// `date` is the time at which the origin sent or confirmed the body. The flights `waiting` wait for flight `id`, and the
    /// flights `awaiting` are going to have the body or a newer one, directly or through others. Make the changes before the
    /// flight ends.
    mutating func accept(
        _ body: UInt64,
        from id: ID,
        _ arrival: Arrival,
        date: Date?,
        waiting: Set<ID> = [],
        awaiting: Set<ID> = []
    ) -> Succession {
        guard let product = self.flights[id]?.product else { return Succession() }
        var succession = Succession()
        if self.isNews(date, from: id, arrival) {
            self.succeed(body, from: id, product, arrival, date: date, awaiting: awaiting, &succession)
            // A reload that begins now asks by itself.
            let reloads = waiting.filter {
                self.flights[$0]?.product.source == product.source && self.flights[$0]?.product.policy == .reload
            }
            succession.closed.formUnion(reloads)
        }
        for clearing in self.clearings.values where clearing.origin == product.origin {
            succession.obsolete.merge(clearing.images) { $0.union($1) }
        }
        if !succession.obsolete.isEmpty { self.clearings[id] = (product.origin, succession.obsolete) }
        return succession
    }

    /// Records an image in the cache that flight `id` has made of `body`.
    ///
    /// - Returns: Whether it may stay there: no newer body has come.
    package mutating func keep(_ image: CacheKey, madeOf body: UInt64, by id: ID) -> Bool {
        guard let flight = self.flights[id], let newest = self.sources[flight.product.source].map(\.body),
            newest == body || newest == nil && !flight.isOutdated,
            var source = self.sources.removeValue(forKey: flight.product.source)
        else { return false }
        source.lastUse = id
        (source.body, source.replacement) = (body, nil)
        self.put(image, in: &source, flight.product.source)
        return true
    }

    /// Records a preview in memory that flight `id` has made of a part of a body: the next other body makes it obsolete.
    ///
    /// - Returns: Whether it may stay there: no body was fetched since the flight began to read.
    package mutating func keep(preview: CacheKey, by id: ID) -> Bool {
        guard let flight = self.flights[id], !flight.isOutdated,
            var source = self.sources.removeValue(forKey: flight.product.source)
        else { return false }
        self.put(preview, in: &source, flight.product.source)
        return true
    }

    /// Records a product in the cache that was found without a flight, made of a body that is admitted.
    ///
    /// Counts as a use of the source after flight `id`.
    mutating func keep(_ product: Product, madeOf body: UInt64, after id: ID) {
        if self.sources[product.source]?.images.contains(product.key) ?? false {
            self.sources[product.source]?.lastUse = id
            return
        }
        var source = self.takeSource(of: product)
        source.lastUse = id
        (source.body, source.replacement) = (body, nil)
        self.put(product.key, in: &source, product.source)
    }

    /// Returns the tiers that may have an image of `source`: under the source's own key the disk has its bytes.
    package static func tiers(of image: CacheKey, source: CacheKey) -> CacheTiers {
        image == source ? .memory : .all
    }

    // MARK: Steps

    /// Takes a source out of the order, or creates it, for the caller to change it and to put it back.
    private mutating func takeSource(of product: Product) -> Source {
        var source =
            self.sources.removeValue(forKey: product.source) ?? Source(origin: product.origin, name: product.source)
        // It may select a response that was stored for another source.
        if product.usesHTTPKeys, source.name == product.source { source.name = nil }
        if source.origin != product.source { self.sourcesOfOrigin[source.origin, default: []].insert(product.source) }
        return source
    }

    /// Puts a source back with one image more.
    private mutating func put(_ image: CacheKey, in source: inout Source, _ key: CacheKey) {
        let isNew = source.images.insert(image).inserted
        self.sources[key] = source
        guard isNew else { return }
        self.weight += Self.weight(of: image)
        if self.weight > self.limit { self.forgetOldest() }
    }

    private func isNews(_ date: Date?, from id: ID, _ arrival: Arrival) -> Bool {
        guard let flight = self.flights[id], let source = self.sources[flight.product.source] else { return false }
        let isLater = source.date.map { known in date.map { $0 > known } ?? false } ?? true
        return arrival.isFetched || !flight.isOutdated && isLater
    }

    private mutating func succeed(
        _ body: UInt64,
        from id: ID,
        _ product: Product,
        _ arrival: Arrival,
        date: Date?,
        awaiting: Set<ID>,
        _ succession: inout Succession
    ) {
        let (key, name) = (product.source, arrival.name)
        let isSame = self.sources[key]?.body == body
        let sources = isSame ? [key] : [key] + self.sources(selecting: name, without: body, besides: product)
        if arrival.isFetched { for key in sources { self.outdateFlights(of: key, except: id) } }
        if !isSame { for key in sources { self.replaceBody(of: key, by: id, body, awaiting: awaiting, &succession) } }
        self.sources[key]?.replacement = nil
        self.sources[key]?.body = body
        self.sources[key]?.date = date
        self.sources[key]?.name = name
    }

    private func sources(of origin: CacheKey) -> Set<CacheKey> {
        self.sourcesOfOrigin[origin]?.union([origin]) ?? [origin]
    }

    /// Returns the other sources of an origin whose newest body may be the one that had `name` before.
    ///
    /// Responses that vary have names of their own. Each replaces the response that did not vary, and is replaced by it.
    /// Without HTTP's freshness each source has its own name, and its images still answer loads that use it.
    private func sources(selecting name: CacheKey, without body: UInt64, besides product: Product) -> [CacheKey] {
        let (origin, usesHTTP) = (product.origin, product.usesHTTPKeys)
        guard usesHTTP || name == origin else { return [] }
        return self.sources(of: origin).filter { key in
            guard key != product.source, let source = self.sources[key], source.body != body else { return false }
            let isKnown = source.name != nil && source.name != name
            return !isKnown || usesHTTP && (name == origin || source.name == origin || source.name == key)
        }
    }

    /// Notes that a body was fetched after the other flights of a source have begun to read.
    private mutating func outdateFlights(of source: CacheKey, except id: ID) {
        for other in self.sources[source]?.flights ?? [] where other != id { self.flights[other]?.isOutdated = true }
    }

    /// Makes the images of a source obsolete, because flight `id` has brought a newer body.
    private mutating func replaceBody(
        of key: CacheKey,
        by id: ID,
        _ body: UInt64,
        awaiting: Set<ID>,
        _ succession: inout Succession
    ) {
        guard let source = self.sources[key] else { return }
        var obsolete = source.images
        // An image that is being made of an older body may be in the cache already.
        for other in source.flights where other != id && !awaiting.contains(other) {
            succession.closed.insert(other)
            if let product = self.flights[other]?.product, product.isOfBody { obsolete.insert(product.key) }
        }
        for image in obsolete { succession.obsolete[image] = Self.tiers(of: image, source: key) }
        succession.flights.formUnion(source.flights)
        self.weight -= source.weight
        guard !source.flights.isEmpty else { return self.forget(key) }
        self.sources[key]?.images = []
        self.sources[key]?.replacement = (body, source.flights)
        self.sources[key]?.body = nil
        self.sources[key]?.date = nil
        self.sources[key]?.name = nil
    }

    private mutating func forget(_ key: CacheKey) {
        guard let origin = self.sources.removeValue(forKey: key)?.origin else { return }
        self.sourcesOfOrigin[origin]?.remove(key)
        if self.sourcesOfOrigin[origin]?.isEmpty ?? false { self.sourcesOfOrigin[origin] = nil }
    }

    /// Counts a key once for each KiB that it begins: clients may choose URLs as long as they like.
    private static func weight(of key: CacheKey) -> Int {
        1 + key.text.utf8.count >> 10
    }

    /// Forgets half of the images, so that this is seldom done.
    private mutating func forgetOldest() {
        for (key, source) in self.sources.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
            guard self.weight > self.limit / 2 else { return }
            self.weight -= source.weight
            // Loads under way still need their order.
            if source.flights.isEmpty { self.forget(key) } else { self.sources[key]?.images = [] }
        }
    }
}
