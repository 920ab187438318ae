// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
package import TintypeCaching

/// An encoded image in an open file of the disk tier, and the fields with which a server sends it.
package struct EncodedFile: Sendable {
    /// The open file, and the range of the encoded bytes in it.
    package let file: CachedFile
    private let fields: EncodedResponse

    fileprivate init(_ file: CachedFile, key: CacheKey) {
        self.file = file
        let entry = EncodedEntry(key: key, data: Data(), metadata: file.metadata)
        self.fields = EncodedResponse(entry, source: .disk)
    }

    /// The media type, for `Content-Type`.
    package var mediaType: String { self.fields.mediaType }

    /// A strong tag of these very bytes with its quotes, for `ETag`.
    package var etag: String { self.fields.etag }

    /// The columns of the image.
    package var width: Int { self.fields.width }

    /// The rows of the image.
    package var height: Int { self.fields.height }

    /// The metadata of the original bytes: dates, validators, response.
    package var metadata: EntryMetadata { self.file.metadata }
}

extension LoaderActor {
    /// Opens the file on disk with an encoded image, if ``encoded(_:as:caching:)`` would serve that without the origin.
    ///
    /// The cache reads and checks the file. The caller passes its bytes on with `sendfile`.
    ///
    /// - Returns: The file; `nil` if only a load can answer.
    /// - Throws: `LoadError` if the request makes no sense; `CancellationError` when the task is cancelled.
    package nonisolated func encodedFile(
        for request: ImageRequest,
        as encoding: OutputEncoding
    ) async throws -> EncodedFile? {
        let request = try await self.admitted(request)
        let (key, rules) = (encoding.limited(by: request.options).key(of: request.key), self.services.rules)
        let plan = rules.plan(for: request)
        let mark = self.changes.mark(of: rules.resourceKey(of: request))
        guard plan.policy != .reload, !self.services.hasGivenImage(for: request),
            let file = try await self.cache.file(for: key),
            !plan.obeysHTTP || rules.decision(for: file.metadata, of: request, under: plan.policy) == .serve,
            try await self.isCurrent(file, at: key, of: request)
        else { return nil }
        // The loader has just admitted the body, and no other one has come since.
        if let body = file.metadata.bodyDigest, self.changes.isUnchanged(since: mark) {
            self.admittedBodies.insert(body, of: request.sourceKey, since: mark)
        }
        self.services.activities.send(.hit(.disk, tier: nil), .encoded, request, of: nil)
        return EncodedFile(file, key: key)
    }
}
