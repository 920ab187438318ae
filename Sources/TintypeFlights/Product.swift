// SPDX-License-Identifier: Apache-2.0

package import TintypeCaching

extension FlightTable {
    /// The product of a flight.
    ///
    /// Loads that may be answered from the same places share it.
    package struct Product: Hashable, Sendable {
        package enum Kind: Hashable, Sendable {
            case bytes
            case image
            /// An image in an encoding, as a server sends it.
            case encoded
            /// A part of a decode that several images of the same bytes share.
            case decode
            /// An entry on disk, for which no caller waits. Each has a number of its own.
            case store(ID)
        }

        package private(set) var kind: Kind
        package private(set) var key: CacheKey
        /// The key of the bytes of which it is made.
        package let source: CacheKey
        /// The resource that is requested for the bytes, shared by sources that may select the same response.
        package let origin: CacheKey
        /// The tiers that may answer: for the bytes, and for the image.
        private var queries: [CacheTiers]
        /// The other rules of requests that must be equal for their loads to share a flight.
        private let terms: Terms?
        let policy: CachePolicy
        let usesHTTPKeys: Bool
        private let mayServeStale: Bool
        /// The body of which the load has an image already.
        package var held: UInt64?
        /// The body that a caller gives, instead of any that could be found.
        package var given: UInt64?

        package init(
            kind: Kind,
            key: CacheKey,
            source: CacheKey,
            origin: CacheKey,
            queries: [CacheTiers] = [],
            terms: Terms? = nil,
            policy: CachePolicy = .neverRevalidate,
            usesHTTPKeys: Bool = false,
            mayServeStale: Bool = true
        ) {
            self.kind = kind
            self.key = key
            self.source = source
            self.origin = origin
            self.queries = queries
            self.terms = terms
            self.policy = policy
            self.usesHTTPKeys = usesHTTPKeys
            self.mayServeStale = mayServeStale
        }

        /// Whether the product is made of a body and stored in the cache.
        var isOfBody: Bool { self.kind == .image || self.kind == .encoded }

        /// Hashes the key and the kind: products that differ in anything else seldom have the same key.
        package func hash(into hasher: inout Hasher) {
            hasher.combine(self.key)
            hasher.combine(self.kind)
        }

        /// Returns the product in an encoding, which `tiers` may answer as well.
        package func encoded(as key: CacheKey, querying tiers: CacheTiers) -> Self {
            var product = self
            (product.kind, product.key) = (.encoded, key)
            product.queries.append(tiers)
            return product
        }

        /// The rules of a request, which the table compares without knowing their type.
        ///
        /// The rules are boxed, because most requests leave all of them to the loader.
        package indirect enum Terms: Equatable, Sendable {
            case rules(any Equatable & Sendable)

            package static func == (left: Terms, right: Terms) -> Bool {
                switch (left, right) {
                case (.rules(let left), .rules(let right)): Self.areEqual(left, right)
                }
            }

            private static func areEqual<Rules: Equatable>(_ left: Rules, _ right: any Equatable) -> Bool {
                left == right as? Rules
            }
        }
    }
}
