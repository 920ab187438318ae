import FoundationEssentials

/// The parts of a JPEG: what a decoder needs of it, and what else there is.
///
/// Source: ITU-T T.81, annex B.
struct JPEGParts {
    /// An application's segment, or a comment.
    struct Segment {
        let marker: UInt8
        let content: Data
    }

    /// Application segments and comments in their order, wherever they stand.
    private(set) var segments: [Segment] = []
    /// Whether all Huffman tables before the first scan are those of the standard.
    private(set) var hasStandardTables = true
    /// Whether there is no end marker.
    private(set) var endIsMissing = true

    private let source: UnsafeRawBufferPointer
    /// Tables, frame headers and scans with their data.
    private var essential: [Range<Int>] = []

    /// Walks the markers of `source`, which must outlive the value; what comes behind the end marker is no part.
    ///
    /// - Throws: `CodingError` for too much work, `CancellationError`.
    init(_ source: UnsafeRawBufferPointer, work: DecodeWork) throws {
        self.source = source
        var offset = 2
        /// Where the scan began whose data is gone over.
        var scan: Int?
        while let marker = try JPEGScans.nextMarker(&offset, of: source, work) {
            // Restarts are part of the data.
            if (0xD0...0xD7).contains(marker) { continue }
            if let start = scan { self.essential.append(start..<offset - 2) }
            scan = nil
            if marker == 0xD9 {
                self.endIsMissing = false
                break
            }
            // Markers without a length: TEM and a repeated start.
            if marker == 0x01 || marker == 0xD8 { continue }
            guard offset + 2 <= source.count else { break }
            let end = offset + max(2, Int(source[offset]) << 8 | Int(source[offset + 1]))
            // A segment that is cut says nothing.
            guard end <= source.count else { break }
            self.read(marker, Data(source[offset + 2..<end]), start: offset - 2, end: end)
            if marker == 0xDA { scan = offset - 2 }
            offset = end
        }
        // What is left of a marker that is cut is none.
        if let scan { self.essential.append(scan..<source.count - (source.last == 0xFF ? 1 : 0)) }
    }

    private mutating func read(_ marker: UInt8, _ content: Data, start: Int, end: Int) {
        switch marker {
        case 0xE0...0xEF, 0xFE: self.segments.append(Segment(marker: marker, content: content))
        // A scan is known at its end.
        case 0xDA: break
        default:
            if marker == 0xC4 { self.noteTables(content) }
            self.essential.append(start..<end)
        }
    }

    /// The numbers of codes of each length, which no other table is likely to have as well (T.81, annex K.3): by class, and
    /// by luminance and chrominance.
    private static let standardCounts: [UInt8: [UInt8]] = [
        0x00: [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0],
        0x01: [0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0],
        0x10: [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7D],
        0x11: [0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 0x77],
    ]

    private mutating func noteTables(_ content: Data) {
        var offset = 0
        while let table = content.byte(at: offset) {
            let counts = content.slice(from: offset + 1, to: offset + 17)
            if !counts.elementsEqual(Self.standardCounts[table] ?? []) { self.hasStandardTables = false }
            offset += 17 + counts.reduce(0) { $0 + Int($1) }
        }
    }

    /// The file anew, with other segments: they come first.
    func assembled(with segments: [Segment]) -> Data {
        var data = Data()
        data.reserveCapacity(self.source.count)
        data += [0xFF, 0xD8]
        for segment in segments { data.append(segment) }
        for range in self.essential { data.append(contentsOf: UnsafeRawBufferPointer(rebasing: self.source[range])) }
        data += [0xFF, 0xD9]
        return data
    }
}

extension Data {
    /// Adds a segment with its marker and its length.
    fileprivate mutating func append(_ segment: JPEGParts.Segment) {
        let count = segment.content.count + 2
        self += [0xFF, segment.marker, UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
        self += segment.content
    }
}
