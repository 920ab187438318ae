// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import TintypeConcurrency
public import TintypeImage

/// The coders of a loader, of which the last registered one takes precedence.
public final class CoderRegistry: Sendable {
    /// Identifies a registration, to remove it.
    public struct Token: Sendable, Hashable {
        fileprivate let id: UInt64
    }

    /// A coder and the formats that it listed when it was registered.
    private struct Registration {
        let token: Token
        let coder: any ImageCoder
        let decodableFormats: [ImageFormat]
        let encodableFormats: Set<ImageFormat>
    }

    private struct State {
        var registrations: [Registration] = [] {
            didSet { self.ownFormats = self.decodableFormats.filter { !$0.isKnown } }
        }
        /// Kept, because each load asks for it several times.
        private(set) var ownFormats: [ImageFormat] = []
        var lastID: UInt64 = 0

        var decodableFormats: [ImageFormat] {
            self.registrations.reversed().reduce(into: []) { formats, registration in
                for format in registration.decodableFormats where !formats.contains(format) { formats.append(format) }
            }
        }
    }

    private let state = Locked(State())

    /// All coders of this library, the most preferred one last.
    ///
    /// `WebPCoder` exists only with the package's trait `WebP`.
    public static var defaultCoders: [any ImageCoder] {
        #if WebP
        [GIFCoder(), WebPCoder(), PNGCoder(), JPEGCoder()]
        #else
        [GIFCoder(), PNGCoder(), JPEGCoder()]
        #endif
    }

    /// Creates a registry, by default with all coders of this library.
    ///
    /// ```swift
    /// let registry = CoderRegistry(coders: [PNGCoder(), JPEGCoder()])
    /// var configuration = LoaderActor.Configuration()
    /// configuration.coders = registry
    /// ```
    public init(coders: [any ImageCoder] = CoderRegistry.defaultCoders) {
        for coder in coders { self.register(coder) }
    }

    /// Adds a coder that takes precedence over all others, and the formats of its own that it reads.
    ///
    /// ```swift
    /// let registry = CoderRegistry()
    /// let token = registry.register(JPEGCoder(shortcuts: []))
    /// ```
    @discardableResult
    public func register(_ coder: any ImageCoder) -> Token {
        // Read the formats outside the lock, because the coder may be a user's.
        let (read, written) = (coder.decodableFormats.sorted { $0.name < $1.name }, coder.encodableFormats)
        return self.state.withLock { state in
            state.lastID += 1
            let token = Token(id: state.lastID)
            state.registrations.append(
                Registration(token: token, coder: coder, decodableFormats: read, encodableFormats: written)
            )
            return token
        }
    }

    /// Removes a registration.
    ///
    /// Does nothing if it was removed before.
    ///
    /// ```swift
    /// let registry = CoderRegistry(coders: [])
    /// let token = registry.register(PNGCoder())
    /// registry.unregister(token)
    /// ```
    public func unregister(_ token: Token) {
        // Coders and formats of the program end after the lock is free.
        _ = self.state.withLock { state in
            defer { state.registrations.removeAll { $0.token == token } }
            return state
        }
    }

    /// The formats that registered coders define themselves, most preferred coder first.
    public var ownFormats: [ImageFormat] { self.state.withLock { $0.ownFormats } }

    /// Returns the coder for the format of the bytes.
    ///
    /// ```swift
    /// let header = try CoderRegistry().coder(decoding: data).open(data).header
    /// ```
    ///
    /// - Throws: `CodingError` that names the format if it is known: `.notAnImage`, `.unsupportedFormat`.
    public func coder(decoding data: Data) throws(CodingError) -> any ImageCoder {
        guard let format = ImageFormat(sniffing: data, among: self.ownFormats) else { throw Self.notAnImage(data) }
        guard let coder = self.last(where: { $0.decodableFormats.contains(format) }) else {
            throw CodingError(
                code: .unsupportedFormat,
                message: "The data is \(format), which no coder reads; convert the image, or add a coder.",
                format: format
            )
        }
        return coder
    }

    /// Returns the coder that writes `format`.
    ///
    /// ```swift
    /// let webp = try CoderRegistry().coder(encoding: .webp).encode(image, as: .webp, options: EncodeOptions())
    /// ```
    ///
    /// - Throws: `CodingError.Code.unsupportedFormat`.
    public func coder(encoding format: ImageFormat) throws(CodingError) -> any ImageCoder {
        guard let coder = self.last(where: { $0.encodableFormats.contains(format) }) else {
            let names = self.encodableFormats.map(\.name).sorted().joined(separator: ", ")
            throw CodingError(
                code: .unsupportedFormat,
                message: "No coder writes \(format); choose one of \(names.isEmpty ? "none" : names), or add a coder.",
                format: format
            )
        }
        return coder
    }

    /// The formats that the registered coders read, most preferred coder first.
    public var decodableFormats: [ImageFormat] { self.state.withLock { $0 }.decodableFormats }

    /// The formats that the registered coders write.
    public var encodableFormats: Set<ImageFormat> {
        self.state.withLock { $0.registrations }.reduce(into: []) { $0.formUnion($1.encodableFormats) }
    }

    private func last(where matches: (Registration) -> Bool) -> (any ImageCoder)? {
        self.state.withLock { $0.registrations.last(where: matches)?.coder }
    }

    /// Describes what the bytes look like: a web page instead of an image is the usual cause.
    private static func notAnImage(_ data: Data) -> CodingError {
        let start = String(decoding: data.prefix(256), as: UTF8.self).lowercased()
        let what =
            if data.isEmpty {
                "there are no bytes"
            } else if start.contains("<html") || start.contains("<!doctype") {
                "it looks like an HTML page; check the URL"
            } else if let first = start.first(where: { !$0.isWhitespace }), first == "{" || first == "[" {
                "it looks like JSON; check the URL"
            } else {
                "no known signature matches; check the source"
            }
        return CodingError(code: .notAnImage, message: "The data is not an image: \(what).")
    }
}
