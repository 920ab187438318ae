// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeImage

/// Edits the segments of a JPEG that is changed without loss.
///
/// Sources: JFIF 1.02; Exif 2.32, section 4.7; XMP specification, part 3, 1.1.3; ICC.1 annex B.4; Photoshop file
/// formats, image resources; CIPA DC-007 (multi-image format).
struct JPEGMetadataEditing {
    /// The kinds of segments.
    private enum Kind {
        case jfif
        case jfifExtension
        case exif
        case xmp
        case extendedXMP
        case colorProfile
        case imageDirectory
        case resources
        case adobe
        case other

        init(_ segment: JPEGParts.Segment) {
            let content = segment.content
            self =
                switch segment.marker {
                case 0xE0 where content.has("JFIF\0", at: 0): .jfif
                case 0xE0 where content.has("JFXX\0", at: 0): .jfifExtension
                case 0xE1 where content.has("Exif\0\0", at: 0): .exif
                case 0xE1 where content.has(JPEGMetadataEditing.packetName, at: 0): .xmp
                case 0xE1 where content.has("http://ns.adobe.com/xmp/extension/\0", at: 0): .extendedXMP
                case 0xE2 where content.has("ICC_PROFILE\0", at: 0): .colorProfile
                case 0xE2 where content.has("MPF\0", at: 0): .imageDirectory
                case 0xED where content.has(JPEGMetadataEditing.resourcesName, at: 0): .resources
                case 0xEE where content.has("Adobe", at: 0): .adobe
                default: .other
                }
        }
    }

    private static let packetName = "http://ns.adobe.com/xap/1.0/\0" as StaticString
    private static let resourcesName = "Photoshop 3.0\0" as StaticString
    /// The size of a JFIF segment without a thumbnail.
    private static let jfifByteCount = 14

    private let transform: JPEGTransform
    private let parts: JPEGParts
    private let header: JPEGHeader
    private let geometry: JPEGGeometry
    private let isRecoded: Bool

    init(
        _ transform: JPEGTransform,
        _ parts: JPEGParts,
        _ header: JPEGHeader,
        _ geometry: JPEGGeometry,
        isRecoded: Bool
    ) {
        self.transform = transform
        self.parts = parts
        self.header = header
        self.geometry = geometry
        self.isRecoded = isRecoded
    }

    /// Whether all segments stay as they are, if the coefficients do.
    var keepsAll: Bool { self.transform.metadata == .all && self.transform.keepsColorProfile && self.isUpright }

    /// Whether the stored orientation stays right.
    private var isUpright: Bool { !self.transform.turnsUpright || (self.header.orientation ?? .up) == .up }

    /// The orientation of the result.
    private var orientation: Orientation { self.transform.turnsUpright ? .up : self.header.orientation ?? .up }

    /// Returns the segments of the result, except the ones that its coder writes itself.
    ///
    /// - Throws: `CodingError` if a block is too large for the format.
    func segments() throws(CodingError) -> [JPEGParts.Segment] {
        switch self.transform.metadata {
        case .all: return self.parts.segments.compactMap { self.kept($0) }
        case .carriedOver, .none:
            var kept = self.parts.segments.compactMap { self.needed($0) }
            let written = try JPEGSegments(self.carriedOver()).all.map {
                JPEGParts.Segment(marker: UInt8($0.marker), content: Data($0.prefix) + $0.content)
            }
            // The JFIF segment must be the first.
            kept.insert(contentsOf: written, at: kept.first.map { Kind($0) == .jfif ? 1 : 0 } ?? 0)
            return kept
        }
    }

    /// Returns a segment for a result that keeps all metadata; `nil` to remove it.
    private func kept(_ segment: JPEGParts.Segment) -> JPEGParts.Segment? {
        let changes = self.geometry.changesImage
        switch Kind(segment) {
        case .jfif: return self.isRecoded ? nil : segment
        // The segment holds a thumbnail.
        case .jfifExtension: return changes ? nil : segment
        // Its offsets in the file are no longer right.
        case .imageDirectory: return nil
        case .colorProfile: return self.transform.keepsColorProfile ? segment : nil
        case .exif where changes || !self.isUpright: return self.editedEXIF(segment)
        case .xmp where changes:
            let name = Self.packetName.utf8CodeUnitCount
            let packet = segment.content.slice(from: name, to: segment.content.count)
            return XMPPacket.carriedOver(packet, keepsPosition: true).map {
                JPEGParts.Segment(marker: segment.marker, content: segment.content.prefix(name) + $0)
            }
        case .extendedXMP: return changes ? nil : segment
        case .resources: return changes ? Self.withoutThumbnails(segment) : segment
        // It describes the colour space, which a single component does not have.
        case .adobe: return self.transform.isGray ? nil : segment
        default: return segment
        }
    }

