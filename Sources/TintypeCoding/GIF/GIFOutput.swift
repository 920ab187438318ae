// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeImage

/// The bytes of a GIF that is being written.
///
/// A large block usually grows in place, so that an encode does not hold its output twice.
struct GIFOutput: ~Copyable {
    private static let doublingLimit = 1 << 20

    /// The approximate most bytes needed; the buffer grows beyond it only if it must.
    private let expectedMaximum: Int
    private var block: UnsafeMutablePointer<UInt8>?
    private var capacity = 0
    /// The number of bytes written.
    private(set) var count = 0

    init(expectedMaximum: Int) {
        self.expectedMaximum = expectedMaximum
    }

    deinit {
        free(self.block)
    }

    /// Appends a few bytes.
    ///
    /// - Throws: `CodingError` when memory runs out.
    mutating func append(_ bytes: [UInt8]) throws(CodingError) {
        try self.append(upTo: bytes.count) { target in
            target.update(from: bytes, count: bytes.count)
            return bytes.count
        }
    }

    /// Appends a number of two bytes, lower byte first; larger numbers are clamped.
    mutating func append(_ number: Int) throws(CodingError) {
        let number = UInt16(clamping: number)
        try self.append([UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)])
    }

    /// Lets `write` append up to `maximum` bytes; `write` returns their number.
    ///
    /// - Throws: `CodingError` when memory runs out.
    mutating func append(upTo maximum: Int, _ write: (UnsafeMutablePointer<UInt8>) -> Int) throws(CodingError) {
        try self.reserve(maximum)
        guard let block else { return }
        self.count += write(block + self.count)
    }

    /// Removes bytes, and moves the ones behind them up.
    mutating func remove(_ range: Range<Int>) {
        guard let block, range.upperBound <= self.count else { return }
        memmove(block + range.lowerBound, block + range.upperBound, self.count - range.upperBound)
        self.count -= range.count
    }

    /// Returns the bytes in memory that fits them exactly.
    consuming func data() -> Data {
        guard let block = self.block.take() else { return Data() }
        let count = self.count
        let fitting = realloc(block, max(1, count)) ?? UnsafeMutableRawPointer(block)
        return Data(bytesNoCopy: fitting, count: count, deallocator: .free)
    }

    private mutating func reserve(_ more: Int) throws(CodingError) {
        let needed = self.count + more
        guard needed > self.capacity else { return }
        let grown = self.capacity + (self.capacity < Self.doublingLimit ? self.capacity : self.capacity / 4)
        let capacity = max(needed, min(max(grown, 1 << 12), self.expectedMaximum))
        guard MemoryRoom.has(capacity - self.capacity), let block = realloc(self.block, capacity) else {
            throw .outOfMemory(.gif)
        }
        self.block = block.assumingMemoryBound(to: UInt8.self)
        self.capacity = capacity
    }
}
