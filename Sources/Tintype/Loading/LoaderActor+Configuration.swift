// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeCaching
public import TintypeCoding
import TintypeConcurrency
public import TintypeDownloading
import TintypeImage
import TintypeRequests

extension LoaderActor {
    /// The settings of a loader.
    ///
    /// The defaults suit servers that load from the open web.
    public struct Configuration: Sendable {
        /// Returns the bytes of a variant to store on disk, or `nil` to store none.
        public typealias VariantEncoder = ImageRequest.VariantEncoder

        /// Returns the text that replaces the URL of a request in cache keys, or `nil` to use the URL.
        public typealias KeyFilter = @Sendable (_ request: ImageRequest) -> String?
        /// Returns the request to load instead of another one.
        public typealias OptionsProcessor = @Sendable (_ request: ImageRequest) async throws -> ImageRequest
        /// Returns whether a request may go to the origin after a cache miss.
        public typealias DownloadDecision = @Sendable (_ request: ImageRequest) async -> Bool
        /// Returns whether the cache may store a response.
        public typealias StoreDecision = @Sendable (_ metadata: EntryMetadata, _ request: ImageRequest) async -> Bool

        /// Returns whether the loader remembers a failure.
        public typealias FailureDecision = @Sendable (_ error: LoadError, _ request: ImageRequest) async -> Bool

