// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport

@testable import TintypeDownloading

@Suite struct BodyBufferTests {
    @Test(arguments: [1, 4_000, 16_384, 50_000, 1_048_576, 1_500_000, 2_097_152, 2_097_153, 9_000_000])
    func `bytes come out as they went in, declared or not`(count: Int) {
        let content = pattern(count)
        for declared in [nil, count, count / 2, count * 3] {
            var buffer = BodyBuffer(limit: 64 << 20)
            if let declared { buffer.reserve(declared: declared) }
            var start = 0
            while start < count {
                let end = min(count, start + 60_001)
                let result = content[start..<end].withUnsafeBytes { buffer.append($0) }
                #expect(result == .appended)
                start = end
            }
            #expect(buffer.copy() == content)
            #expect(buffer.takeData() == content)
            #expect(buffer.takeData().isEmpty)
        }
    }

    /// Runs in a process of its own, whose memory no other test uses.
    @Test(.disabled(if: ThisProcess.isSanitized, "sanitizers take memory of their own"))
    func `a declared length that is a lie costs nothing`() async {
        await #expect(processExitsWith: .success) {
            let before = ThisProcess.residentBytes
            let buffers = (0..<40).map { _ in ReservedBuffer(declared: 60 << 20) }
            let grown = ThisProcess.residentBytes - before
            precondition(grown < 60 << 20, "\(buffers.count) buffers took \(grown) bytes")
        }
    }

    private final class ReservedBuffer {
        private var buffer = BodyBuffer(limit: 64 << 20)

        init(declared: Int) {
            self.buffer.reserve(declared: declared)
            _ = [UInt8]([7]).withUnsafeBytes { self.buffer.append($0) }
        }
    }

    @Test(arguments: [16_384, 16_385, 50_000, 65_536, 65_537, 100_000, 1_048_576])
    func `a block has room, and little over`(count: Int) {
        let size = BlockPool.size(for: count)
        #expect(size >= count)
        #expect(size <= count + count / 4)
        #expect(BlockPool.size(for: size) == size)
    }

    @Test func `a pool keeps to its limit`() throws {
        let pool = BlockPool(maximumBytes: 100_000)
        let blocks = try (0..<5).map { _ in try #require(pool.take(size: 32_768)) }
        for block in blocks { pool.give(block, size: 32_768) }
        #expect(pool.heldBytes == 98_304)
        let again = try #require(pool.take(size: 32_768))
        #expect(blocks.contains(again))
        pool.give(again, size: 32_768)
    }

    @Test func `the large block of a body that nobody wants goes back to the system in steps`() async {
        // Other tests would map memory at the same place.
        await #expect(processExitsWith: .success) {
            let (pool, size) = (BlockPool(maximumBytes: 0), 5 << 20)
            var address: UnsafeMutableRawPointer?
            do {
                var buffer = BodyBuffer(limit: size, pool: pool)
                buffer.reserve(declared: size)
                #expect(BodyBufferTests.fill(&buffer, size) == .appended)
                buffer.withBytes { address = UnsafeMutableRawPointer(mutating: $0.baseAddress) }
            }
            let base = try #require(address)
            let isMapped = { (offset: Int) in msync(base + offset, 4_096, MS_ASYNC) == 0 }
            #expect(pool.hasDiscarded && isMapped(0) && isMapped(4 << 20))
            pool.unmap(atMost: 2 << 20)
            #expect(pool.hasDiscarded && isMapped(0) && !isMapped(4 << 20))
            pool.unmap(atMost: 2 << 20)
            pool.unmap(atMost: 2 << 20)
            #expect(!pool.hasDiscarded && !isMapped(0))
        }
    }

    private static func fill(_ buffer: inout BodyBuffer, _ count: Int) -> BodyBuffer.AppendResult {
        let bytes = [UInt8](repeating: 7, count: count)
        return bytes.withUnsafeBytes { buffer.append($0) }
    }
}
