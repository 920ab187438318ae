// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency

/// Blocks of memory of bodies that are gone, for bodies to come.
///
/// `malloc` gives blocks of this size back to the system and gets them anew for nearly every body; the page
/// faults of that cost an eighth of a download of 50 kB.
final class BlockPool: Sendable {
    private struct State {
        /// The addresses of free blocks, by their size.
        var blocks: [Int: [UInt]] = [:]
        var bytes = 0
        /// The addresses and sizes of mapped blocks that nobody uses.
        var discarded: [(address: UInt, size: Int)] = []
    }

    /// For all downloaders: a body does not know whose it was.
    static let shared = BlockPool(maximumBytes: 8 << 20)
    /// The sizes that are worth it.
    static let sizes = (16 << 10)...(1 << 20)

    private let maximumBytes: Int
    private let state = Locked(State())

    init(maximumBytes: Int) {
        self.maximumBytes = maximumBytes
    }

    deinit {
        for address in self.state.withLock({ $0.blocks.values.flatMap(\.self) }) {
            free(UnsafeMutableRawPointer(bitPattern: address))
        }
        self.unmap(atMost: .max)
    }

    /// The bytes that are held now.
    var heldBytes: Int { self.state.withLock { $0.bytes } }

    /// The size of the block that has room for `count` bytes: at most a quarter more.
    static func size(for count: Int) -> Int {
        let octave = 1 << (Int.bitWidth - 1 - (max(count, 4) - 1).leadingZeroBitCount)
        let step = max(1, octave / 4)
        return (count + step - 1) / step * step
    }

    /// A block of a size that `size(for:)` has given, with anything in it, or `nil` without memory.
    func take(size: Int) -> UnsafeMutableRawPointer? {
        let address = self.state.withLock { state -> UInt? in
            guard let address = state.blocks[size]?.popLast() else { return nil }
            state.bytes -= size
            return address
        }
        return address.flatMap { UnsafeMutableRawPointer(bitPattern: $0) } ?? malloc(size)
    }

    /// Takes back a block that `take` has given.
    func give(_ block: UnsafeMutableRawPointer, size: Int) {
        let address = UInt(bitPattern: block)
        let isKept = self.state.withLock { state -> Bool in
            guard state.bytes + size <= self.maximumBytes else { return false }
            state.blocks[size, default: []].append(address)
            state.bytes += size
            return true
        }
        if !isKept { free(block) }
    }

    // MARK: Mapped blocks

    /// Takes a mapped block that ``unmap(atMost:)`` is to give back to the system.
    ///
    /// The kernel needs 5 ms for 64 MiB, in which a loop would serve nobody else.
    func discard(_ block: UnsafeMutableRawPointer, size: Int) {
        self.state.withLock { $0.discarded.append((UInt(bitPattern: block), size)) }
    }

    /// Whether there are blocks to unmap.
    var hasDiscarded: Bool { self.state.withLock { !$0.discarded.isEmpty } }

    /// Unmaps up to `byteCount` bytes of one discarded block, or all blocks if it is `Int.max`.
    func unmap(atMost byteCount: Int) {
        repeat {
            let part = self.state.withLock { state -> (address: UInt, size: Int)? in
                guard let last = state.discarded.indices.last else { return nil }
                let size = min(state.discarded[last].size, byteCount)
                state.discarded[last].size -= size
                let part = (state.discarded[last].address + UInt(state.discarded[last].size), size)
                if state.discarded[last].size == 0 { state.discarded.removeLast() }
                return part
            }
            guard let part else { return }
            munmap(UnsafeMutableRawPointer(bitPattern: part.address), part.size)
        } while byteCount == .max
    }
}
