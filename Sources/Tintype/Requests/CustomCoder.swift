public import TintypeCoding
import TintypeImage

/// A coder that one request uses instead of those that are registered.
///
/// It may read a format of its own: bytes that begin as that says are kept on disk like any picture's.
///
/// Its name stands for it in keys: two coders that make different pictures need different names.
public struct CustomCoder: Sendable, Hashable {
    /// What the coder is called.
    public let name: String
    /// The coder.
    public let coder: any ImageCoder
    /// The formats that it brings, by which bytes are known as a picture's and kept on disk.
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
