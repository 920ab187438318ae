// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeCoding
import TintypeImage
import TintypeRendering
import TintypeRequests

/// Reads variants, such as thumbnails, from their own entries on disk, makes them from decoded originals in memory, and
/// encodes them for the disk.
struct VariantPipeline: Sendable {
    let cache: CacheActor
    let decoding: DecodePipeline
    let encoding: EncodePipeline
    let rules: FreshnessRules
    let encoder: LoaderActor.Configuration.VariantEncoder?
    let activities: ActivityCenter

    /// Returns the entry on disk of the variant that `request` describes.
    func entry(for request: ImageRequest) async throws -> ByteEntry? {
        guard request.isVariant, self.rules.plan(for: request).image.query.contains(.disk) else { return nil }
        return try await self.cache.entry(for: request.key)
    }

    /// Decodes the variant in its entry on disk.
    ///
    /// An entry that is not an image is a miss, and leaves the disk: the load makes the variant from the original
    /// again.
    func response(
        from entry: ByteEntry,
        for request: ImageRequest,
        _ record: LoadRecord
    ) async throws -> ImageResponse? {
        do {
            let image = try await self.decoding.variant(from: entry.data, record)
            let metadata = entry.metadata.describingOriginal
            let formats = self.decoding.registry.formats(for: request)
            return ImageResponse(
                // Callers see the format of the original: the variant's own encoding is private to the cache.
                image: Image(
                    pixels: image.pixels,
                    orientation: image.orientation,
                    sourceFormat: metadata.formatName.flatMap { ImageFormat(name: $0, among: formats) }
                        ?? image.sourceFormat,
                    colorProfile: image.colorProfile,
                    scale: request.imageScale,
                    damage: entry.metadata.damage
                ),
                source: .disk,
                metadata: metadata
            )
        } catch is CodingError {
            // If it cannot be removed, the next load finds it damaged again.
            _ = try? await self.cache.remove(request.key, from: .disk)
            return nil
        }
    }

    /// Returns the decoded original in memory from which the load may make the image of `request`.
    func decodedOriginal(for request: ImageRequest) -> MemoryEntry? {
        guard self.rules.plan(for: request).readsDecodedOriginal else { return nil }
        return self.cache.memory.peek(request.decodedOriginalKey)
    }

    /// Makes the image that `request` describes from a decoded original.
    func image(
        of original: MemoryEntry,
        for request: ImageRequest,
        _ record: LoadRecord
    ) async throws -> ImageResponse {
        // The look-up did not count as a use, but this does.
        _ = self.cache.memory.image(for: request.decodedOriginalKey, countsMiss: false)
        return ImageResponse(
            image: try await self.decoding.image(of: original.image, for: request.renderingRequest, record)
                .replacingScale(request.imageScale),
            source: .memory,
            metadata: original.metadata ?? EntryMetadata()
        )
    }

    /// Stores the bytes of a confirmed variant again, with new metadata.
    func renew(_ entry: ByteEntry, metadata: EntryMetadata, for request: ImageRequest) async {
        var metadata = self.metadata(metadata, describing: entry.data, of: request)
        metadata.damage = entry.metadata.damage
        await self.cache.store(nil, data: entry.data, metadata: metadata, for: request.key, in: .disk)
    }

    /// Returns the metadata of a variant's entry, which describes the stored bytes instead of the original.
    private func metadata(_ original: EntryMetadata, describing data: Data, of request: ImageRequest) -> EntryMetadata {
        let format = self.rules.format(of: data, for: request)
        return original.describing(data, formatName: format?.name, mediaType: format?.mediaType)
    }

    /// Encodes the variant of `response` and stores it on disk, unless a newer body has come by then.
    ///
    /// - Returns: The reason why it is not on disk; `nil` if the load was cancelled.
    func store(_ response: ImageResponse, for request: ImageRequest, by flight: FlightState) async -> LoadError? {
        do {
            let encoded = try await self.encoded(response.image, for: request, flight.record)
            guard let data = encoded, flight.admits(response.metadata.bodyDigest) else { return nil }
            let key = request.key
            let noted = request.noting(response.metadata, at: self.rules.now())
            var metadata = self.metadata(noted, describing: data, of: request)
            metadata.damage = response.image.damage
            _ = try await flight.record.timing(\.store) {
                try await self.cache.storeAndWait(nil, data: data, metadata: metadata, for: key, in: .disk)
            }
            return nil
        } catch is CancellationError {
            return nil
        } catch {
            return self.activities.tell(storing: error)
        }
    }

    private func encoded(_ image: Image, for request: ImageRequest, _ record: LoadRecord) async throws -> Data? {
        if let encode = request.caching.variantEncoder?.value ?? self.encoder {
            return try await record.timing(\.encode) { try await encode(image, request) }
        }
        let options = EncodeOptions(quality: 90)
        return try await self.encoding.encode(image, as: nil, options: options, maximumSide: nil, record)
    }
}

extension EntryMetadata {
    private static let formatKey = "original-format"
    private static let mediaTypeKey = "original-type"
    private static let byteCountKey = "original-bytes"

    /// Returns the metadata of a variant that is stored as `data`.
    ///
    /// The values for the original's bytes move to
    /// ``extra``.
    fileprivate func describing(_ data: Data, formatName: String?, mediaType: String?) -> EntryMetadata {
        var metadata = self
        metadata.extra[Self.formatKey] = self.formatName ?? ""
        metadata.extra[Self.mediaTypeKey] = self.mediaType
        metadata.extra[Self.byteCountKey] = self.byteCount.map { "\($0)" }
        metadata.formatName = formatName
        metadata.mediaType = mediaType
        metadata.byteCount = data.count
        return metadata
    }

    /// The metadata of the original, from that of a variant's entry; entries of older versions describe the original
    /// already.
    var describingOriginal: EntryMetadata {
        guard let formatName = self.extra[Self.formatKey] else { return self }
        var metadata = self
        metadata.formatName = formatName.isEmpty ? nil : formatName
        metadata.mediaType = self.extra[Self.mediaTypeKey]
        metadata.byteCount = self.extra[Self.byteCountKey].flatMap { Int($0) }
        for key in [Self.formatKey, Self.mediaTypeKey, Self.byteCountKey] { metadata.extra[key] = nil }
        return metadata
    }
}
