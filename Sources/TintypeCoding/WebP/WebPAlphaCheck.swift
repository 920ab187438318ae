import TintypeImage

/// Refuses the alpha of a lossy picture where libwebp would take more memory for its prefix codes than for its pixels.
///
/// Alpha is stored as a lossless picture without a header, and decoded by libwebp, which keeps up to 20 kB for each
/// group of codes; a chunk of 300 kB may have 65,536 of them. Sources: RFC 9649, sections 2.7.1.2 and 3.7.2.2; libwebp
/// 1.2.4, `vp8l_dec.c`.
final class WebPAlphaCheck {
    /// What libwebp takes for a group, without its cache and at most for that.
    private static let (bytesPerGroup, bytesPerCacheEntry) = (12 << 10, 4)
    /// What prefix codes may take besides a quarter of a byte for each pixel.
    private static let freeByteCount = 4 << 20
    /// The fewest bits that a group takes: five codes of one symbol.
    private static let leastBitsPerGroup = 20

    private let width: Int
    private let height: Int
    private var isDone = false

    /// Prepares to look at the alpha of a lossy picture.
    init(_ picture: WebPCodedPicture) {
        self.width = picture.frame.width
        self.height = picture.frame.height
    }

    /// Looks at the bytes of the picture from its first one on, once the chunk of its alpha is there: libwebp waits for
    /// that too.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func check(_ bytes: UnsafeRawBufferPointer, work: DecodeWork) throws {
        guard !self.isDone, let chunk = WebPChunk(bytes, at: 0), chunk.name == WebPChunk.Name.alpha else { return }
        guard bytes.count >= chunk.body.upperBound else { return }
        self.isDone = true
        let body = UnsafeRawBufferPointer(rebasing: bytes[chunk.body])
        // The lowest two bits say how it is compressed: not at all, or as a lossless picture.
        guard let first = body.first, first & 3 == 1 else { return }
        let limit = Self.freeByteCount + self.width * self.height / 4
        let most = min(body.count * 8 / Self.leastBitsPerGroup, 1 << 16)
        guard Self.byteCount(ofGroups: most, cacheBits: VP8LDecoder.maximumCacheBits) > limit else { return }
        do {
            let groups = try VP8LDecoder(width: self.width, height: self.height)
                .groups(ofHeaderless: UnsafeRawBufferPointer(rebasing: body.dropFirst()), work: work)
            let count = Self.byteCount(ofGroups: groups.count, cacheBits: groups.cacheBits)
            guard count <= limit else { throw VP8LError.tooManyCodes }
        } catch let error as VP8LError {
            // The chunk is there whole: what is missing of the stream is damage.
            if case .needsBytes = error { throw CodingError(VP8LError.damaged) }
            throw CodingError(error)
        }
    }

    private static func byteCount(ofGroups count: Int, cacheBits: Int) -> Int {
        count * (self.bytesPerGroup + (cacheBits > 0 ? self.bytesPerCacheEntry << cacheBits : 0))
    }
}
