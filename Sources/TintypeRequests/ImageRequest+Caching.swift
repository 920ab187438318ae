// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
public import TintypeCaching

extension ImageRequest {
    /// The use of the cache by a load.
    ///
    /// Loads that differ in it share no flight, except that a flight fills the tiers of all its loads. A cached response
    /// may answer all of them.
    public struct Caching: Sendable, Hashable {
        /// The tiers for the original: its bytes on disk, its full-size image in memory.
        ///
        /// Both by default. The loader makes a thumbnail from the full-size image if that is in memory. It never decodes
        /// the full size only to store it.
        public var originals: CacheUse
        /// The tiers for variants: images made of the original, such as a thumbnail.
        ///
        /// By default a load queries all tiers, and stores the variant in the loader's
        /// `LoaderActor.Configuration.variantTiers`. To store it on disk, the loader encodes it: as PNG if it has
        /// transparency, otherwise as JPEG of quality 90. ``variantEncoder`` and
        /// `LoaderActor.Configuration.variantEncoder` change that.
        public var variants: CacheUse
        /// When the loader asks the origin whether a cached response is current, or `nil` for the loader's policy.
        public var policy: CachePolicy?
        /// The lifetime of the cache entries that this load stores, or `nil` for no limit of their own.
        ///
        /// It begins when the bytes arrive or the image is made. Entries that are in the cache already keep their
        /// lifetimes.
        public var lifetime: Duration?
        /// The lifetime of the image in memory, if it ends before ``lifetime``; `nil` for no limit of its own.
        public var memoryLifetime: Duration?
        /// The values to store with the cache entries of this load, as `EntryMetadata.extra`.
        public var extra: [String: String]
        /// Changes the bytes of the original before they are stored on disk, or `nil` for the loader's serializer.
        public var originalSerializer: Named<OriginalSerializer>?
        /// Encodes a variant for the disk, or `nil` for the loader's encoder.
        ///
        /// Loads that differ only in it share the bytes.
        public var variantEncoder: Named<VariantEncoder>?

        /// Creates a use of the cache; by default under the loader's policy.
        ///
        /// ```swift
        /// request.caching = .init(originals: .disk, policy: .honorFreshness, lifetime: .seconds(3_600))
        /// ```
        public init(
            originals: CacheUse = .all,
            variants: CacheUse = .ofLoader,
            policy: CachePolicy? = nil,
            lifetime: Duration? = nil,
            memoryLifetime: Duration? = nil,
            extra: [String: String] = [:],
            originalSerializer: Named<OriginalSerializer>? = nil,
            variantEncoder: Named<VariantEncoder>? = nil
        ) {
            self.originals = originals
            self.variants = variants
            self.policy = policy
            self.lifetime = lifetime
            self.memoryLifetime = memoryLifetime
            self.extra = extra
            self.originalSerializer = originalSerializer
            self.variantEncoder = variantEncoder
        }
    }
}

extension ImageRequest {
    /// Returns metadata with the lifetime and the extra values of the request; the earlier end counts.
    package func noting(_ metadata: EntryMetadata, at now: Date, isInMemory: Bool = false) -> EntryMetadata {
        let caching = self.caching
        let memoryLifetime = isInMemory ? caching.memoryLifetime : nil
        guard caching.lifetime != nil || memoryLifetime != nil || !caching.extra.isEmpty else { return metadata }
        var metadata = metadata
        func end(after lifetime: Duration?) {
            guard let end = lifetime.map({ now.addingTimeInterval($0 / .seconds(1)) }) else { return }
            metadata.expiry = metadata.expiry.map { min($0, end) } ?? end
        }
        end(after: caching.lifetime)
        end(after: memoryLifetime)
        metadata.extra.merge(caching.extra) { _, new in new }
        return metadata
    }
}
