public import FoundationEssentials
public import TintypeCoding
public import TintypeDownloading
import TintypeImage

/// A coder that one request uses instead of those that are registered.
///
/// It may read a format of its own: bytes that begin as that says are kept on disk like any image's.
///
/// Its name stands for it in keys: two coders that make different images need different names.
public struct CustomCoder: Sendable, Hashable {
    /// What the coder is called.
    public let name: String
    /// The coder.
    public let coder: any ImageCoder
    /// The formats that it brings, by which bytes are known as an image's and kept on disk.
    let ownFormats: [ImageFormat]

    /// Names a coder.
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
    /// The formats that the coder of a request and those that are registered bring.
    func formats(for request: ImageRequest) -> [ImageFormat] {
        (request.coder?.ownFormats ?? []) + self.ownFormats
    }
}

/// A fetcher that one request uses instead of its loader's.
///
/// Its name stands for it in keys: what two fetchers bring for one URL is kept apart by their names.
public struct CustomFetcher: Sendable, Hashable {
    /// What the fetcher is called.
    public let name: String
    /// The fetcher.
    public let fetcher: any ImageFetching

    /// Names a fetcher.
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

/// A function that one request brings.
///
/// Its name stands for it in keys, and where loads are told apart: two functions that do different things need different
/// names.
public struct CustomFunction<Function: Sendable>: Sendable, Hashable {
    /// What the function is called.
    public let name: String
    /// The function.
    public let function: Function

    /// Names a function.
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
    /// Changes what is asked of the origin for a load, or refuses it by throwing.
    ///
    /// It may wait. It runs once for a flight, and again where the origin has to be asked once more, whatever the fetcher.
    /// Where the bytes are stored is decided before.
    public typealias RequestModifier =
        @Sendable (_ download: DownloadRequest, _ request: ImageRequest) async throws -> DownloadRequest
    /// Changes a whole response, decrypted if need be, or refuses it by throwing.
    ///
    /// What it returns is judged like what an origin sends, by its status and the size of its body. A 304 does not pass it.
    public typealias ResponseModifier =
        @Sendable (_ response: DownloadResponse, _ request: ImageRequest) async throws -> DownloadResponse
    /// Turns the body that came into the one that is wanted.
    ///
    /// There are no previews meanwhile: what arrives is not the image.
    public typealias Decryptor =
        @Sendable (_ body: Data, _ response: DownloadResponse, _ request: ImageRequest) async throws -> Data
    /// Makes the bytes that the disk keeps of the original, or `nil` to keep none.
    ///
    /// Loads that find them there take them for the original. The first load is given what the origin sent, and waits
    /// for this. An error is one of the store: it fails no load.
    public typealias OriginalSerializer = @Sendable (_ body: Data, _ request: ImageRequest) async throws -> Data?
}
