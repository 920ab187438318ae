// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeImage

/// The content of the marker segments of a JPEG, up to its first scan.
///
/// Sources: ITU-T T.81 annex B; Exif 2.32 section 4.7; ICC.1 annex B.4.
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

    /// How often a component is sampled in a block of the image, horizontally and vertically.
    struct Sampling {
        let identifier: UInt8
        let horizontal: Int
        let vertical: Int
    }

    private(set) var process = Process.baseline
    private(set) var width = 0
    private(set) var height = 0
    private(set) var precision = 8
    private(set) var components: [Sampling] = []
    /// The blocks of the image (MCUs) between two restart markers; 0 if the file has no restart markers.
    private(set) var restartInterval = 0
    /// The orientation in the EXIF blocks; `nil` if they do not have it.
    private(set) var orientation: Orientation?
    /// The components of the first scan; if they are not all, there are more scans.
    private(set) var firstScanComponentCount = 0
    private var profileParts: [Int: Data] = [:]
    private var profilePartCount = 0

    init() {}

    /// Reads the segments of `data`.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    init(_ data: Data, work: DecodeWork) throws {
        var parser = JPEGHeaderParser()
        guard try parser.parse(data, work: work) else { throw parser.missingEnd }
        self = parser.header
    }

    /// Whether the image consists of several scans, and is held as coefficients until the last one.
    var hasScans: Bool {
        self.process == .progressive || self.process == .arithmeticProgressive
            || self.firstScanComponentCount < self.components.count
    }

    /// Whether the entropy coding is arithmetic, which the library cannot suspend.
    var isArithmetic: Bool { self.process == .arithmetic || self.process == .arithmeticProgressive }

    /// The ICC profile, joined from its parts; `nil` unless all parts are present.
    ///
    /// Also `nil` if the image has inks and the profile is not for inks. Applying it to the RGB made from the inks
    /// would be wrong, and would take the memory of another image.
    var colorProfile: Data? {
        guard let profile = self.joinedProfile else { return nil }
        // The colour space of the data (ICC.1:2022, 7.2.6).
        guard self.components.count < 4 || profile.has("CMYK", at: 16) else { return nil }
        return profile
    }

    private var joinedProfile: Data? {
        guard self.profilePartCount > 0 else { return nil }
        var profile = Data()
        for index in 1...self.profilePartCount {
            guard let part = self.profileParts[index] else { return nil }
            profile.append(part)
        }
        return profile
    }

    /// The memory in bytes that the library takes to decode.
    ///
    /// It holds strips of rows and, if there are several scans, all coefficients of two bytes each.
    var codecByteCount: Int {
        // Inks are read in strips of their own.
        let bytesPerColumn = self.components.count * 12 + (self.components.count == 4 ? 4 * 64 : 0)
        let strips = self.width * bytesPerColumn + 128 << 10
        guard self.hasScans else { return strips }
        return strips + self.components.reduce(0) { $0 + self.blockCount(of: $1) * 128 }
    }

    /// Returns the number of blocks of 64 samples of a component, with the padding to whole blocks of all components.
    func blockCount(of component: Sampling) -> Int {
        let across = self.components.map(\.horizontal).max() ?? 1
        let down = self.components.map(\.vertical).max() ?? 1
        let columns = (self.width + across * 8 - 1) / (across * 8)
        let rows = (self.height + down * 8 - 1) / (down * 8)
        return columns * component.horizontal * rows * component.vertical
    }

    /// The header in the form that all coders share.
    var imageHeader: ImageHeader {
        var header = ImageHeader(format: .jpeg, pixelWidth: self.width, pixelHeight: self.height)
        header.bitDepth = self.precision
        header.orientation = self.orientation ?? .up
        header.colorProfile = self.colorProfile
        return header
    }

    // MARK: Segments

    /// Reads the content of one segment.
    mutating func read(_ segment: Data, marker: UInt8) throws(CodingError) {
        switch marker {
        case 0xC4, 0xC8, 0xCC: break
        case 0xC0...0xCF: try self.readFrame(segment, marker: marker)
        case 0xDA: self.firstScanComponentCount = segment.byte(at: 0).map { Int($0) } ?? 0
        case 0xDD: self.restartInterval = segment.uint16(at: 0) ?? 0
        case 0xE1 where segment.has("Exif\0\0", at: 0):
            // The first readable block counts, because editors append older copies.
            if self.orientation == nil { self.orientation = EXIF.orientation(in: segment) }
        case 0xE2 where segment.has("ICC_PROFILE\0", at: 0): self.readProfilePart(segment)
        default: break
        }
    }

    private mutating func readFrame(_ segment: Data, marker: UInt8) throws(CodingError) {
        guard
            let precision = segment.byte(at: 0), let height = segment.uint16(at: 1),
            let width = segment.uint16(at: 3), let count = segment.byte(at: 5), segment.count >= 6 + Int(count) * 3
        else { throw .corrupt(.jpeg, "its frame header is too short") }
        guard let process = Process(rawValue: marker), process != .lossless else {
            throw Self.unsupported(Self.name(ofProcess: marker))
        }
        guard precision == 8 else { throw Self.unsupported("\(precision)-bit samples") }
        guard width > 0, height > 0 else { throw .corrupt(.jpeg, "it declares a side of 0 pixels") }
        guard [1, 3, 4].contains(count) else { throw Self.unsupported("\(count) components") }
        self.process = process
        self.precision = Int(precision)
        self.width = width
        self.height = height
        self.components = (0..<Int(count)).map { index in
            let factors = Int(segment.byte(at: 6 + index * 3 + 1) ?? 0)
            return Sampling(
                identifier: segment.byte(at: 6 + index * 3) ?? 0,
                horizontal: max(1, factors >> 4),
                vertical: max(1, factors & 15)
            )
        }
    }

    private mutating func readProfilePart(_ segment: Data) {
        guard let index = segment.byte(at: 12), let count = segment.byte(at: 13), index > 0, index <= count else {
            return
        }
        if self.profilePartCount == 0 { self.profilePartCount = Int(count) }
        guard self.profileParts[Int(index)] == nil else { return }
        self.profileParts[Int(index)] = segment.slice(from: 14, to: segment.count)
    }

    private static func name(ofProcess marker: UInt8) -> String {
        switch marker {
        case 0xC3, 0xC7, 0xCB, 0xCF: "lossless coding"
        case 0xC5, 0xC6, 0xCD, 0xCE: "hierarchical coding"
        default: "an unknown coding process"
        }
    }

    /// Returns the error for a valid file that this coder cannot read.
    static func unsupported(_ what: String) -> CodingError {
        CodingError(
            code: .unsupportedFeature,
            message:
                "The JPEG uses \(what), which is not supported; convert it to an 8-bit baseline or progressive JPEG.",
            format: .jpeg
        )
    }
}

