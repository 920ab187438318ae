public import FoundationEssentials
public import TintypeCaching
public import TintypeCoding
import TintypeConcurrency
public import TintypeDownloading
public import TintypeImage

extension LoaderActor {
    /// How a loader works.
    ///
    /// Every default is meant for servers that load from the open web.
    public struct Configuration: Sendable {
        /// Makes the bytes that the disk keeps of a variant, or `nil` to keep none.
        public typealias VariantEncoder = @Sendable (_ variant: Image, _ request: ImageRequest) async throws -> Data?

        /// What stands for the URL of a request in the caches, or `nil` for the URL itself.
        public typealias KeyFilter = @Sendable (_ request: ImageRequest) -> String?
        /// The request to load in place of one.
        public typealias OptionsProcessor = @Sendable (_ request: ImageRequest) async throws -> ImageRequest
        /// Whether the origin may be asked for what the cache does not have.
        public typealias DownloadDecision = @Sendable (_ request: ImageRequest) async -> Bool
        /// Whether the cache may have what an origin sent.
        public typealias StoreDecision = @Sendable (_ metadata: EntryMetadata, _ request: ImageRequest) async -> Bool

        /// Whether a failure that would be remembered is.
        public typealias FailureDecision = @Sendable (_ error: LoadError, _ request: ImageRequest) async -> Bool

        /// The cache to use, such as a ``CacheGroup``; `nil` makes one of the two tiers below.
        public var cache: (any ImageCache)?
        /// The memory tier; default 15 % of the memory that the process may use, at most 768 MB, and less while
        /// memory is short.
        public var memory: MemoryCache.Configuration
        /// The disk tier, or `nil` for none; default 1 GiB under the XDG cache directory, 7 days.
        public var disk: DiskCache.Configuration?
        /// Encodes variants for the disk, where a request stores them there.
        ///
        /// `nil` writes PNG where there is transparency, else JPEG of quality 90. An error is one
        /// of the store: it fails no load.
        public var variantEncoder: VariantEncoder?
        /// Makes the bytes that the disk keeps of originals; default `nil`, which keeps what the origin sent.
        public var originalSerializer: ImageRequest.OriginalSerializer?
        /// Makes keys for requests that have no ``ImageRequest/cacheKey`` of their own; default `nil`.
        ///
        /// Such as URLs without their signatures. It is called for each load, before memory is looked at, and must be quick.
        public var keyFilter: KeyFilter?
        /// When the origin is asked whether what is cached is current, for requests that do not say.
        public var cachePolicy: CachePolicy
        /// Whether the cache serves users who must not see each other's images; default false.
        ///
        /// Where HTTP's freshness counts, the rules for shared caches hold then: nothing `private` is
        /// stored, nothing that was asked for with `Authorization` unless the origin permits it,
        /// and `s-maxage` and `proxy-revalidate` are obeyed.
        public var isSharedCache: Bool
        /// Fields of requests that choose no image, whatever their value is, such as `X-Request-ID`; default none.
        ///
        /// Where HTTP's freshness counts, a field that may identify the user keeps stored images apart, although the
        /// response does not vary on it. That is every field but a few (`Accept` and its kind, `User-Agent`,
        /// `Cache-Control`, conditions) and the ones that are named here.
        public var neutralHeaders: Set<String>
        /// How long responses are fresh whose origins say nothing, too little or too much; default as they say.
        public var freshnessBounds: FreshnessBounds
        /// Which bodies may be stored on disk; `nil` stores what begins like an image of a known format, or of one that a coder brings.
        ///
        /// A page that says "try later" must not become the cached image.
        public var isStorable: (@Sendable (_ body: Data) -> Bool)?
        /// Changes every request before anything is looked at; default `nil`, which costs nothing.
        ///
        /// It may wait, and so may every hit then. An error other than a `LoadError` is one of the load, with the code
        /// `refused`.
        public var optionsProcessor: OptionsProcessor?
        /// Is asked, once for each flight, before an origin is; default `nil`.
        ///
        /// `false` ends the load with `LoadError.Code.downloadRefused`. Files are asked about as well.
        public var shouldDownload: DownloadDecision?
        /// Is asked, once for each body that an origin sent, before that is kept in any tier; default `nil`.
        ///
        /// After `false` neither the bytes nor images of them are kept, nor an older body of theirs.
        public var shouldStore: StoreDecision?
        /// How long failures are remembered; default 30 seconds for what is not there and what is no image.
        ///
        /// Sources are not asked again meanwhile, unless the request has ``LoadOptions/retryFailed`` or reloads.
        public var failureLifetimes: FailureLifetimes
        /// Has a say in which failures are remembered, of those that have a lifetime; default `nil`, all of them.
        public var shouldRememberFailure: FailureDecision?
        /// The clock that ages are counted by.
        public var now: @Sendable () -> Date
        /// Brings the bodies that the cache does not have, for requests without a fetcher of their own; `nil` downloads
        /// them as ``downloads`` says.
        ///
        /// It gets every URL, those of files included.
        public var fetcher: (any ImageFetching)?
        /// How bodies are downloaded.
        ///
        /// Its `bodyMemory` bounds the encoded bytes that loads hold, those included that come from disk or from files
        /// and wait for a decode.
        ///
        /// Its `acceptHeader`, where it was left as it is, becomes the formats that ``coders`` read when the
        /// loader is made.
        ///
        /// Of its `maximumBodySize` and the limit of encoded bytes below, the lower one holds.
        public var downloads: DownloadActor.Configuration
        /// What hears of all that happens in the loader; default nothing.
        ///
        /// ``LoaderActor/activity(bufferSize:)`` gives the same as a stream.
        public var observers: [any LoadObserver]
        /// What ``downloads`` does with requests and responses on their way; default nothing.
        ///
        /// Those below know of the load, and hold for any fetcher.
        public var downloadHooks: DownloadHooks
        /// Changes what is asked of origins, for requests without a modifier of their own; default `nil`.
        public var requestModifier: ImageRequest.RequestModifier?
        /// Changes what came, for requests without a modifier of their own; default `nil`.
        public var responseModifier: ImageRequest.ResponseModifier?
        /// Makes the wanted body of what came, for requests without a decryptor of their own; default `nil`.
        public var decryptor: ImageRequest.Decryptor?
        /// What proves the program's identity, for requests without credentials of their own; default `nil`.
        ///
        /// They are sent to every origin that is loaded from, so that they are for programs that load from their own
        /// servers alone. Elsewhere ``optionsProcessor`` gives them to the requests that should have them.
        public var credentials: Credentials?
        /// What an image may cost; default 100 megapixels, 32,768 a side, 64 MiB of encoded bytes, the work of 1,000
        /// million pixels, 10,000 frames and 500 million pixels in all of them.
        public var limits: DecodingLimits
        /// The coders to ask; by default all of this library.
        public var coders: CoderRegistry
        /// The bytes of decoded frames of animations that are kept; default 64 MiB.
        public var framePoolByteLimit: Int
        /// The images that are worked on at once; default one for each core.
        public var laneCount: Int
        /// Whether lanes that have nothing to do help with one large image; default true.
        ///
        /// They decode bands of baseline JPEGs that have restart markers, from two megapixels on, and inflate PNGs of which
        /// more than 32 MiB of pixels are made smaller; and stop when another image comes. It takes a little more
        /// processor time, and gives the same pixels.
        public var usesIdleLanes: Bool
        /// The bytes of memory that all decodes and encodes may take together, a quarter of them for previews; default a
        /// quarter of the memory that the process may use.
        ///
        /// An image that needs more is decoded or encoded alone, and has no previews if there is no room for them. If it
        /// needs more than the process has left, under a limit of its own or of its cgroup, it is refused
        /// (`LoadError.Code.outOfMemory`). An encode is counted by what the worst image of its size takes. Images that a
        /// caller or the cache holds do not count.
        public var decodingMemory: Int

