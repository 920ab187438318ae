// SPDX-License-Identifier: Apache-2.0

public import Synchronization
public import TintypeCaching
import TintypeConcurrency
import TintypeDownloading
import TintypeImage

extension ImageRequest {
    /// The parts of a request, and the values derived from them.
    ///
    /// Sendable although unchecked: the parts change only while one request has the storage for itself, whose `mutating`
    /// methods alone change it, as the elements of an array do. The derived values are immutable, or behind a lock. The
    /// first thread that needs them publishes them once; only such a change, or the end of the storage, releases them.
    @usableFromInline
    final class Storage: @unchecked Sendable {
        var source: Source
        var rendering: Rendering
        var caching: Caching
        var transport: StoredTransport
        var options: LoadOptions
        var alternatives: [ImageRequest] = []
        var fallback: Image?
        /// Counted by hand: on a hit in memory a reference costs more than the look-up itself.
        @usableFromInline let known: Atomic<Unmanaged<Derived>?>

        init(
            _ source: Source,
            _ rendering: Rendering,
            _ caching: Caching,
            _ transport: StoredTransport,
            options: LoadOptions
        ) {
            self.source = source
            self.rendering = rendering
            self.caching = caching
            self.transport = transport
            self.options = options
            self.known = Atomic(nil)
        }

        convenience init(copying other: Storage) {
            self.init(other.source, other.rendering, other.caching, other.transport, options: other.options)
            self.alternatives = other.alternatives
            self.fallback = other.fallback
            self.known.store(other.known.load(ordering: .acquiring)?.retain(), ordering: .relaxed)
        }

        deinit {
            self.known.load(ordering: .acquiring)?.release()
        }

        /// Returns a derived value.
        @inlinable
        @inline(__always)
        func derived<Part>(_ part: (Derived) -> Part) -> Part {
            (self.known.load(ordering: .acquiring) ?? self.derive())._withUnsafeGuaranteedRef(part)
        }

        @usableFromInline
        @inline(never)
        func derive() -> Unmanaged<Derived> {
            let keys = Derived.Keys(self)
            let derived = Unmanaged.passRetained(Derived(keys, Derived.Verdict(self, keys)))
            let (isFirst, first) = self.known.compareExchange(
                expected: nil,
                desired: derived,
                ordering: .acquiringAndReleasing
            )
            guard !isFirst, let first else { return derived }
            derived.release()
            return first
        }

        /// Makes a change, and brings the derived values up to date.
        ///
        /// A change replaces a whole part: if it calls nothing during an access to it, Swift need not check the access.
        func change(keepsKeys: Bool, _ change: (Storage) -> Void) {
            guard let old = self.known.load(ordering: .acquiring) else { return change(self) }
            change(self)
            let keys = old._withUnsafeGuaranteedRef { $0.keys }
            let verdict = keepsKeys ? Derived.Verdict(self, keys) : nil
            guard verdict != old._withUnsafeGuaranteedRef({ $0.verdict }) else { return }
            self.known.store(verdict.map { .passRetained(Derived(keys, $0)) }, ordering: .releasing)
            old.release()
        }

        /// Returns how a loader of this policy uses the caches.
        func cachingPlan(
            _ subject: CachingPlan.Subject,
            loaderPolicy: CachePolicy,
            variantTiers: CacheTiers
        ) -> CachingPlan {
            CachingPlan(self.caching, self.options, subject, loaderPolicy: loaderPolicy, variantTiers: variantTiers)
        }

        /// Throws if the request makes no sense; see ``ImageRequest/check(fetchesAnyScheme:)``.
        @inline(never)
        func check(_ scheme: URLScheme, fetchesAnyScheme: Bool) throws(LoadError) {
            try self.source.check(scheme, fetchesAnyScheme: fetchesAnyScheme)
            try self.rendering.check()
            try self.caching.check()
            if case .whole(let transport) = self.transport { try transport.check() }
        }
    }

    /// A transport in storage: in an object of its own, unless the request sets only the priority.
    enum StoredTransport: Sendable, Hashable {
        case priority(DownloadPriority)
        indirect case whole(Transport)

        init(_ transport: Transport) {
            let isDefault = transport == Transport(priority: transport.priority)
            self = isDefault ? .priority(transport.priority) : .whole(transport)
        }

        /// The priority, without the other properties of a transport.
        var priority: DownloadPriority {
            switch self {
            case .priority(let priority): priority
            case .whole(let transport): transport.priority
            }
        }

        var transport: Transport {
            switch self {
            case .priority(let priority): Transport(priority: priority)
            case .whole(let transport): transport
            }
        }
    }

    /// The values that follow from a request, above all the keys: deriving them takes longer than making the request.
    @usableFromInline
    final class Derived: Sendable {
        @usableFromInline let keys: Keys
        @usableFromInline let verdict: Verdict
        /// The encoding that was asked for last, and the key of the image in it.
        ///
        /// A new key and its name on disk take a microsecond, and a request usually has one encoding.
        private let encoded = Locked<(encoding: OutputEncoding, key: CacheKey)?>(nil)

        init(_ keys: Keys, _ verdict: Verdict) {
            self.keys = keys
            self.verdict = verdict
        }

        /// Returns the key of the image in an encoding.
        func key(as encoding: OutputEncoding) -> CacheKey {
            if let key = self.encoded.withLock({ $0?.encoding == encoding ? $0?.key : nil }) { return key }
            let key = encoding.key(of: self.keys.image)
            self.encoded.withLock { $0 = (encoding, key) }
            return key
        }

        /// The values that follow from the source, the rendering and the identifying options.
        @usableFromInline
        struct Keys: Sendable {
            let source: CacheKey
            @usableFromInline let image: CacheKey
            let resource: CacheKey
            let scheme: URLScheme
            let subject: CachingPlan.Subject

            init(_ storage: Storage) {
                let (source, rendering, options) = (storage.source, storage.rendering, storage.options)
                self.source = RequestKeys.source(source, options, headers: source.headers)
                self.image = RequestKeys.image(of: source, self.source, rendering, options)
                self.resource =
                    source.headers.isEmpty ? self.source : RequestKeys.resource(source, options, neutral: [])
                self.scheme = URLScheme(of: source.url)
                self.subject = CachingPlan.Subject(self.scheme, rendering, options)
            }
        }

        /// The values that follow from the whole request.
        @usableFromInline
        struct Verdict: Sendable, Equatable {
            /// Whether the request makes sense for any loader.
            @usableFromInline let isSound: Bool
            @usableFromInline let uncheckedMemory: CachingPlan.UncheckedMemory

            init(_ storage: Storage, _ keys: Keys) {
                self.isSound = (try? storage.check(keys.scheme, fetchesAnyScheme: false)) != nil
                // The slower path reports an error for a request that makes no sense, and looks for the frames of an
                // animation to preload.
                let isSoundForFetchers = (try? storage.check(keys.scheme, fetchesAnyScheme: true)) != nil
                let isSimple = isSoundForFetchers && !storage.options.contains(.preloadAllFrames)
                self.uncheckedMemory =
                    isSimple
                    ? CachingPlan.UncheckedMemory { policy in
                        // The tiers that store variants do not matter here.
                        storage.cachingPlan(keys.subject, loaderPolicy: policy, variantTiers: .none)
                    } : []
            }
        }
    }
}
