// SPDX-License-Identifier: Apache-2.0

import CTintypeGIF

/// Encodes the colour indices of one frame as LZW codes.
struct GIFCodeWriter: ~Copyable {
    private var writer = cgif_writer()
    private let slots: UnsafeMutablePointer<UInt32>

    /// The memory of a writer in bytes.
    static let byteCount = Int(cgif_slot_count) * 4

    /// Begins the data of a frame with indices of `minimumCodeSize` bits, 2 to 8.
    ///
    /// - Throws: `CodingError` when memory runs out.
    init(minimumCodeSize: Int, output: inout GIFOutput) throws(CodingError) {
        self.slots = .allocate(capacity: Int(cgif_slot_count))
        cgif_begin(&self.writer, self.slots, UInt32(minimumCodeSize))
        try output.append([UInt8(minimumCodeSize)])
    }

    deinit {
        self.slots.deallocate()
    }

    /// Returns the most bytes that the data of a frame with `pixelCount` pixels takes.
    static func mostBytes(pixelCount: Int) -> Int {
        cgif_bound(pixelCount) + Int(cgif_most_last_bytes) + 1
    }

    /// Writes more indices.
    ///
    /// - Throws: `CodingError` when memory runs out.
    mutating func write(_ indices: [UInt8], to output: inout GIFOutput) throws(CodingError) {
        try output.append(upTo: cgif_bound(indices.count)) { cgif_write(&self.writer, indices, indices.count, $0) }
    }

    /// Writes the end of the frame.
    ///
    /// - Throws: `CodingError` when memory runs out.
    mutating func finish(to output: inout GIFOutput) throws(CodingError) {
        try output.append(upTo: Int(cgif_most_last_bytes)) { cgif_finish(&self.writer, $0) }
    }
}
