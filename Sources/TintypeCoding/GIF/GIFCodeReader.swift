import CGIF

/// Turns the variable-length LZW codes of one GIF image into colour indices.
///
/// Takes bytes in pieces of any size and keeps what is left of a code between them. A string of the table is
/// not stored: an entry names the place in the output where the string was written first, so that each code is one copy
/// of earlier output. The output lies in a window that begins with the 256 single indices, goes back to its start
/// with each clear code, and is therefore small enough for the processor's cache. Source: GIF89a, appendix F.
struct GIFCodeReader: ~Copyable {
    /// Why reading stopped.
    enum Status {
        /// The bytes are used up.
        case needsBytes
        /// The image has all its pixels.
        case isComplete
        /// The end code came before the last pixel.
        case hasEnded
        /// A code names a string that does not exist.
        case isDamaged
    }

    private static let maximumCodeSize = 12
    /// The strings of a full table.
    private static let fullTable = 1 << 12
    /// The longest string: it grows by one index with each code.
    private static let maximumLength = 1 << 12
    /// The output from a clear code until the table is full, at most: each string is longer by one index.
    private static let maximumTableOutput = fullTable * (maximumLength + 1) / 2
    /// What is collected before it is written as pixels, once the table is full.
    private static let portion = 1 << 14

    private var reader: cgif_reader
    private let windowEnd: Int
    /// Where the indices begin that are not written as pixels yet.
    private var pendingStart = 256

    /// Whether codes can be read that begin with a size; 8 is enough for all indices, but more is met.
    static func supports(minimumCodeSize: Int) -> Bool { (1..<self.maximumCodeSize).contains(minimumCodeSize) }

    /// The memory that reading an image of some pixels takes, about.
    static func byteCount(pixelCount: Int) -> Int {
        min(max(0, pixelCount), Self.maximumTableOutput) + Self.portion + Int(cgif_entry_count) * 8
    }

    /// Prepares to read an image; `minimumCodeSize` is one that is supported.
    init(minimumCodeSize: Int, pixelCount: Int) {
        let size = min(max(1, minimumCodeSize), Self.maximumCodeSize - 1)
        let clearCode = 1 << size
        self.windowEnd = 256 + min(max(0, pixelCount), Self.maximumTableOutput) + Self.portion
        let window = UnsafeMutablePointer<UInt8>.allocate(capacity: self.windowEnd + Int(cgif_window_slack))
        let entries = UnsafeMutablePointer<UInt64>.allocate(capacity: Int(cgif_entry_count))
        for index in 0..<256 { window[index] = UInt8(index) }
        for code in 0..<clearCode { entries[code] = UInt64(code & 0xFF) << 16 | 1 }
        // No length marks the two codes that name no string.
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

    /// The indices that were collected and are not written as pixels.
    var pendingCount: Int { self.reader.position - self.pendingStart }

    private var isTableFull: Bool { self.reader.limit == Self.fullTable }

    /// Writes the indices that were collected as pixels.
    mutating func flush(to writer: inout GIFRowWriter) {
        writer.write(self.reader.window + self.pendingStart, count: self.pendingCount)
        // The strings of the table stay where they are; what a full table gives is not looked at again.
        if self.isTableFull { self.reader.position = min(self.reader.position, self.reader.table_end) }
        self.pendingStart = self.reader.position
    }

    /// The position from which on pixels must be written, or the image is complete.
    private func threshold(_ writer: borrowing GIFRowWriter) -> Int {
        let space = self.isTableFull ? self.reader.table_end + Self.portion : self.windowEnd
        return min(space, self.windowEnd, self.pendingStart + writer.remaining)
    }

    /// Reads as many codes as there are in `bytes`.
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

    /// Writes what was collected as pixels, and begins a table at the start of the window.
    private mutating func beginTable(writer: inout GIFRowWriter) {
        self.flush(to: &writer)
        self.reader.limit = self.reader.clear_code + 1
        self.reader.code_size = UInt32(self.reader.clear_code.trailingZeroBitCount) + 1
        self.reader.position = 256
        self.pendingStart = 256
    }
}
