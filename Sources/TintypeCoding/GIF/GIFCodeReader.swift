// SPDX-License-Identifier: Apache-2.0

import CTintypeGIF

/// Decodes the variable-length LZW codes of one GIF frame into colour indices.
///
/// It takes bytes in pieces of any size, and keeps the rest of a code between them. It does not store the strings of
/// the table: an entry gives the place in the output where the string was first written, so that each code is one copy
/// of earlier output. The output is a window that begins with the 256 single indices. It restarts with each clear code,
/// and is therefore small enough for the processor's cache. Source: GIF89a, appendix F.
struct GIFCodeReader: ~Copyable {
    /// The reasons why reading stopped.
    enum Status {
        /// The bytes are used up.
        case needsBytes
        /// The frame has all its pixels.
        case isComplete
        /// The end code came before the last pixel.
        case hasEnded
        /// A code names a string that does not exist.
        case isDamaged
    }

    private static let maximumCodeSize = 12
    /// The number of strings in a full table.
    private static let fullTable = 1 << 12
    /// The longest string: it grows by one index with each code.
    private static let maximumLength = 1 << 12
    /// The most output from a clear code until the table is full: each string is longer by one index.
    private static let maximumTableOutput = fullTable * (maximumLength + 1) / 2
    /// The number of indices to collect before they are written as pixels, once the table is full.
    private static let portion = 1 << 14

    private var reader: cgif_reader
    private let windowEnd: Int
    /// The start of the indices that are not written as pixels yet.
    private var pendingStart = 256

    /// Returns whether a code size is supported: 8 bits suffice for all indices, but files may have more.
    static func supports(minimumCodeSize: Int) -> Bool { (1..<self.maximumCodeSize).contains(minimumCodeSize) }

    /// Returns the approximate memory in bytes for reading a frame of `pixelCount` pixels.
    static func byteCount(pixelCount: Int) -> Int {
        min(max(0, pixelCount), Self.maximumTableOutput) + Self.portion + Int(cgif_entry_count) * 8
    }

    /// Creates a reader for a frame; `minimumCodeSize` must be supported.
    init(minimumCodeSize: Int, pixelCount: Int) {
        let size = min(max(1, minimumCodeSize), Self.maximumCodeSize - 1)
        let clearCode = 1 << size
        self.windowEnd = 256 + min(max(0, pixelCount), Self.maximumTableOutput) + Self.portion
        let window = UnsafeMutablePointer<UInt8>.allocate(capacity: self.windowEnd + Int(cgif_window_slack))
        let entries = UnsafeMutablePointer<UInt64>.allocate(capacity: Int(cgif_entry_count))
        for index in 0..<256 { window[index] = UInt8(index) }
        for code in 0..<clearCode { entries[code] = UInt64(code & 0xFF) << 16 | 1 }
        // A length of zero marks the two codes that do not name a string.
        entries[clearCode] = 0
        entries[clearCode + 1] = 0
        self.reader = cgif_reader(
            window: window,
            entries: entries,
            position: 256,
            threshold: 0,
            table_end: 0,
            portion: Self.portion,
            limit: UInt32(clearCode + 1),
            clear_code: UInt32(clearCode),
            code_size: UInt32(size + 1),
            bits: 0,
            bit_count: 0
        )
    }

    deinit {
        self.reader.window.deallocate()
        self.reader.entries.deallocate()
    }

    /// The number of collected indices that are not written as pixels yet.
    var pendingCount: Int { self.reader.position - self.pendingStart }

    private var isTableFull: Bool { self.reader.limit == Self.fullTable }

    /// Writes the collected indices as pixels.
    mutating func flush(to writer: inout GIFRowWriter) {
        writer.write(self.reader.window + self.pendingStart, count: self.pendingCount)
        // Keep the strings of the table. Output behind a full table is never read again.
        if self.isTableFull { self.reader.position = min(self.reader.position, self.reader.table_end) }
        self.pendingStart = self.reader.position
    }

    /// Returns the position at which pixels must be written, or the frame is complete.
    private func threshold(_ writer: borrowing GIFRowWriter) -> Int {
        let space = self.isTableFull ? self.reader.table_end + Self.portion : self.windowEnd
        return min(space, self.windowEnd, self.pendingStart + writer.remaining)
    }

    /// Reads all codes in `bytes`.
    mutating func read(_ bytes: UnsafeRawBufferPointer, to writer: inout GIFRowWriter) -> Status {
        guard writer.remaining > 0 else { return .isComplete }
        guard let start = bytes.baseAddress else { return .needsBytes }
        var cursor = start.assumingMemoryBound(to: UInt8.self)
        let end = cursor + bytes.count
        while true {
            self.reader.threshold = self.threshold(writer)
            guard self.reader.position < self.reader.threshold else { return .isDamaged }
            switch cgif_read(&self.reader, &cursor, end) {
            case cgif_needs_bytes: return .needsBytes
            case cgif_is_full: self.flush(to: &writer)
            case cgif_clears: self.beginTable(writer: &writer)
            case cgif_has_ended: return .hasEnded
            default: return .isDamaged
            }
            if writer.remaining == 0 { return .isComplete }
        }
    }

    /// Writes the collected indices as pixels, and begins a new table at the start of the window.
    private mutating func beginTable(writer: inout GIFRowWriter) {
        self.flush(to: &writer)
        self.reader.limit = self.reader.clear_code + 1
        self.reader.code_size = UInt32(self.reader.clear_code.trailingZeroBitCount) + 1
        self.reader.position = 256
        self.pendingStart = 256
    }
}
