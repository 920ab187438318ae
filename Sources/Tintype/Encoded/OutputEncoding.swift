// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
public import TintypeCoding
import TintypeConcurrency
public import TintypeImage

/// The encoding of an image: the format and all options of its coder.
public struct OutputEncoding: Sendable, Hashable {
    /// The format.
    public let format: ImageFormat
    /// The options of the coder.
    public let options: EncodeOptions
    /// The number of this encoding in look-ups in memory, within this process.
    let number: UInt64

    /// Creates an encoding.
    ///
    /// ```swift
    /// let encoding = OutputEncoding(.png, options: EncodeOptions(pngLevel: 9))
    /// let png = try await loader.encoded(request, as: encoding).data
    /// ```
    public init(_ format: ImageFormat, options: EncodeOptions = EncodeOptions()) {
        self.format = format
        self.options = options
        var hasher = Hasher()
        hasher.combine(format)
        hasher.combine(options)
        self.number = UInt64(bitPattern: Int64(hasher.finalize()))
    }

    /// JPEG, with transparency over white.
    ///
    /// The quality is clamped to 1 through 100.
    ///
    /// ```swift
    /// let jpeg = try await loader.encoded(request, as: .jpeg(quality: 85, isProgressive: true)).data
    /// ```
    public static func jpeg(quality: Int = 80, isProgressive: Bool = false) -> OutputEncoding {
        OutputEncoding(.jpeg, options: EncodeOptions(quality: quality, isProgressive: isProgressive))
    }

    /// Lossy WebP.
    ///
    /// The quality is clamped to 1 through 100.
    ///
    /// ```swift
    /// let webp = try await loader.encoded(request, as: .webp(quality: 75)).data
    /// ```
    public static func webp(quality: Int = 80) -> OutputEncoding {
        OutputEncoding(.webp, options: EncodeOptions(quality: quality))
    }

    /// PNG.
    public static let png = OutputEncoding(.png)

    /// GIF.
    public static let gif = OutputEncoding(.gif)

    public static func == (left: OutputEncoding, right: OutputEncoding) -> Bool {
        left.number == right.number && left.format == right.format && left.options == right.options
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.number)
    }

    /// Returns the key of an image in this encoding.
    ///
    /// A new key and its name on disk take a microsecond, so the keys in use are remembered.
    func key(of image: CacheKey) -> CacheKey {
        let pair = EncodedPair(image: image, encoding: self)
        if let key = Self.keys.withLock({ $0[pair] }) { return key }
        let key = image.derived(self.name)
        Self.keys.withLock { keys in
            if keys.count >= 1_000 { keys.removeAll() }
            keys[pair] = key
        }
        return key
    }

    private struct EncodedPair: Hashable {
        let image: CacheKey
        let encoding: OutputEncoding
    }

    private static let keys = Locked<[EncodedPair: CacheKey]>([:])

    /// Returns the name of the encoding in keys, made of all fields of the options, also of fields that are added
    /// later.
    ///
    /// Reading all of them takes microseconds, so the names in use are remembered.
    private var name: String {
        if let name = Self.names.withLock({ $0[self] }) { return name }
        let name = "|as(\(self.format.name), \(CacheKey(Self.text(of: self.options)).digest.prefix(32)))"
        Self.names.withLock { names in
            if names.count >= 1_000 { names.removeAll() }
            names[self] = name
        }
        return name
    }

    private static let names = Locked<[OutputEncoding: String]>([:])

    private static func text(of value: Any) -> String {
        if let data = value as? Data { return "\(data.count):\(BodyDigest.tag(of: data))" }
        // The encoder ignores the alpha of this colour, so the name does as well.
        if let color = value as? Color { return "(red:\(color.red),green:\(color.green),blue:\(color.blue))" }
        let children = Mirror(reflecting: value).children
        guard !children.isEmpty else { return "\(value)" }
        return "(" + children.map { "\($0.label ?? ""):\(self.text(of: $0.value))" }.joined(separator: ",") + ")"
    }
}
