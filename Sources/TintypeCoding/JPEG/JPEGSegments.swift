import FoundationEssentials
import TintypeImage

/// The marker segments that carry metadata.
///
/// Sources: Exif 2.32, 4.7.2; XMP specification part 3, 1.1.3; ICC.1, annex B.4.
struct JPEGSegments {
    /// One marker segment.
    struct Segment {
        let marker: CInt
        let prefix: [UInt8]
        let content: Data
    }

    /// What a segment can hold: its length has two bytes and counts itself.
    private static let maximumByteCount = 65_533

    let all: [Segment]

    /// - Throws: `CodingError.Code.encodingFailed` when a block is too large for the format.
    init(_ metadata: EncodeOptions.Metadata) throws(CodingError) {
        var all: [Segment] = []
        if let exif = metadata.exif {
            all.append(try Self.segment(0xE1, "Exif\0\0", exif, "EXIF block"))
        }
        if let xmp = metadata.xmp {
            all.append(try Self.segment(0xE1, "http://ns.adobe.com/xap/1.0/\0", xmp, "XMP packet"))
        }
        if let profile = metadata.colorProfile { all += try Self.segments(profile: profile) }
        self.all = all
    }

    private static func segments(profile: Data) throws(CodingError) -> [Segment] {
        let name = Array("ICC_PROFILE\0".utf8)
        let step = Self.maximumByteCount - name.count - 2
        let count = (profile.count + step - 1) / step
        guard count <= 255 else { throw Self.tooLarge("ICC profile") }
        return (0..<count).map { index in
            Segment(
                marker: 0xE2,
                prefix: name + [UInt8(index + 1), UInt8(count)],
                content: profile.slice(from: index * step, to: (index + 1) * step)
            )
        }
    }

    private static func segment(
        _ marker: CInt,
        _ prefix: String,
        _ content: Data,
        _ name: String
    ) throws(CodingError) -> Segment {
        let prefix = Array(prefix.utf8)
        guard prefix.count + content.count <= Self.maximumByteCount else { throw Self.tooLarge(name) }
        return Segment(marker: marker, prefix: prefix, content: content)
    }

    private static func tooLarge(_ name: String) -> CodingError {
        CodingError(
            code: .encodingFailed,
            message: "The \(name) is too large for a JPEG; leave it out or make it smaller.",
            format: .jpeg
        )
    }
}
