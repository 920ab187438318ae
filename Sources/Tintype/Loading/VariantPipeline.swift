import FoundationEssentials
import TintypeCaching
import TintypeCoding
import TintypeImage
import TintypeRendering

/// Thumbnails and other variants without their original bytes: read from their own entries on
/// disk, made from decoded originals in memory, and encoded onto the disk.
struct VariantPipeline: Sendable {
    let cache: any ImageCache
    let decoding: DecodePipeline
    let encoding: EncodePipeline
    let rules: FreshnessRules
    let encoder: LoaderActor.Configuration.VariantEncoder?
    let activities: ActivityCenter

    /// The entry on disk of the variant that `request` asks for.
    func entry(for request: ImageRequest) async throws -> DiskEntry? {
        guard request.isVariant, self.rules.plan(for: request).picture.query.contains(.disk),
            case .disk(let entry) = try await self.cache.lookUp(request.key, in: .disk)
        else { return nil }
        return entry
    }

    /// The variant in its entry on disk.
    ///
    /// An entry that is no image is removed and is a miss: the original is there to make it anew.
    func response(
        from entry: DiskEntry,
        for request: ImageRequest,
        _ record: LoadRecord
    ) async throws -> ImageResponse? {
        do {
            let image = try await self.decoding.variant(from: entry.data, record)
            let metadata = entry.metadata.describingOriginal
            let formats = self.decoding.registry.formats(for: request)
            return ImageResponse(
                // The variant's own encoding is the cache's affair.
                image: Image(
                    pixels: image.pixels,
                    orientation: image.orientation,
                    sourceFormat: metadata.formatName.flatMap { ImageFormat(name: $0, among: formats) }
                        ?? image.sourceFormat,
                    colorProfile: image.colorProfile,
                    scale: request.pictureScale,
                    damage: entry.metadata.damage
                ),
                source: .disk,
                metadata: metadata
            )
        } catch is CodingError {
            // One that can't be removed is found damaged again next time; nothing is lost.
            _ = try? await self.cache.remove(request.key, from: .disk)
            return nil
        }
    }

    /// The decoded original in memory that the image of `request` may be made from.
    func decodedOriginal(for request: ImageRequest) -> MemoryEntry? {
        guard self.rules.plan(for: request).readsDecodedOriginal else { return nil }
        return self.cache.peekMemoryEntry(for: request.decodedOriginalKey)
    }

    /// The image that `request` asks for, made from a decoded original.
    func picture(
        of original: MemoryEntry,
        for request: ImageRequest,
        _ record: LoadRecord
    ) async throws -> ImageResponse {
        // That it was found did not count; that it is used does.
        _ = self.cache.memoryImage(for: request.decodedOriginalKey)
        return ImageResponse(
            image: try await self.decoding.picture(of: original.image, for: request.rendering, record)
                .replacingScale(request.pictureScale),
            source: .memory,
            metadata: original.metadata ?? EntryMetadata()
        )
    }

    /// Keeps the bytes of a variant, which are still right, with what is known now.
    func renew(_ entry: DiskEntry, metadata: EntryMetadata, for request: ImageRequest) async {
        var metadata = self.metadata(metadata, describing: entry.data, of: request)
        metadata.damage = entry.metadata.damage
        await self.cache.store(nil, data: entry.data, metadata: metadata, for: request.key, in: .disk)
    }

    /// The metadata of a variant's entry, which says of the stored bytes what it said of the original.
    private func metadata(_ original: EntryMetadata, describing data: Data, of request: ImageRequest) -> EntryMetadata {
        let format = self.rules.format(of: data, for: request)
        return original.describing(data, formatName: format?.name, mediaType: format?.mediaType)
    }

    /// Encodes the variant of `response` and keeps it on disk, unless a newer body has come by then.
    ///
    /// - Returns: Why it is not on disk; nothing of a load that was cancelled.
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
        if let encode = request.variantEncoder?.function ?? self.encoder {
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

    /// The same for a variant that is stored as `data`; what it said of the original's bytes goes to ``extra``.
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

    /// The metadata of a variant's entry as it was before ``describing(_:formatName:mediaType:)``; entries of older
    /// versions describe the original.
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
