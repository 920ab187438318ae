// SPDX-License-Identifier: Apache-2.0

import TintypeCaching

@testable import TintypeFlights

extension FlightTable.Product {
    /// The bytes of a source, by default of an origin with the same name.
    static func bytes(
        _ source: String,
        _ policy: CachePolicy = .neverRevalidate,
        origin: String? = nil,
        usesHTTPKeys: Bool = false
    ) -> Self {
        Self(
            kind: .bytes,
            key: CacheKey(source),
            source: CacheKey(source),
            origin: CacheKey(origin ?? source),
            policy: policy,
            usesHTTPKeys: usesHTTPKeys
        )
    }

    /// An image, by default of the source that the first letter names.
    static func image(
        _ name: String,
        _ policy: CachePolicy = .neverRevalidate,
        of source: String? = nil,
        origin: String? = nil,
        usesHTTPKeys: Bool = false
    ) -> Self {
        let source = source ?? String(name.prefix(1))
        return Self(
            kind: .image,
            key: CacheKey(name),
            source: CacheKey(source),
            origin: CacheKey(origin ?? source),
            policy: policy,
            usesHTTPKeys: usesHTTPKeys
        )
    }
}