    /// Returns a segment for a result that keeps only what the pixels need; `nil` to remove it.
    private func needed(_ segment: JPEGParts.Segment) -> JPEGParts.Segment? {
        switch Kind(segment) {
        case .jfif where !self.isRecoded && segment.content.count >= Self.jfifByteCount:
            // The last two bytes are the size of a thumbnail.
            let content = segment.content.prefix(Self.jfifByteCount - 2) + [0, 0]
            return JPEGParts.Segment(marker: segment.marker, content: content)
        case .adobe where !self.isRecoded: return segment
        case .colorProfile: return self.transform.keepsColorProfile ? segment : nil
        default: return nil
        }
    }

    /// Returns the EXIF and XMP to copy, with the orientation of the result.
    private func carriedOver() -> EncodeOptions.Metadata {
        var carried = EncodeOptions.Metadata()
        if self.transform.metadata == .carriedOver {
            var blocks = JPEGMetadataBlocks()
            for segment in self.parts.segments { blocks.read(segment.content, marker: segment.marker) }
            let metadata = blocks.metadata(orientation: self.header.orientation ?? .up)
            carried = EncodeOptions.Metadata(carryingOver: metadata, keepsPosition: self.transform.keepsPosition)
        }
        guard self.orientation != .up else { return carried }
        var editor = carried.exif.flatMap { EXIFEditor($0) }
        if editor?.setOrientation(self.orientation) == true {
            carried.exif = editor?.block
        } else {
            carried.exif = EXIFEditor.block(saying: self.orientation)
        }
        return carried
    }

    private func editedEXIF(_ segment: JPEGParts.Segment) -> JPEGParts.Segment? {
        guard var editor = EXIFEditor(segment.content) else { return nil }
        if self.geometry.changesImage {
            guard editor.removeThumbnail() else { return nil }
            editor.setSize(width: self.geometry.width, height: self.geometry.height)
        }
        // Find the orientation in the same way as the reader that found the image's orientation.
        let block = self.transform.turnsUpright ? EXIF.upright(editor.block) : editor.block
        return JPEGParts.Segment(marker: segment.marker, content: block)
    }

    /// Returns the resources without thumbnails (1033 and 1036); `nil` if they are unreadable or continue in another
    /// segment.
    private static func withoutThumbnails(_ segment: JPEGParts.Segment) -> JPEGParts.Segment? {
        let content = segment.content
        var offset = self.resourcesName.utf8CodeUnitCount
        var kept = Data(content.prefix(offset))
        while offset < content.count {
            guard content.has("8BIM", at: offset), let number = content.uint16(at: offset + 4),
                let nameLength = content.byte(at: offset + 6)
            else { return nil }
            let start = offset + 6 + (Int(nameLength) + 2) / 2 * 2
            guard let count = content.uint32(at: start), start + 4 + count <= content.count else { return nil }
            let end = start + 4 + (count + 1) / 2 * 2
            if number != 0x0409, number != 0x040C { kept += content.slice(from: offset, to: end) }
            offset = end
        }
        return JPEGParts.Segment(marker: segment.marker, content: kept)
    }

    // MARK: Assembly

    /// Returns the recoded file with the segments of the result.
    ///
    /// - Throws: `CodingError` if a block is too large for the format.
    func assembled(with recoded: Data) throws -> Data {
        var segments = try self.segments()
        return try recoded.withUnsafeBytes { bytes in
            let parts = try JPEGParts(bytes, work: DecodeWork(.none, format: .jpeg))
            let hasJFIF = self.parts.segments.contains { Kind($0) == .jfif }
            if parts.segments.contains(where: { Kind($0) == .adobe }) { segments.removeAll { Kind($0) == .adobe } }
            // Cameras write no JFIF segment, because EXIF must come first. If all metadata is kept, do not add one.
            let isWanted = hasJFIF || self.transform.metadata != .all
            let own = parts.segments.compactMap { Kind($0) == .jfif ? (isWanted ? self.turnedJFIF($0) : nil) : $0 }
            return parts.assembled(with: own + segments)
        }
    }

    /// Swaps the densities along rows and columns if the turn swaps these.
    private func turnedJFIF(_ segment: JPEGParts.Segment) -> JPEGParts.Segment {
        let content = segment.content
        guard self.geometry.turn.swapsSides, content.count >= Self.jfifByteCount else { return segment }
        let (across, down) = (content.slice(from: 8, to: 10), content.slice(from: 10, to: 12))
        let turned = content.prefix(8) + down + across + content.slice(from: 12, to: content.count)
        return JPEGParts.Segment(marker: segment.marker, content: turned)
    }
}
