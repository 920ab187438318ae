import FoundationEssentials
import Glibc
import TintypeImage

/// Reads the segments of a JPEG as they arrive, up to its first scan.
///
/// Source: ITU-T T.81, B.1.1. Bytes between segments that are no marker are skipped, as decoders do.
struct JPEGHeaderParser {
    /// What the segments said so far.
    private(set) var header = JPEGHeader()
    /// The work of a segment, which is looked at and left: of a few bytes as much as of many.
    private static let unitsPerSegment = 16

    /// The bytes between segments that are skipped in one step.
    private static let bytesPerStep = 1 << 16

    /// The first byte that was not parsed yet.
    private var offset = 0
    private var isAtEnd = false

    /// Parses what has come since the last call; `data` is everything from the first byte on.
    ///
    /// - Returns: Whether the first scan was reached.
    /// - Throws: `CodingError`, `CancellationError`.
    mutating func parse(_ data: Data, work: DecodeWork) throws -> Bool {
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
            // Decoders skip a comment or an application's segment that is too short to hold its own length.
            if length < 2, marker == 0xFE || (0xE0...0xEF).contains(marker) { length = 2 }
            guard length >= 2 else { throw CodingError.corrupt(.jpeg, "a segment has no length") }
            guard start + length <= data.count else { return false }
            let segment = data.slice(from: start + 2, to: start + length)
            if marker == 0xDA, self.header.width == 0 {
                throw CodingError.corrupt(.jpeg, "a scan comes before the frame header")
            }
            try self.header.read(segment, marker: marker)
            self.offset = start + length
            if marker == 0xDA { return true }
        }
        return false
    }

    /// Why a file that holds only `data` has no first scan.
    func missingEnd(of data: Data) -> CodingError {
        if !self.isAtEnd { return .truncated(.jpeg) }
        return .corrupt(.jpeg, self.header.width > 0 ? "it has no scan" : "it has no frame header")
    }

    /// The next marker and where its segment begins; bytes before it will not be looked at again.
    private mutating func nextMarker(in data: Data, _ work: DecodeWork) throws -> (marker: UInt8, start: Int)? {
        try data.withUnsafeBytes { bytes in
            while self.offset < bytes.count {
                let start = self.offset
                let marker = self.nextMarker(in: bytes, before: min(bytes.count, start + Self.bytesPerStep))
                if let marker { return (marker, self.offset + 2) }
                // What stands at the end may be the first byte of a marker.
                guard self.offset > start else { return nil }
                try work.count(self.offset - start)
            }
            return nil
        }
    }

    /// The marker at the offset, which moves to it, or to `end` where there is none before.
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
            // A filling byte may be the first of a marker.
            self.offset += marker == 0xFF ? 1 : 2
        }
        return nil
    }
}
