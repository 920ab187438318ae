// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// The bytes of a body while they arrive, in one block that becomes a `Data` without a copy.
///
/// A block costs what has arrived, whatever length was declared: large ones are mapped, and untouched until
/// bytes come.
struct BodyBuffer: ~Copyable {
    enum AppendResult {
        case appended
        case overLimit
        case outOfMemory
    }

    private static let minimumCapacity = 16 << 10

    let limit: Int
    private(set) var count = 0
    private var block: BodyBlock?
    /// The bytes that the block is made for when the first of them come.
    private var declared = 0

    /// The pool that unmaps a large block in steps; `nil` unmaps it at once.
    private let pool: BlockPool?

    init(limit: Int, pool: BlockPool? = nil) {
        self.limit = limit
        self.pool = pool
    }

    deinit {
        self.block?.free(by: self.pool)
    }

    private var capacity: Int { self.block?.capacity ?? 0 }

    /// Makes room for a body of `declared` bytes, within the limit, as soon as the first of them come.
    mutating func reserve(declared: Int) {
        self.declared = min(declared, self.limit)
    }

    /// Returns the memory that the body takes with `additional` more bytes.
    ///
    /// A mapped block counts as far as it was touched, any other block in full.
    borrowing func heldByteCount(adding additional: Int = 0) -> Int {
        let needed = self.count + additional
        guard needed > 0 || self.block != nil else { return 0 }
        let capacity = needed > self.capacity ? self.capacity(for: needed) : self.capacity
        return BodyBlock.residentByteCount(capacity: capacity, count: needed)
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) -> AppendResult {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return .appended }
        guard bytes.count <= self.limit - self.count else { return .overLimit }
        guard self.makeRoom(for: bytes.count), let block else { return .outOfMemory }
        memcpy(block.base + self.count, source, bytes.count)
        self.count += bytes.count
        return .appended
    }

    /// Lets `read` write up to `maximum` bytes behind the others; it returns how many it wrote.
    ///
    /// Returns `nil` when the memory is not to be had.
    mutating func appendInPlace(maximum: Int, _ read: (UnsafeMutableRawBufferPointer) -> Int) -> Int? {
        guard self.makeRoom(for: maximum), let block else { return nil }
        let written = read(UnsafeMutableRawBufferPointer(start: block.base + self.count, count: maximum))
        self.count += max(0, written)
        return written
    }

    /// Drops the bytes and keeps the memory.
    mutating func removeAll() {
        self.count = 0
    }

    borrowing func withBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
        body(UnsafeRawBufferPointer(start: self.block?.base, count: self.count))
    }

    /// A copy of the bytes so far.
    borrowing func copy() -> Data {
        guard let block else { return Data() }
        return Data(bytes: block.base, count: self.count)
    }

    /// Moves the bytes out; the buffer is empty afterwards.
    mutating func takeData() -> Data {
        guard let block = self.block.take() else { return Data() }
        let count = self.count
        self.count = 0
        guard count > 0 else {
            block.free()
            return Data()
        }
        return block.makeData(count: count)
    }

    private mutating func makeRoom(for additional: Int) -> Bool {
        let needed = self.count + additional
        guard needed > self.capacity else { return true }
        // If the declared size does not fit into memory, the received bytes may.
        return self.grow(to: self.capacity(for: needed))
            || self.grow(to: max(needed, self.capacity * 2, Self.minimumCapacity))
            || self.grow(to: needed)
    }

    private borrowing func capacity(for needed: Int) -> Int {
        if needed <= self.declared { return self.declared }
        return max(needed, self.capacity * 2, Self.minimumCapacity)
    }

    private mutating func grow(to capacity: Int) -> Bool {
        guard let block = BodyBlock.grown(self.block, count: self.count, to: capacity) else { return false }
        self.block = block
        return true
    }
}
