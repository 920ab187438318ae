// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The chunks of a PNG that hold metadata, except EXIF; of each kind the first readable one.
///
/// Sources: W3C PNG, third edition, sections 11.3.3.4 and 11.3.4.3; XMP specification, part 3, 1.1.5.
struct PNGMetadataBlocks {
    private static let packetKeyword = Array("XML:com.adobe.xmp".utf8)
    /// The most bytes of a packet; packets of layered images have some megabytes.
    private static let maximumPacketByteCount = 16 << 20

    private(set) var xmp: Data?
    private(set) var density: ImageMetadata.PixelDensity?

    /// Reads the chunks of a file.
    ///
    /// - Throws: `CodingError.Code.tooMuchWork`, `CancellationError`.
    init(_ bytes: UnsafeRawBufferPointer, work: DecodeWork) throws {
        var offset = PNGHeader.firstChunk
        while let chunk = PNGChunk(at: offset, in: bytes), chunk.kind != .end, chunk.isComplete(in: bytes) {
            try work.count(PNGHeader.unitsPerChunk)
            switch chunk.kind {
            case .density where self.density == nil && chunk.isSound(in: bytes):
                self.density = Self.density(chunk.content(of: bytes))
            case .text where self.xmp == nil && chunk.content(of: bytes).starts(with: Self.packetKeyword):
                if chunk.isSound(in: bytes) { self.xmp = try Self.packet(chunk.content(of: bytes), work: work) }
            default: break
            }
            offset = chunk.next
        }
    }

    /// Returns the pixel density; `nil` without a unit, because the numbers then give only the shape of a pixel.
    private static func density(_ content: UnsafeRawBufferPointer) -> ImageMetadata.PixelDensity? {
        guard content.count == 9, content[8] == 1 else { return nil }
        return ImageMetadata.PixelDensity(
            horizontal: Double(content.bigEndian(at: 0) as UInt32),
            vertical: Double(content.bigEndian(at: 4) as UInt32),
            unit: .meter
        )
    }

    /// Returns the text behind the keyword, the compression flag and method, the language and the translated keyword.
    private static func packet(_ content: UnsafeRawBufferPointer, work: DecodeWork) throws -> Data? {
        let flags = self.packetKeyword.count + 1
        guard content.count > flags + 2, content[flags - 1] == 0, content[flags] <= 1, content[flags + 1] == 0,
            let language = content[(flags + 2)...].firstIndex(of: 0),
            let keyword = content[(language + 1)...].firstIndex(of: 0)
        else { return nil }
        let text = UnsafeRawBufferPointer(rebasing: content[(keyword + 1)...])
        return content[flags] == 0 ? Data(text) : try self.inflated(text, work: work)
    }

    /// Returns the text of a compressed chunk; `nil` if it is broken or too long.
    private static func inflated(_ text: UnsafeRawBufferPointer, work: DecodeWork) throws -> Data? {
        guard let inflater = try? PNGInflater() else { return nil }
        var compressed = text
        var packet = Data()
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while !inflater.isFinished {
            try work.count(piece.count)
            let count = piece.withUnsafeMutableBytes { (try? inflater.inflate(&compressed, into: $0)) ?? 0 }
            guard count > 0, packet.count + count <= self.maximumPacketByteCount else { return nil }
            packet += piece.prefix(count)
        }
        return packet
    }
}
