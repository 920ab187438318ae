// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeHTTP
import TintypeImage

@testable import TintypeCaching

/// Returns an image of one row, whose size is `width` times 4 bytes, rounded up to 64.
func makeImage(width: Int = 16) throws -> Image {
    let layout = try PixelLayout(format: .rgba8, width: width, height: 1)
    return Image(pixels: try PixelBuffer(layout, filling: { _ in }))
}

/// Returns the cost of an image of ``makeImage(width:)`` with 64 bytes of pixels.
func unitCost() throws -> Int {
    try MemoryEntry(image: makeImage()).cost
}

/// Returns bytes that depend on the seed.
func makeData(_ count: Int, seed: UInt64 = 1) -> Data {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    return Data(
        (0..<count).map { _ in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state)
        }
    )
}

extension EntryMetadata {
    static let sample = EntryMetadata(
        formatName: "jpeg",
        sourceURL: "https://example.org/a photo.jpg",
        mediaType: "image/jpeg",
        etag: "\"abc\"",
        lastModified: "Wed, 21 Oct 2015 07:28:00 GMT",
        responseDate: Date(timeIntervalSinceReferenceDate: 700_000_000.123456789),
        byteCount: 51_200,
        expiry: nil,
        extra: ["b": "2", "a": "größe", "": ""]
    )
}

extension ResponseRecord {
    /// A response with a value in every field.
    static let sample = ResponseRecord(
        status: 203,
        fields: [
            "ETag": "\"a\"", "X-Empty": "", "Link": "é", "link": "2",
        ],
        requestDate: Date(timeIntervalSinceReferenceDate: 1.5),
        responseDate: Date(timeIntervalSinceReferenceDate: 2.5),
        selectionDigest: String(repeating: "ab", count: 32),
        freshness: Freshness(
            birth: Date(timeIntervalSinceReferenceDate: -7),
            lifetime: 60,
            staleWhileRevalidate: 5,
            staleIfError: 6,
            flags: [.immutable, .mustRevalidate]
        )
    )
}
