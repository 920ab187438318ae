// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency

/// The body of a transfer while it arrives: its bytes, the decoder of its codings, and the memory that both may take.
struct IncomingBody: ~Copyable {
    /// The result of an attempt to take bytes.
    enum Outcome {
        case taken
        case tooLarge
        case outOfMemory
        /// The budget has no room for so many bytes in all.
        case noRoom(wantedByteCount: Int)
    }

    private(set) var buffer: BodyBuffer
    /// The share of the budget of all bodies.
    let claim: ByteClaim
    /// Whether the bytes may be more than the budget has.
    var mayExceedBudget = false
    /// The decoder of the codings, if there are any.
    var decoder: ContentDecoder?
    /// The bytes that went to the reader of a stream, and are not in the buffer.
    private var streamedBytes = 0

    init(limit: Int, budget: ByteBudget) {
        self.buffer = BodyBuffer(limit: limit, pool: .shared)
        self.claim = ByteClaim(budget)
    }

    /// The most bytes that the body may have.
    var limit: Int { self.buffer.limit }

    /// The bytes that are in the buffer.
    var count: Int { self.buffer.count }

    /// The bytes that have come, over all tries.
    var receivedBytes: Int { self.buffer.count + self.streamedBytes }

    /// Makes room for a body of `declared` bytes as soon as the first of them come.
    mutating func reserve(declared: Int) {
        self.buffer.reserve(declared: declared)
    }

    // MARK: Bytes

    /// Takes bytes of the representation.
    ///
    /// - Parameters:
    ///   - bytes: The bytes.
    ///   - isShown: Whether observers get a copy of all bytes.
    /// - Returns: Whether the bytes are in the buffer, or the reason why they are not.
    mutating func append(_ bytes: UnsafeRawBufferPointer, isShown: Bool) -> Outcome {
        if let wanted = self.claimRoom(for: bytes.count, isShown: isShown) { return .noRoom(wantedByteCount: wanted) }
        return switch self.buffer.append(bytes) {
        case .appended: .taken
        case .overLimit: .tooLarge
        case .outOfMemory: .outOfMemory
        }
    }

    /// Whether the limit leaves room for `count` bytes of a stream.
    func hasRoom(forStreamed count: Int) -> Bool { self.streamedBytes + count <= self.buffer.limit }

    /// Records bytes that the reader of a stream has.
    mutating func didStream(_ count: Int) {
        self.streamedBytes += count
    }

    /// Takes the first bytes of a body from the store; returns false if these are too many.
    mutating func restore(_ bytes: Data) -> Bool {
        guard bytes.withUnsafeBytes({ self.buffer.append($0) }) == .appended else {
            self.buffer.removeAll()
            return false
        }
        self.claim.set(self.buffer.heldByteCount())
        return true
    }

    /// Moves the bytes out; the transfer is over.
    mutating func takeData() -> Data {
        let held = self.buffer.heldByteCount()
        let data = self.buffer.takeData()
        // Most of the spare memory goes back to the system.
        self.claim.set(min(held, data.count + data.count / 4))
        if !data.isEmpty { self.claim.hold() }
        return data
    }

    /// Drops the bytes, but keeps their memory for the next response.
    mutating func removeAll() {
        self.buffer.removeAll()
    }

    /// Drops everything that takes memory.
    mutating func reset(limit: Int) {
        self.buffer = BodyBuffer(limit: limit, pool: .shared)
        self.decoder = nil
        self.claim.set(0)
    }

    /// Gets ready for another try, which may continue the bytes in the buffer.
    mutating func restart() {
        self.decoder = nil
        if self.buffer.count == 0 { self.claim.giveBack() }
    }

    // MARK: Memory

    /// Claims the memory for `count` bytes more; returns the bytes that are wanted in all if there is no room for them.
    mutating func claimRoom(for count: Int, isShown: Bool) -> Int? {
        let wanted = self.heldByteCount(adding: count, isShown: isShown)
        guard wanted > self.claim.byteCount, !self.claim.grow(to: wanted) else { return nil }
        guard self.mayExceedBudget else { return wanted }
        self.claim.set(wanted)
        return nil
    }

    /// Claims the memory that is held already, whether or not it fits: the library that undoes a coding tells of its
    /// window only when it has it.
    ///
    /// Only the windows of one body exceed the budget so: all transfers have one thread, and each begins to decode only
    /// if its body fits.
    func claimHeldBytes(isShown: Bool) {
        let held = self.heldByteCount(isShown: isShown)
        if held > self.claim.byteCount { self.claim.set(held) }
    }

    private func heldByteCount(adding count: Int = 0, isShown: Bool) -> Int {
        // Observers get a copy, which their decoder keeps.
        self.buffer.heldByteCount(adding: count) * (isShown ? 2 : 1) + (self.decoder?.heldByteCount ?? 0)
    }
}
