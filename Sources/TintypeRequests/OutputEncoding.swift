// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
package import TintypeCaching
public import TintypeCoding
import TintypeConcurrency
public import TintypeImage

/// The encoding of an image: the format and all options of its coder, or several of them from which the image chooses.
public struct OutputEncoding: Sendable, Hashable {
    /// A format and the options of its coder.
    package struct Choice: Sendable, Hashable {
        package let format: ImageFormat
        package let options: EncodeOptions
    }

    /// The format; of an ``automatic(among:frameLimit:)`` encoding, the first one.
    public let format: ImageFormat
    /// The options of the coder; of an ``automatic(among:frameLimit:)`` encoding, the options of the first format.
    public let options: EncodeOptions
    /// The most frames of an animation that are encoded, from the first one on; `nil` is no limit.
    ///
    /// With a limit of 1, an animation becomes the still image of its first frame.
    public let frameLimit: Int?
    /// The other formats of an automatic encoding, in their order.
    private let others: [Choice]
    /// The number of this encoding in look-ups in memory, within this process.
    package let number: UInt64
    /// The number of this encoding with a frame limit of 1.
    private let stillNumber: UInt64

    /// Creates an encoding.
    ///
    /// If the image is an animation and the coder writes animations in the format, as the coders of GIF, WebP and PNG do, the
    /// result is an animation. In other formats the result is its first frame.
    ///
    /// ```swift
    /// let encoding = OutputEncoding(.png, options: EncodeOptions(pngLevel: 9))
    /// let png = try await loader.encoded(request, as: encoding).data
    /// ```
    ///
    /// - Parameters:
    ///   - format: The format.
    ///   - options: The options of the coder.
    ///   - frameLimit: The most frames of an animation that are encoded, at least 1; `nil` is no limit.
    public init(_ format: ImageFormat, options: EncodeOptions = EncodeOptions(), frameLimit: Int? = nil) {
        self.init([Choice(format: format, options: options)], frameLimit: frameLimit)
    }

    private init(_ choices: [Choice], frameLimit: Int?) {
        let first = choices.first ?? Choice(format: .png, options: EncodeOptions())
        self.format = first.format
        self.options = first.options
        self.others = Array(choices.dropFirst())
        self.frameLimit = frameLimit.map { max(1, $0) }
        var hasher = Hasher()
        hasher.combine(first)
        hasher.combine(self.others)
        self.number = Self.number(hasher, frameLimit: self.frameLimit)
        self.stillNumber = Self.number(hasher, frameLimit: 1)
    }

    private static func number(_ hasher: Hasher, frameLimit: Int?) -> UInt64 {
        var hasher = hasher
        hasher.combine(frameLimit)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    /// Returns an encoding whose format depends on the image.
    ///
    /// An image keeps the format of its source if the list has it. Otherwise it gets the first format that holds it: with
    /// its transparency if it has any, and with its frames if it is an animation. An animation gets PNG only if no other
    /// format of the list holds it, because many programs show the first frame of a PNG. If no format holds the image, it
    /// gets the first one.
    ///
    /// ```swift
    /// let encoding = OutputEncoding.automatic(among: [.jpeg(quality: 75), .png, .gif])
    /// let response = try await loader.encoded(request, as: encoding)
    /// print(response.mediaType)
    /// ```
    ///
    /// - Parameters:
    ///   - encodings: The formats with their options, in order of preference. An empty list means PNG. Their own frame
    ///     limits do not count.
    ///   - frameLimit: The most frames of an animation that are encoded, at least 1; `nil` is no limit.
    /// - Returns: The encoding.
    public static func automatic(among encodings: [OutputEncoding], frameLimit: Int? = nil) -> OutputEncoding {
        OutputEncoding(encodings.flatMap(\.choices), frameLimit: frameLimit)
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
        left.number == right.number && left.frameLimit == right.frameLimit && left.choices == right.choices
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.number)
    }

    /// The formats with their options, in order of preference.
    package var choices: [Choice] { [Choice(format: self.format, options: self.options)] + self.others }

    /// Returns the encoding for a request with these options, which may ask for the first frame alone.
    package func limited(by options: LoadOptions) -> OutputEncoding {
        options.contains(.firstFrameOnly) ? OutputEncoding(self.choices, frameLimit: 1) : self
    }

    /// Returns the number of the encoding for a request with these options.
    package func number(for options: LoadOptions) -> UInt64 {
        options.contains(.firstFrameOnly) ? self.stillNumber : self.number
    }

    /// Returns the key of an image in this encoding.
    package func key(of image: CacheKey) -> CacheKey { image.derived(self.name) }

    /// Returns the name of the encoding in keys, made of all fields of the options, also of fields that are added
    /// later.
    ///
    /// Reading all of them takes microseconds, so the names in use are remembered.
    private var name: String {
        if let name = Self.names.withLock({ $0[self] }) { return name }
        let formats = self.choices.map(\.format.name).joined(separator: "+")
        let options = CacheKey(self.choices.map { Self.text(of: $0.options) }.joined(separator: "+"))
        let limit = self.frameLimit.map { ", \($0) frames" } ?? ""
        let name = "|as(\(formats), \(options.digest.prefix(32))\(limit))"
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
