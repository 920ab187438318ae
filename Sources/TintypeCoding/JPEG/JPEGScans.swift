// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The scans of a complete JPEG file: the least work to read them, and the scans that a decode to an eighth can skip.
///
/// A decode to an eighth uses only DC coefficients, except for subsampled components, which it decodes at a quarter. So
/// scans of AC coefficients are needless if the scans together contain all coefficients. Otherwise libjpeg would
/// estimate missing coefficients from the known ones, and the image would differ. If a file breaks a rule of the
/// format, no scan is needless.
///
/// Source: ITU-T T.81, B.1.1.2, B.2.3 and G.1.1.1.
struct JPEGScans {
    /// The work of the needed scans, without their bytes.
    private(set) var units = 0
    /// The ranges of the needless scans, in file order.
    private(set) var needless: [Range<Int>] = []

    private let header: JPEGHeader
    private var restartInterval = 0
    /// The state of the format's rules; `nil` once one was broken, or if needless scans are not searched.
    private var progression: JPEGProgression?
    /// The work of scans that may turn out to be needless.
    private var needlessUnits = 0

    /// Walks the markers of `source` up to the end marker.
    ///
    /// - Parameters:
    ///   - source: The whole file.
    ///   - header: The parsed header of the file.
    ///   - leavesOut: Whether to find needless scans, because the decode is one to an eighth of the size.
    ///   - work: The counter of the decode's work.
    /// - Throws: `CodingError`, `CancellationError`.
    init(_ source: UnsafeRawBufferPointer, _ header: JPEGHeader, leavesOut: Bool, work: DecodeWork) throws {
        self.header = header
        // A sequential decode of one scan ignores later scans.
        guard header.hasScans, source.count > 2 else { return }
        self.progression = leavesOut ? JPEGProgression(header) : nil
        var isAtEnd = false
        var offset = 2
        var count = 0
        var segmentEnd: Int? = 2
        while count < JPEGDecompressor.maximumScanCount, let marker = try Self.nextMarker(&offset, of: source, work) {
            let start = offset - 2
            // Markers without a length: restarts, TEM and a repeated start.
            if marker == 0x01 || (0xD0...0xD8).contains(marker) {
                if segmentEnd != nil || !(0xD0...0xD7).contains(marker) { self.progression = nil }
                continue
            }
            // Entropy-coded data follows scan headers only, and fill bytes may precede a marker.
            if let end = segmentEnd, !source[min(end, start)..<start].allSatisfy({ $0 == 0xFF }) {
                self.progression = nil
            }
            self.progression?.endScan(at: start)
            isAtEnd = marker == 0xD9
            guard !isAtEnd, offset + 2 <= source.count else { break }
            let length = Int(source[offset]) << 8 | Int(source[offset + 1])
            let segment = source[min(offset + 2, source.count)..<min(offset + max(2, length), source.count)]
            if segment.count != length - 2 { self.progression = nil }
            switch marker {
            case 0xDA:
                self.readScan(segment, at: start)
                count += 1
            case 0xDD where segment.count >= 2:
                self.restartInterval = Int(segment[segment.startIndex]) << 8 | Int(segment[segment.startIndex + 1])
            default: self.progression?.read(segment, marker: marker)
            }
            if self.progression?.isBroken == true { self.progression = nil }
            offset += max(2, length)
            segmentEnd = marker == 0xDA ? nil : offset
        }
        if isAtEnd, let progression = self.progression, progression.isComplete {
            self.needless = progression.needless
        } else {
            self.units += self.needlessUnits
        }
    }

    private mutating func readScan(_ segment: Slice<UnsafeRawBufferPointer>, at start: Int) {
        let identifiers = stride(from: 1, to: 1 + 2 * Int(segment.first ?? 0), by: 2)
            .compactMap { $0 < segment.count ? segment[segment.startIndex + $0] : nil }
        let blocks = self.header.components
            .filter { identifiers.contains($0.identifier) }
            .reduce(0) { $0 + self.header.blockCount(of: $1) }
        var units = blocks * (self.header.isArithmetic ? JPEGWork.unitsPerArithmeticBlock : JPEGWork.unitsPerBlock)
        if self.restartInterval > 0 { units += blocks / self.restartInterval * JPEGWork.unitsPerRestart }
        if self.progression?.readScan(segment, at: start) == true {
            self.needlessUnits += units
        } else {
            self.units += units
        }
    }

