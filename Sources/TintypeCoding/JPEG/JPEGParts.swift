// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The parts of a JPEG: the essential ones that a decoder needs, and the other segments.
///
/// Source: ITU-T T.81, annex B.
struct JPEGParts {
    /// An application segment or a comment.
    struct Segment {
        let marker: UInt8
        let content: Data
    }

    /// Application segments and comments in file order.
    private(set) var segments: [Segment] = []
    /// Whether all Huffman tables before the first scan are the standard ones.
    private(set) var hasStandardTables = true
    /// Whether the end marker is missing.
    private(set) var endIsMissing = true

    private let source: UnsafeRawBufferPointer
    /// The ranges of tables, frame headers and scans with their data.
    private var essential: [Range<Int>] = []

    /// Walks the markers of `source` up to the end marker; `source` must outlive the value.
    ///
    /// - Throws: `CodingError` for too much work, `CancellationError`.
    init(_ source: UnsafeRawBufferPointer, work: DecodeWork) throws {
        self.source = source
        var offset = 2
        /// The start of the scan whose data is being read.
        var scan: Int?
        while let marker = try JPEGScans.nextMarker(&offset, of: source, work) {
            // Restart markers are part of the data.
            if (0xD0...0xD7).contains(marker) { continue }
            // Markers below SOF0 are damage of the data, which a decoder skips at the next restart.
            if scan != nil, marker < 0xC0 { continue }
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
            // Ignore a segment that is cut.
            guard end <= source.count else { break }
            self.read(marker, Data(source[offset + 2..<end]), start: offset - 2, end: end)
            if marker == 0xDA { scan = offset - 2 }
            offset = end
        }
        // Drop the first byte of a marker that is cut.
        if let scan { self.essential.append(scan..<source.count - (source.last == 0xFF ? 1 : 0)) }
    }

    private mutating func read(_ marker: UInt8, _ content: Data, start: Int, end: Int) {
        switch marker {
        case 0xE0...0xEF, 0xFE: self.segments.append(Segment(marker: marker, content: content))
        // The range of a scan is added when its end is known.
        case 0xDA: break
        default:
            if marker == 0xC4 { self.noteTables(content) }
            self.essential.append(start..<end)
        }
    }

    /// The numbers of codes of each length in the standard tables, by class and by luminance and chrominance.
    ///
    /// No other table is likely to have the same numbers. Source: T.81, annex K.3.
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

    /// Returns the file with `segments` in front instead of its own ones.
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
    /// Appends a segment with its marker and its length.
    fileprivate mutating func append(_ segment: JPEGParts.Segment) {
        let count = segment.content.count + 2
        self += [0xFF, segment.marker, UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
        self += segment.content
    }
}
