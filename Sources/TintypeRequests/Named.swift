// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
package import TintypeCoding
public import TintypeImage

/// A part of the program that one request brings along, such as a coder, a fetcher or a function.
///
/// Two values with the same name are equal. Cache keys and flights contain the name, so values that make different bytes or
/// images need different names.
///
/// ```swift
/// request.rendering.coder = Named("plain JPEG coder", JPEGCoder(shortcuts: []))
/// request.source.hooks = Named("key 7", LoadHooks(decrypt: { body, _, _ in try decrypt(body) }))
/// ```
public final class Named<Value: Sendable>: Sendable, Hashable {
    /// The name of the value.
    public let name: String
    /// The value.
    public let value: Value

    /// Names a value.
    ///
    /// ```swift
    /// request.source.fetcher = Named("second network", DownloadActor())
    /// ```
    public init(_ name: String, _ value: Value) {
        self.name = name
        self.value = value
    }

    public static func == (left: Named, right: Named) -> Bool { left.name == right.name }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.name)
    }
}

extension CoderRegistry {
    /// Returns the formats of the coder of a request and of the registered ones.
    package func formats(for request: ImageRequest) -> [ImageFormat] {
        let added = request.rendering.coder?.value.decodableFormats.filter { !$0.isKnown } ?? []
        return added.sorted { $0.name < $1.name } + self.ownFormats
    }
}

extension ImageRequest {
    /// Returns the bytes of the original to store on disk, or `nil` to store none.
    ///
    /// Later loads use them as the original. The first load returns the bytes of the origin, and waits for this
    /// function. If it throws, the store fails, and the load succeeds.
    public typealias OriginalSerializer = @Sendable (_ body: Data, _ request: ImageRequest) async throws -> Data?
    /// Returns the bytes of a variant to store on disk, or `nil` to store none.
    public typealias VariantEncoder = @Sendable (_ variant: Image, _ request: ImageRequest) async throws -> Data?
}
