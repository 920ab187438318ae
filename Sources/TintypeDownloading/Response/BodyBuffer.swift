import FoundationEssentials
import Glibc

/// The bytes of a body while they arrive, in one block that becomes a `Data` without a copy.
struct BodyBuffer: ~Copyable {
    enum AppendResult {
        case appended
        case overLimit
        case outOfMemory
    }

    /// What a declared length may reserve: it costs the sender nothing to lie.
    private static let maximumReservation = 4 << 20
    private static let minimumCapacity = 16 << 10

    let limit: Int
    private(set) var count = 0
    private var base: UnsafeMutableRawPointer?
    private var capacity = 0

    init(limit: Int) {
        self.limit = limit
    }

    deinit {
        free(self.base)
    }

    /// Makes room for a body of `declared` bytes, as far as that is sane.
    mutating func reserve(declared: Int) {
        let wanted = min(declared, Self.maximumReservation, self.limit)
        if wanted > self.capacity { _ = self.grow(to: wanted) }
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) -> AppendResult {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return .appended }
        guard bytes.count <= self.limit - self.count else { return .overLimit }
        guard self.makeRoom(for: bytes.count), let base else { return .outOfMemory }
        memcpy(base + self.count, source, bytes.count)
        self.count += bytes.count
        return .appended
    }

    /// Lets `read` write up to `maximum` bytes behind the others; it returns how many it wrote.
    ///
    /// Returns `nil` when the memory is not to be had.
    mutating func appendInPlace(maximum: Int, _ read: (UnsafeMutableRawBufferPointer) -> Int) -> Int? {
        guard self.makeRoom(for: maximum), let base else { return nil }
        let written = read(UnsafeMutableRawBufferPointer(start: base + self.count, count: maximum))
        self.count += max(0, written)
        return written
    }

    /// Drops the bytes and keeps the memory.
    mutating func removeAll() {
        self.count = 0
    }

    borrowing func withBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
        body(UnsafeRawBufferPointer(start: self.base, count: self.count))
    }

    /// A copy of the bytes so far.
    borrowing func copy() -> Data {
        guard let base else { return Data() }
        return Data(bytes: base, count: self.count)
    }

    /// Moves the bytes out; the buffer is empty afterwards.
    mutating func takeData() -> Data {
        // A block that grew by doubling gives back what it did not need.
        if self.capacity - self.count > self.count / 8, self.count > 0 { _ = self.grow(to: self.count) }
        guard let base, self.count > 0 else { return Data() }
        defer {
            self.base = nil
            self.capacity = 0
            self.count = 0
        }
        return Data(bytesNoCopy: base, count: self.count, deallocator: .free)
    }

    private mutating func makeRoom(for additional: Int) -> Bool {
        let needed = self.count + additional
        guard needed > self.capacity else { return true }
        return self.grow(to: max(needed, self.capacity * 2, Self.minimumCapacity))
    }

    private mutating func grow(to capacity: Int) -> Bool {
        guard let block = realloc(self.base, capacity) else { return false }
        self.base = block
        self.capacity = capacity
        return true
    }
}
