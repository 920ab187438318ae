import TintypeCaching

/// How one load uses the caches, after its request, its options, its URL and its loader have had their say.
///
/// A request's own policy beats the loader's. A file is never copied to disk, and revalidated by its time and size; a
/// `data:` URL is what it is. Options take tiers away, and never add one.
struct CachingPlan: Sendable, Hashable {
    /// When the origin is asked.
    let policy: CachePolicy
    /// Whether original bytes are named as HTTP does, by what the response varies on.
    let usesHTTPKeys: Bool
    /// Whether HTTP's rules decide what is reused, what is stored, and what a request's own conditions mean.
    ///
    /// A file's bytes are not stored, and what it is reused by is its validators alone.
    let obeysHTTP: Bool
    /// The tiers for the original bytes: the disk, or none.
    let bytes: CacheUse
    /// The tiers for the image itself.
    ///
    /// Of a full-size image the disk has the original bytes, which ``bytes`` is about.
    let picture: CacheUse
    /// Whether the image may be made from the decoded original in memory.
    let readsDecodedOriginal: Bool

    /// The one place where it is decided which of them has its way.
    init(
        policy requested: CachePolicy?,
        originals: CacheUse,
        variants: CacheUse,
        options: LoadOptions,
        subject: Subject,
        loaderPolicy: CachePolicy
    ) {
        let policy = requested ?? loaderPolicy
        let (isLocal, isInline) = (subject.contains(.local), subject.contains(.inline))
        // To reload, or to ask no origin, says nothing of rules: such a load shares what the loader's others store.
        let rules = policy == .reload || policy == .cacheOnly ? loaderPolicy : policy
        self.usesHTTPKeys = rules.revalidates && !isLocal
        self.obeysHTTP = rules.revalidates && !isInline && policy != .cacheOnly
        self.policy = isInline && policy.revalidates ? .neverRevalidate : policy

        var bytes = originals.subtracting(isLocal ? .all : .memory)
        var picture = subject.contains(.variant) ? variants : originals.subtracting(.disk)
        // Encoding a variant may drop its profile.
        if options.contains(.keepColorProfile) { picture = picture.subtracting(.disk) }
        if policy == .reload {
            bytes.query = .none
            picture.query = .none
        }
        self.bytes = bytes
        self.picture = picture
        self.readsDecodedOriginal =
            subject.contains(.derived) && originals.query.contains(.memory) && policy != .reload
    }

    /// Whether the memory may answer without a look at what is known of its entry.
    var answersUnchecked: Bool { self.picture.query.contains(.memory) && self.policy.servesAnyAge }

    /// Whether the disk may have the original bytes of what is loaded.
    var touchesDisk: Bool { self.bytes.store.union(self.bytes.query).contains(.disk) }
}

extension CachingPlan {
    /// What a request is about, as far as caching goes.
    struct Subject: OptionSet, Sendable {
        let rawValue: UInt8

        /// The bytes need no network: a `file:` or `data:` URL.
        static let local = Subject(rawValue: 1)
        /// The image is something else than the original at full size.
        static let variant = Subject(rawValue: 2)
        /// The variant is a thumbnail or a transformed image, which may be made from the decoded original.
        static let derived = Subject(rawValue: 4)
        /// The URL has the bytes in it: it is a `data:` one.
        static let inline = Subject(rawValue: 8)
    }

    /// The loaders whose memory answers a request unchecked: one bit, which a hit compares with that of its loader.
    struct UncheckedMemory: OptionSet, Sendable {
        let rawValue: UInt8

        /// Those whose own policy serves what is cached whatever its age.
        static let ofTrustingLoaders = UncheckedMemory(rawValue: 1)
        /// All, because the request says so.
        static let ofAllLoaders = UncheckedMemory(rawValue: 2)

        /// Finds out by asking for the plans under loaders of both kinds; the strictest stands for the others.
        init(plan: (_ loaderPolicy: CachePolicy) -> CachingPlan) {
            var loaders: UncheckedMemory = []
            if plan(.neverRevalidate).answersUnchecked { loaders.insert(.ofTrustingLoaders) }
            if plan(.reload).answersUnchecked { loaders.insert(.ofAllLoaders) }
            self = loaders
        }

        /// What a loader of this policy accepts.
        init(acceptedUnder policy: CachePolicy) {
            self = policy.servesAnyAge ? [.ofAllLoaders, .ofTrustingLoaders] : .ofAllLoaders
        }

        init(rawValue: UInt8) {
            self.rawValue = rawValue
        }
    }
}
