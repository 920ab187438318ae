import FoundationEssentials
import Glibc

/// Finds the scans of a JPEG whose bytes are all there, and what going over them will take at least.
///
/// Source: ITU-T T.81, B.1.1.2 and B.2.3.
struct JPEGScans {
    /// The work of all scans together, their bytes left out.
    private(set) var units = 0

    private let header: JPEGHeader
    private var restartInterval = 0

    /// Walks the markers of `source`; what comes behind the end marker does not count.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    init(_ source: UnsafeRawBufferPointer, _ header: JPEGHeader, work: DecodeWork) throws {
        self.header = header
        // Without coefficients each scan but the first is ignored.
        guard header.hasScans, source.count > 2 else { return }
        var offset = 2
        var count = 0
        while count < JPEGDecompressor.maximumScanCount, let marker = try Self.nextMarker(&offset, of: source, work) {
            if marker == 0xD9 { break }
            // Markers without a length: restarts, TEM and a repeated start.
            if marker == 0x01 || (0xD0...0xD8).contains(marker) { continue }
            guard offset + 2 <= source.count else { break }
            let length = Int(source[offset]) << 8 | Int(source[offset + 1])
            let segment = source[min(offset + 2, source.count)..<min(offset + max(2, length), source.count)]
            switch marker {
            case 0xDA:
                self.readScan(segment)
                count += 1
            case 0xDD where segment.count >= 2:
                self.restartInterval = Int(segment[segment.startIndex]) << 8 | Int(segment[segment.startIndex + 1])
            default: break
            }
            offset += max(2, length)
        }
    }

    private mutating func readScan(_ segment: Slice<UnsafeRawBufferPointer>) {
        let identifiers = stride(from: 1, to: 1 + 2 * Int(segment.first ?? 0), by: 2)
            .compactMap { $0 < segment.count ? segment[segment.startIndex + $0] : nil }
        let blocks = self.header.components
            .filter { identifiers.contains($0.identifier) }
            .reduce(0) { $0 + self.header.blockCount(of: $1) }
        self.units += blocks * (self.header.isArithmetic ? JPEGWork.unitsPerArithmeticBlock : JPEGWork.unitsPerBlock)
        if self.restartInterval > 0 { self.units += blocks / self.restartInterval * JPEGWork.unitsPerRestart }
    }

    /// The next marker that is not part of entropy-coded data; `offset` moves behind it.
    static func nextMarker(
        _ offset: inout Int,
        of source: UnsafeRawBufferPointer,
        _ work: DecodeWork
    ) throws -> UInt8? {
        while offset + 1 < source.count, let base = source.baseAddress {
            let count = min(source.count - offset, DecodeWork.unitsBetweenLooks)
            // The bytes themselves count when they are decoded.
            guard let found = memchr(base + offset, 0xFF, count) else {
                try work.count(1)
                offset += count
                continue
            }
            let start = UnsafeRawPointer(found) - base
            try work.count(1)
            guard start + 1 < source.count else { return nil }
            let marker = source[start + 1]
            offset = start + (marker == 0xFF ? 1 : 2)
            if marker != 0, marker != 0xFF { return marker }
        }
        return nil
    }
}