    /// Returns the next marker that is not part of entropy-coded data, and moves `offset` behind it.
    static func nextMarker(
        _ offset: inout Int,
        of source: UnsafeRawBufferPointer,
        _ work: DecodeWork
    ) throws -> UInt8? {
        while offset + 1 < source.count, let base = source.baseAddress {
            let count = min(source.count - offset, DecodeWork.unitsBetweenLooks)
            // The bytes themselves are counted when they are decoded.
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

/// Tracks the coefficients that the scans of a progressive image contain, and checks the rules of the format.
///
/// It checks the rules whose violation makes libjpeg fail, and the rules that decide how libjpeg treats a scan.
private struct JPEGProgression {
    /// The lowest known bit of each coefficient of each component; `nil` if no bit is known.
    private var lowestBits: [[UInt8?]]
    /// The usable tables for AC coefficients.
    private var tables: Set<UInt8> = []
    private let components: [JPEGHeader.Sampling]
    private var hasFrame = false
    private var scanStart: Int?
    /// Whether a rule was broken.
    private(set) var isBroken = false
    private(set) var needless: [Range<Int>] = []

    /// Creates the state; `nil` for images that are not progressive with Huffman coding.
    init?(_ header: JPEGHeader) {
        guard header.process == .progressive, Set(header.components.map(\.identifier)).count == header.components.count
        else { return nil }
        self.components = header.components
        self.lowestBits = header.components.map { _ in [UInt8?](repeating: nil, count: 64) }
    }

    /// Whether all bits of all coefficients are known.
    var isComplete: Bool {
        !self.isBroken && self.lowestBits.allSatisfy { $0[0] != nil && $0.dropFirst().allSatisfy { $0 == 0 } }
    }

    /// Reads a segment that is not a scan header.
    mutating func read(_ segment: Slice<UnsafeRawBufferPointer>, marker: UInt8) {
        switch marker {
        case 0xC2:
            self.isBroken = self.isBroken || self.hasFrame
            self.hasFrame = true
        case 0xC4: self.readTables(Array(segment))
        case 0xDB, 0xDD, 0xFE, 0xE0...0xEF: break
        default: self.isBroken = true
        }
    }

    /// Reads the header of a scan, whose marker is at `start`.
    ///
    /// - Returns: Whether the scan is needless if no rule is broken.
    mutating func readScan(_ segment: Slice<UnsafeRawBufferPointer>, at start: Int) -> Bool {
        let bytes = Array(segment)
        guard let count = bytes.first.map(Int.init), count > 0, bytes.count == 4 + 2 * count else {
            self.isBroken = true
            return false
        }
        let indices = (0..<count).compactMap { number in
            self.components.firstIndex { $0.identifier == bytes[1 + 2 * number] }
        }
        let (first, last) = (Int(bytes[1 + 2 * count]), Int(bytes[2 + 2 * count]))
        let (before, after) = (bytes[3 + 2 * count] >> 4, bytes[3 + 2 * count] & 15)
        guard
            indices.count == count, first <= last, last < 64, after <= 13, before == 0 || before == after + 1,
            first == 0 ? last == 0 : count == 1 && self.tables.contains(bytes[2] & 15),
            indices.allSatisfy({ self.isNext(before, of: first...last, in: $0) })
        else {
            self.isBroken = true
            return false
        }
        for index in indices {
            for coefficient in first...last { self.lowestBits[index][coefficient] = after }
        }
        guard first > 0, self.isOneSample(self.components[indices[0]]) else { return false }
        self.scanStart = start
        return true
    }

    /// Ends the needless scan, if one was begun, before the marker at `end`.
    mutating func endScan(at end: Int) {
        guard let start = self.scanStart else { return }
        self.needless.append(start..<end)
        self.scanStart = nil
    }

    /// Returns whether a scan may follow that refines the bits from `before` (0: begins), after the DC coefficients.
    private func isNext(_ before: UInt8, of coefficients: ClosedRange<Int>, in index: Int) -> Bool {
        let known = self.lowestBits[index]
        guard coefficients.lowerBound == 0 || known[0] != nil else { return false }
        return coefficients.allSatisfy { before == 0 ? known[$0] == nil : known[$0] == before }
    }

    /// Returns whether libjpeg computes one sample for each block of the component, at an eighth of the size.
    ///
    /// For a component with half as many samples in both directions it computes four, which need no enlarging.
    private func isOneSample(_ component: JPEGHeader.Sampling) -> Bool {
        let across = self.components.map(\.horizontal).max() ?? 1
        let down = self.components.map(\.vertical).max() ?? 1
        return across % (component.horizontal * 2) != 0 || down % (component.vertical * 2) != 0
    }

    /// Records the tables; a table whose codes do not fit in their lengths breaks the rules (T.81, C.2).
    private mutating func readTables(_ bytes: [UInt8]) {
        var start = 0
        while start + 17 <= bytes.count {
            var code = 0
            var symbolCount = 0
            var fits = true
            let lengths = bytes[start + 1...start + 16].map { Int($0) }
            for (length, count) in zip(1..., lengths) {
                symbolCount += count
                code = code * 2 + count
                // A code of all ones is reserved.
                if symbolCount > 0, code >= 1 << length { fits = false }
            }
            if !fits || symbolCount > 256 { self.isBroken = true }
            if bytes[start] >> 4 == 1 { self.tables.insert(bytes[start] & 15) }
            start += 17 + symbolCount
        }
        if start != bytes.count { self.isBroken = true }
    }
}
