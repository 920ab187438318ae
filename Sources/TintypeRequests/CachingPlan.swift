// SPDX-License-Identifier: Apache-2.0

package import TintypeCaching
import TintypeTransforms

/// The use of the caches by one load: the result of its request, its options, its URL and its loader.
///
/// A request's policy overrides the loader's. The loader never copies a file to disk, and revalidates it by its time
/// and size. It never revalidates a `data:` URL. Options remove tiers, and never add one.
@usableFromInline
package struct CachingPlan: Sendable, Hashable {
    /// The rule for when the load asks the origin.
    package let policy: CachePolicy
    /// Whether the keys of original bytes follow HTTP: they depend on the fields on which the response varies.
    package let usesHTTPKeys: Bool
    /// Whether HTTP's rules decide about reuse, about storing, and about the request's own conditions.
    ///
    /// The bytes of a file are not stored, and its validators alone decide about reuse.
    package let obeysHTTP: Bool
    /// The tiers for the original bytes: the disk, or none.
    package let bytes: CacheUse
    /// The tiers for the image itself.
    ///
    /// The disk has no full-size images: ``bytes`` is about their original bytes.
    package let image: CacheUse
    /// Whether the image may be made from the decoded original in memory.
    package let readsDecodedOriginal: Bool

    /// Decides which setting applies.
    ///
    /// No other place does.
    init(
        _ caching: ImageRequest.Caching,
        _ options: LoadOptions,
        _ subject: Subject,
        loaderPolicy: CachePolicy,
        variantTiers: CacheTiers
    ) {
        let policy = caching.policy ?? loaderPolicy
        let (isLocal, isInline) = (subject.contains(.local), subject.contains(.inline))
        // A reload, or a load of the cache alone, names no rules: it shares the entries of the loader's other loads.
        let rules = policy == .reload || policy == .cacheOnly ? loaderPolicy : policy
        self.usesHTTPKeys = rules.revalidates && !isLocal
        self.obeysHTTP = rules.revalidates && !isInline && policy != .cacheOnly
        self.policy = isInline && policy.revalidates ? .neverRevalidate : policy

        var bytes = caching.originals.subtracting(isLocal ? .all : .memory)
        var image = subject.contains(.variant) ? caching.variants : caching.originals.subtracting(.disk)
        if image.followsLoader { image.store = variantTiers }
        // Encoding a variant may drop its profile.
        if options.contains(.keepColorProfile) { image = image.subtracting(.disk) }
        if policy == .reload {
            bytes.query = .none
            image.query = .none
        }
        self.bytes = bytes
        self.image = image
        self.readsDecodedOriginal =
            subject.contains(.derived) && caching.originals.query.contains(.memory) && policy != .reload
    }

    /// Whether the memory may answer without a check of the entry's metadata.
    var answersUnchecked: Bool { self.image.query.contains(.memory) && self.policy.servesAnyAge }

    /// Whether the disk may have the original bytes.
    package var touchesDisk: Bool { self.bytes.store.union(self.bytes.query).contains(.disk) }
}

extension CachingPlan {
    /// The properties of a request that matter for caching.
    struct Subject: OptionSet, Sendable {
        let rawValue: UInt8

        /// The bytes need no network: a `file:` or `data:` URL.
        static let local = Subject(rawValue: 1)
        /// The image differs from the original at full size.
        static let variant = Subject(rawValue: 2)
        /// The variant is a thumbnail or a transformed image, which may be made from the decoded original.
        static let derived = Subject(rawValue: 4)
        /// The URL has the bytes in it: it is a `data:` one.
        static let inline = Subject(rawValue: 8)
    }

    /// The loaders whose memory answers a request unchecked, as bits: a hit compares them with the bit of its loader.
    @usableFromInline
    package struct UncheckedMemory: OptionSet, Sendable {
        @usableFromInline package let rawValue: UInt8

        @inlinable
        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The loaders whose own policy serves cached images of any age.
        @inlinable package static var ofTrustingLoaders: Self { Self(rawValue: 1) }
        /// All loaders, because of the request's own policy.
        static var ofAllLoaders: Self { Self(rawValue: 2) }
    }
}

extension CachingPlan.Subject {
    init(_ scheme: URLScheme, _ rendering: ImageRequest.Rendering, _ options: LoadOptions) {
        self =
            switch scheme {
            case .data: [.local, .inline]
            case .file: .local
            case .http, .other, .none: []
            }
        if rendering.thumbnail != nil || !rendering.transforms.isEmpty { self.formUnion([.variant, .derived]) }
        let isDecodedOtherwise = rendering.coder != nil || !options.isDisjoint(with: .decoding)
        if rendering.scaleDownLimit != nil || isDecodedOtherwise { self.insert(.variant) }
    }
}

extension CachingPlan.UncheckedMemory {
    /// Compares the plans under a loader that never revalidates and under one that reloads, the strictest.
    init(plan: (_ loaderPolicy: CachePolicy) -> CachingPlan) {
        self = []
        if plan(.neverRevalidate).answersUnchecked { self.insert(.ofTrustingLoaders) }
        if plan(.reload).answersUnchecked { self.insert(.ofAllLoaders) }
    }

    /// Creates the set that a loader of this policy accepts.
    package init(acceptedUnder policy: CachePolicy) {
        self = policy.servesAnyAge ? [.ofAllLoaders, .ofTrustingLoaders] : .ofAllLoaders
    }
}
