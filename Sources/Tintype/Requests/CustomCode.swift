public import FoundationEssentials
public import TintypeCoding
public import TintypeDownloading
import TintypeImage

/// A coder for one request, used instead of the registered ones.
///
/// It may read a format of its own. The disk stores bytes that begin like that format, as it does for known formats.
///
/// Cache keys contain its name, so two coders that make different images need different names.
public struct CustomCoder: Sendable, Hashable {
    /// The name of the coder.
    public let name: String
    /// The coder.
    public let coder: any ImageCoder
    /// The formats that it adds.
    ///
    /// The loader recognises their bytes as images and stores them on disk.
    let ownFormats: [ImageFormat]

    /// Creates a coder with a name.
    public init(name: String, coder: any ImageCoder) {
        self.name = name
        self.coder = coder
        self.ownFormats = coder.decodableFormats.filter { !$0.isKnown }.sorted { $0.name < $1.name }
    }

    public static func == (left: CustomCoder, right: CustomCoder) -> Bool {
        left.name == right.name
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.name)
    }
}

extension CoderRegistry {
    /// Returns the formats of the coder of a request and of the registered ones.
    func formats(for request: ImageRequest) -> [ImageFormat] {
        (request.coder?.ownFormats ?? []) + self.ownFormats
    }
}

/// A fetcher for one request, used instead of the loader's.
///
/// Cache keys contain its name, so the bodies of two fetchers for one URL are cached apart.
public struct CustomFetcher: Sendable, Hashable {
    /// The name of the fetcher.
    public let name: String
    /// The fetcher.
    public let fetcher: any ImageFetching

    /// Creates a fetcher with a name.
    public init(name: String, fetcher: any ImageFetching) {
        self.name = name
        self.fetcher = fetcher
    }

    public static func == (left: CustomFetcher, right: CustomFetcher) -> Bool {
        left.name == right.name
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.name)
    }
}

/// A function for one request.
///
/// Cache keys and flights contain its name, so two functions that do different things need different names.
public struct CustomFunction<Function: Sendable>: Sendable, Hashable {
    /// The name of the function.
    public let name: String
    /// The function.
    public let function: Function

    /// Creates a function with a name.
    public init(name: String, function: Function) {
        self.name = name
        self.function = function
    }

    public static func == (left: CustomFunction, right: CustomFunction) -> Bool {
        left.name == right.name
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.name)
    }
}

extension ImageRequest {
    /// Changes the request to the origin, or refuses it by throwing.
    ///
    /// It may wait. It runs once for each flight, whatever the fetcher, and again if the flight has to ask the origin
    /// once more. It does not change the key under which the bytes are stored.
    public typealias RequestModifier =
        @Sendable (_ download: DownloadRequest, _ request: ImageRequest) async throws -> DownloadRequest
    /// Changes a whole response after decryption, or refuses it by throwing.
    ///
    /// The loader checks the status and the body size of the result like those of an origin's response. The function
    /// does not receive a 304.
    public typealias ResponseModifier =
        @Sendable (_ response: DownloadResponse, _ request: ImageRequest) async throws -> DownloadResponse
    /// Decrypts a body.
    ///
    /// A load with a decryptor has no previews.
    public typealias Decryptor =
        @Sendable (_ body: Data, _ response: DownloadResponse, _ request: ImageRequest) async throws -> Data
    /// Returns the bytes of the original to store on disk, or `nil` to store none.
    ///
    /// Later loads use them as the original. The first load returns the bytes of the origin, and waits for this
    /// function. If it throws, the store fails, and the load succeeds.
    public typealias OriginalSerializer = @Sendable (_ body: Data, _ request: ImageRequest) async throws -> Data?
}