        /// A configuration with the defaults; change what needs changing.
        public init() {
            self.cache = nil
            self.variantEncoder = nil
            self.originalSerializer = nil
            self.keyFilter = nil
            self.cachePolicy = .neverRevalidate
            self.isSharedCache = false
            self.neutralHeaders = []
            self.freshnessBounds = FreshnessBounds()
            self.isStorable = nil
            self.optionsProcessor = nil
            self.shouldDownload = nil
            self.shouldStore = nil
            self.failureLifetimes = FailureLifetimes()
            self.shouldRememberFailure = nil
            self.now = { Date() }
            self.memory = MemoryCache.Configuration(respondsToMemoryPressure: true)
            self.disk = DiskCache.Configuration()
            self.fetcher = nil
            self.downloads = DownloadActor.Configuration()
            self.observers = []
            self.downloadHooks = DownloadHooks()
            self.requestModifier = nil
            self.responseModifier = nil
            self.decryptor = nil
            self.credentials = nil
            self.limits = DecodingLimits()
            self.coders = CoderRegistry()
            self.framePoolByteLimit = 64 << 20
            self.laneCount = ProcessInfo.processInfo.activeProcessorCount
            self.usesIdleLanes = true
            self.decodingMemory = MemoryBudget().byteCount / 4
        }

        /// The same, with what the coders read as the default of the field `Accept`.
        ///
        /// Origins that choose a format by it then send none that can't be decoded.
        var negotiating: Configuration {
            var copy = self
            guard self.downloads.acceptHeader == DownloadActor.Configuration.defaultAcceptHeader else { return copy }
            let types = self.coders.decodableFormats.map(\.mediaType) + ["image/*;q=0.8", "*/*;q=0.5"]
            copy.downloads.acceptHeader = types.joined(separator: ",")
            return copy
        }
    }
}
