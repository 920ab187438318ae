public import TintypeCoding

/// A coder that one request uses instead of those that are registered.
///
/// Its name stands for it in keys: two coders that make different pictures need different names.
public struct CustomCoder: Sendable, Hashable {
    /// What the coder is called.
    public let name: String
    /// The coder.
    public let coder: any ImageCoder

    /// Names a coder.
    public init(name: String, coder: any ImageCoder) {
        self.name = name
        self.coder = coder
    }

    public static func == (left: CustomCoder, right: CustomCoder) -> Bool {
        left.name == right.name
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.name)
    }
}