        /// The cache, such as one that several loaders share; `nil`, the default, creates one of ``memory``, ``disk`` and
        /// ``tiers``.
        public var cache: CacheActor?
        /// The memory tier; by default 15 % of the memory that the process may use, at most 768 MB, and less
        /// while memory is short.
        public var memory = MemoryCache.Configuration(respondsToMemoryPressure: true)
        /// The disk tier, or `nil` for none; by default 1 GiB under the XDG cache directory, for 7 days.
        public var disk: DiskCache.Configuration? = DiskCache.Configuration()
        /// The byte tiers behind ``disk``, nearest first, such as a store that several machines share; by default none.
        ///
        /// A hit in one of them fills the nearer tiers, and a store reaches all of them. Create a ``cache`` of your own to
        /// change that, or the time that a call to a tier may take (one second).
        public var tiers: [any ByteTier] = []
        /// The tiers that store variants, such as thumbnails, for requests that do not name any; by default the memory.
        ///
        /// With the disk, a thumbnail survives a restart, and other machines find it in shared tiers. The loader encodes it
        /// for that.
        public var variantTiers = CacheTiers.memory
        /// Encodes variants for the disk if a request stores them there.
        ///
        /// `nil`, the default, writes PNG for images with transparency and JPEG of quality 90 for others. If it throws, the
        /// store fails, and the load succeeds.
        public var variantEncoder: VariantEncoder?
        /// Changes the bytes of originals before they are stored on disk; `nil`, the default, stores them as they came.
        public var originalSerializer: ImageRequest.OriginalSerializer?
        /// Makes keys for requests without an ``ImageRequest/cacheKey``, such as URLs without signatures; default `nil`.
        ///
        /// The loader calls it for each load, before it looks the image up in memory, so it must be quick.
        public var keyFilter: KeyFilter?
        /// When the loader asks the origin whether a cached response is current, for requests without a policy of their own;
        /// by default never.
        public var cachePolicy = CachePolicy.neverRevalidate
        /// Whether the cache serves users who must not see each other's images; default false.
        ///
        /// If true, policies that follow HTTP's freshness apply the rules for shared caches (RFC 9111, 3.5): the cache
        /// stores no `private` response, and no response to a request with `Authorization` unless the origin permits it. It
        /// obeys `s-maxage` and `proxy-revalidate`.
        public var isSharedCache = false
        /// The request fields that never affect the image, such as `X-Request-ID`; by default none.
        ///
        /// Policies that follow HTTP's freshness store images apart for each value of a field that may identify the user,
        /// even if the response does not vary on it. These are all fields except `Accept` and its kind, `User-Agent`,
        /// `Cache-Control`, conditions and the fields named here.
        public var neutralHeaders: Set<String> = []
        /// The bounds of the lifetimes that origins give their responses; by default none.
        public var freshnessBounds = FreshnessBounds()
        /// Returns whether a body may be stored on disk; `nil`, the default, stores bodies that begin like an image of a known
        /// format, or of a format that a coder adds.
        ///
        /// An HTML page that says "try later" must not become the cached image.
        public var isStorable: (@Sendable (_ body: Data) -> Bool)?
        /// Changes every request before the loader looks anything up; default `nil`, which costs nothing.
        ///
        /// Each load waits for it, even for an image in memory. If it throws an error other than a `LoadError`, the load fails
        /// with the code `refused`.
        public var optionsProcessor: OptionsProcessor?
        /// Decides whether a load may ask its origin; default `nil`, which permits all.
        ///
        /// The loader calls it once for each flight, also for files. After `false` the load fails with
        /// `LoadError.Code.downloadRefused`.
        public var shouldDownload: DownloadDecision?
        /// Decides whether any tier may store a body that an origin sent; default `nil`, which permits all.
        ///
        /// The loader calls it once for each body. After `false` it stores neither the bytes nor images of them, and removes
        /// older ones.
        public var shouldStore: StoreDecision?
        /// How long the loader remembers failures; by default 30 seconds for missing sources and bodies that are not images.
        ///
        /// Until then it does not ask these sources again, unless the request has ``LoadOptions/retryFailed`` or reloads.
        public var failureLifetimes = FailureLifetimes()
        /// Decides which failures with a lifetime the loader remembers; default `nil`, which remembers all of them.
        public var shouldRememberFailure: FailureDecision?
        /// The clock for the ages of responses.
        public var now: @Sendable () -> Date = { Date() }
        /// Loads the bodies that the cache does not have, for requests without a fetcher; `nil`, the default, downloads them
        /// as ``downloads`` says.
        ///
        /// It receives all URLs, also `file:` URLs.
        public var fetcher: (any ImageFetching)?
        /// Wraps ``fetcher``, or the loader's own downloads, for requests without a fetcher; by default `nil`.
        ///
        /// A wrapper of the downloads shares their limits and their statistics.
        public var fetcherWrapper: (@Sendable (any ImageFetching) -> any ImageFetching)?
        /// The settings of downloads.
        ///
        /// `bodyMemory` limits the encoded bytes that loads hold, including bytes from disk or from files that wait for a
        /// decode. If `acceptHeader` has its default, the loader replaces it with the formats that ``coders`` read. The lower
        /// one of `maximumBodySize` and the limit of encoded bytes in ``limits`` applies.
        public var downloads = DownloadActor.Configuration()
        /// The observers of the loader's activity; by default none.
        ///
        /// ``LoaderActor/activity(bufferSize:)`` returns the same as a stream.
        public var observers: [any LoadObserver] = []
        /// The functions that change requests and responses, for requests without hooks of their own; by default none.
        public var hooks = LoadHooks()
        /// Checks each redirect target that the network policy allows, and refuses it by throwing; default `nil`.
        ///
        /// It applies to ``downloads``, and not to a ``fetcher`` or the fetcher of a request. Like
        /// ``DownloadHooks/checkRedirect``, it must be quick and must not block.
        public var checkRedirect: (@Sendable (URL) throws -> Void)?
        /// The program's credentials, for requests without credentials of their own; default `nil`.
        ///
        /// The loader sends them to every origin, so set them only if the program loads from its own servers alone.
        /// Otherwise add them to the right requests in ``optionsProcessor``.
        public var credentials: Credentials?
        /// The limits of an image; by default 100 megapixels, 32,768 pixels a side, 64 MiB of encoded bytes, the work of 1,000
        /// million pixels, 10,000 frames and 500 million pixels in all frames.
        public var limits = DecodingLimits()
        /// The coders; by default all of this library.
        public var coders = CoderRegistry()
        /// The bytes of decoded animation frames that the loader keeps; default 64 MiB.
        public var framePoolByteLimit = 64 << 20
        /// The number of lanes, each of which decodes or encodes one image at a time; by default one for each core
        /// that the process may use, under the quota of its cgroup.
        public var laneCount = ProcessorBudget().threadCount
        /// Whether lanes that have nothing to do help with one large image; default true.
        ///
        /// They decode bands of baseline JPEGs with restart markers from two megapixels on, and inflate PNGs with more than
        /// 32 MiB of pixels that are scaled down. They stop when another image comes. The pixels are the same, and the decode
        /// takes a little more processor time.
        public var usesIdleLanes = true
        /// The bytes of memory that all decodes and encodes may take together, a quarter of them for previews; default a
        /// quarter of the memory that the process may use.
        ///
        /// An image that needs more is decoded or encoded alone, and has no previews if there is no room for them. If it
        /// needs more than the process has left, under a limit of its own or of its cgroup, it is refused
        /// (`LoadError.Code.outOfMemory`). An encode is counted by what the worst image of its size takes. Images that a
        /// caller or the cache holds do not count.
        public var decodingMemory = MemoryBudget().byteCount / 4

        /// Creates a configuration with the defaults.
        ///
        /// ```swift
        /// var configuration = LoaderActor.Configuration()
        /// configuration.memory.costLimit = 256 << 20
        /// configuration.disk?.directory = URL(filePath: "/var/cache/images")
        /// let loader = LoaderActor(configuration: configuration)
        /// ```
        public init() {}

        /// The same configuration, whose default `Accept` field names the formats that the coders read.
        ///
        /// Origins that choose a format by that field then send one that the loader can decode.
        var negotiating: Configuration {
            var copy = self
            guard self.downloads.acceptHeader == DownloadActor.Configuration.defaultAcceptHeader else { return copy }
            let types = self.coders.decodableFormats.map(\.mediaType) + ["image/*;q=0.8", "*/*;q=0.5"]
            copy.downloads.acceptHeader = types.joined(separator: ",")
            return copy
        }
    }
}