/// Reads the segments of a JPEG as they arrive, up to its first scan.
///
/// Source: ITU-T T.81, B.1.1. Bytes between segments that are not markers are skipped, as other decoders do.
struct JPEGHeaderParser {
    /// The content of the segments so far.
    private(set) var header = JPEGHeader()
    /// The work of a segment, which hardly depends on its length.
    private static let unitsPerSegment = 16

    /// The most bytes between segments to skip in one step.
    private static let bytesPerStep = 1 << 16

    /// The first byte that was not parsed yet.
    private var offset = 0
    private var isAtEnd = false

    /// Parses the segments that have arrived since the last call, and passes each to `look`.
    ///
    /// - Parameters:
    ///   - data: All bytes from the first one on.
    ///   - work: The counter of the decode's work.
    ///   - look: Receives each complete segment; does nothing by default.
    /// - Returns: Whether the first scan was reached.
    /// - Throws: `CodingError`, `CancellationError`.
    mutating func parse(
        _ data: Data,
        work: DecodeWork,
        look: (_ segment: Data, _ marker: UInt8) -> Void = { _, _ in }
    ) throws -> Bool {
        if self.offset == 0 {
            guard data.count >= 2 else { return false }
            guard data.uint16(at: 0) == 0xFFD8 else {
                throw CodingError.corrupt(.jpeg, "it does not begin with a start marker")
            }
            self.offset = 2
        }
        while !self.isAtEnd, let (marker, start) = try self.nextMarker(in: data, work) {
            try work.count(Self.unitsPerSegment)
            if marker == 0xD9 {
                self.isAtEnd = true
                break
            }
            // Markers without a length: restarts, TEM and a repeated start.
            if marker == 0x01 || (0xD0...0xD8).contains(marker) {
                self.offset = start
                continue
            }
            guard var length = data.uint16(at: start) else { return false }
            // Decoders skip a comment or application segment that is too short to hold its own length.
            if length < 2, marker == 0xFE || (0xE0...0xEF).contains(marker) { length = 2 }
            guard length >= 2 else { throw CodingError.corrupt(.jpeg, "a segment has no length") }
            guard start + length <= data.count else { return false }
            let segment = data.slice(from: start + 2, to: start + length)
            if marker == 0xDA, self.header.width == 0 {
                throw CodingError.corrupt(.jpeg, "a scan comes before the frame header")
            }
            try self.header.read(segment, marker: marker)
            look(segment, marker)
            self.offset = start + length
            if marker == 0xDA { return true }
        }
        return false
    }

    /// The error for a file that has no first scan.
    var missingEnd: CodingError {
        if !self.isAtEnd { return .truncated(.jpeg) }
        return .corrupt(.jpeg, self.header.width > 0 ? "it has no scan" : "it has no frame header")
    }

    /// Returns the next marker and where its segment begins, and never visits earlier bytes again.
    private mutating func nextMarker(in data: Data, _ work: DecodeWork) throws -> (marker: UInt8, start: Int)? {
        try data.withUnsafeBytes { bytes in
            while self.offset < bytes.count {
                let start = self.offset
                let marker = self.nextMarker(in: bytes, before: min(bytes.count, start + Self.bytesPerStep))
                if let marker { return (marker, self.offset + 2) }
                // The last byte may be the first one of a marker.
                guard self.offset > start else { return nil }
                try work.count(self.offset - start)
            }
            return nil
        }
    }

    /// Returns the next marker before `end` and moves the offset to it, or returns `nil` and moves the offset to `end`.
    private mutating func nextMarker(in bytes: UnsafeRawBufferPointer, before end: Int) -> UInt8? {
        while self.offset < end, let base = bytes.baseAddress {
            guard let found = memchr(base + self.offset, 0xFF, end - self.offset) else {
                self.offset = end
                return nil
            }
            self.offset = UnsafeRawPointer(found) - base
            guard self.offset + 1 < bytes.count else { return nil }
            let marker = bytes[self.offset + 1]
            if marker != 0, marker != 0xFF { return marker }
            // A fill byte may be the first byte of a marker.
            self.offset += marker == 0xFF ? 1 : 2
        }
        return nil
    }
}
