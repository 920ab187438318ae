import FoundationEssentials
public import TintypeCaching
public import TintypeCoding
public import TintypeDownloading

extension LoaderActor {
    /// How a loader works.
    ///
    /// Every default is meant for servers that load from the open web.
    public struct Configuration: Sendable {
        /// The memory tier; default 15 % of the memory that the process may use, at most 768 MB, and less while
        /// memory is short.
        public var memory: MemoryCache.Configuration
        /// The disk tier, or `nil` for none; default 1 GiB under the XDG cache directory, 7 days.
        public var disk: DiskCache.Configuration?
        /// How bodies are downloaded.
        ///
        /// Of its `maximumBodySize` and the limit of encoded bytes below, the lower one holds.
        public var downloads: DownloadActor.Configuration
        /// What a picture may cost; default 100 megapixels, 32,768 a side, 64 MiB of encoded bytes.
        public var limits: DecodingLimits
        /// The coders to ask; by default all of this library.
        public var coders: CoderRegistry
        /// The bytes of decoded frames of animations that are kept; default 64 MiB.
        public var framePoolByteLimit: Int
        /// The pictures that are worked on at once; default one for each core.
        public var laneCount: Int
        /// The bytes of pixels that all decodes may hold together; default a quarter of the memory that the
        /// process may use.
        ///
        /// A picture that needs more is decoded alone.
        public var decodingMemory: Int

        /// A configuration with the defaults; change what needs changing.
        public init() {
            self.memory = MemoryCache.Configuration(respondsToMemoryPressure: true)
            self.disk = DiskCache.Configuration()
            self.downloads = DownloadActor.Configuration()
            self.limits = DecodingLimits()
            self.coders = CoderRegistry()
            self.framePoolByteLimit = 64 << 20
            self.laneCount = ProcessInfo.processInfo.activeProcessorCount
            self.decodingMemory = MemoryBudget().byteCount / 4
        }
    }
}
