public import TintypeDownloading

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
