import FoundationEssentials
import TintypeImage

/// What the marker segments of a JPEG say, up to its first scan.
///
/// Sources: ITU-T T.81 annex B; Exif 2.32 section 4.7; ICC.1 annex B.4; Adobe technical note
/// 5116 for the APP14 marker.
struct JPEGHeader {
    /// The kinds of coding that a frame header (SOF marker) names.
    enum Process: UInt8 {
        case baseline = 0xC0
        case extended = 0xC1
        case progressive = 0xC2
        case lossless = 0xC3
        case arithmetic = 0xC9
        case arithmeticProgressive = 0xCA
    }

    private(set) var process = Process.baseline
    private(set) var width = 0
    private(set) var height = 0
    private(set) var precision = 8
    private(set) var componentCount = 0
    private(set) var exif: Data?
    /// Whether an Adobe marker says that CMYK samples are stored inverted.
    private(set) var hasAdobeMarker = false
    /// Where the first scan begins.
    private(set) var scanOffset = 0
    private var profileParts: [Int: Data] = [:]
    private var profilePartCount = 0

    /// Reads the segments of `data`.
    init(_ data: Data) throws(CodingError) {
        guard data.byte(at: 0) == 0xFF, data.byte(at: 1) == 0xD8 else {
            throw .corrupt(.jpeg, "it does not begin with a start marker")
        }
        var offset = 2
        while let marker = Self.nextMarker(in: data, from: &offset) {
            if marker == 0xD9 { break }
            // Markers without a length: restarts, TEM and a repeated start.
            if marker == 0x01 || (0xD0...0xD8).contains(marker) { continue }
            guard let length = data.uint16(at: offset), length >= 2 else { break }
            let segment = data.slice(from: offset + 2, to: offset + length)
            if marker == 0xDA {
                guard self.width > 0 else { throw .corrupt(.jpeg, "a scan comes before the frame header") }
                self.scanOffset = offset
                return
            }
            try self.read(segment, marker: marker)
            offset += length
        }
        if self.width > 0 { throw .truncated(.jpeg) }
        throw data.count < 1_024 ? .truncated(.jpeg) : .corrupt(.jpeg, "it has no frame header")
    }

    /// The ICC profile, put together from its parts; `nil` unless all parts are there.
    var colorProfile: Data? {
        guard self.profilePartCount > 0 else { return nil }
        var profile = Data()
        for index in 1...self.profilePartCount {
            guard let part = self.profileParts[index] else { return nil }
            profile.append(part)
        }
        return profile
    }

    /// Moves `offset` behind the next marker; bytes that are no marker are skipped, as decoders do.
    private static func nextMarker(in data: Data, from offset: inout Int) -> UInt8? {
        while let byte = data.byte(at: offset) {
            offset += 1
            guard byte == 0xFF else { continue }
            while data.byte(at: offset) == 0xFF { offset += 1 }
            guard let marker = data.byte(at: offset) else { return nil }
            offset += 1
            if marker != 0 { return marker }
        }
        return nil
    }

    private mutating func read(_ segment: Data, marker: UInt8) throws(CodingError) {
        switch marker {
        case 0xC4, 0xC8, 0xCC: break
        case 0xC0...0xCF: try self.readFrame(segment, marker: marker)
        case 0xE1 where segment.has("Exif\0\0", at: 0):
            // The first block counts: editors append older copies.
            if self.exif == nil { self.exif = segment }
        case 0xE2 where segment.has("ICC_PROFILE\0", at: 0): self.readProfilePart(segment)
        case 0xEE where segment.has("Adobe", at: 0): self.hasAdobeMarker = true
        default: break
        }
    }

    private mutating func readFrame(_ segment: Data, marker: UInt8) throws(CodingError) {
        guard
            let precision = segment.byte(at: 0), let height = segment.uint16(at: 1),
            let width = segment.uint16(at: 3), let components = segment.byte(at: 5)
        else { throw .truncated(.jpeg) }
        guard let process = Process(rawValue: marker), process != .lossless else {
            throw Self.unsupported("its coding process (marker FF\(String(marker, radix: 16, uppercase: true)))")
        }
        guard precision == 8 else { throw Self.unsupported("\(precision)-bit samples") }
        guard width > 0, height > 0 else { throw .corrupt(.jpeg, "it declares a side of 0 pixels") }
        self.process = process
        self.precision = Int(precision)
        self.width = width
        self.height = height
        self.componentCount = Int(components)
    }

    private mutating func readProfilePart(_ segment: Data) {
        guard let index = segment.byte(at: 12), let count = segment.byte(at: 13), index > 0, index <= count else {
            return
        }
        self.profilePartCount = Int(count)
        self.profileParts[Int(index)] = segment.slice(from: 14, to: segment.count)
    }

    private static func unsupported(_ what: String) -> CodingError {
        CodingError(
            code: .unsupportedFeature,
            message:
                "The JPEG uses \(what), which is not supported; convert it to an 8-bit baseline or progressive JPEG.",
            format: .jpeg
        )
    }
}
