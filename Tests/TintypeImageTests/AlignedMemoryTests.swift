// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport

@testable import TintypeImage

/// Tests of the blocks that the process caches, each in a process of its own.
@Suite(.enabled(if: AllocatedMemory.isMeasured)) struct AlignedMemoryTests {
    /// Allocates and frees a block of the given size, and returns its address.
    private static func address(ofSize byteCount: Int, writing byte: UInt8? = nil) throws -> UInt {
        let memory = try AlignedMemory(byteCount: byteCount)
        if let byte { memory.bytes.initializeMemory(as: UInt8.self, repeating: byte) }
        return UInt(bitPattern: memory.start)
    }

    @Test func `a large block is used again for the next one of about its size`() async {
        await #expect(processExitsWith: .success) {
            let first = try AlignedMemoryTests.address(ofSize: 10 << 20, writing: 255)
            // Occupy the address that the allocator would choose again if the block was not cached.
            let held = try AlignedMemory(byteCount: 32 << 20)
            #expect(try AlignedMemoryTests.address(ofSize: 10 << 20) == first)
            #expect(try AlignedMemoryTests.address(ofSize: 9 << 20) == first)
            #expect(try AlignedMemoryTests.address(ofSize: 7 << 20) != first)
            #expect(try AlignedMemoryTests.address(ofSize: 11 << 20) != first)
            #expect(UInt(bitPattern: held.start) != first)
        }
    }

    @Test func `what is in use is used by nothing else`() async {
        await #expect(processExitsWith: .success) {
            _ = try AlignedMemoryTests.address(ofSize: 8 << 20)
            let first = try AlignedMemory(byteCount: 8 << 20)
            let second = try AlignedMemory(byteCount: 8 << 20)
            #expect(first.start != second.start)
        }
    }

    @Test func `an image that is zero at first is so in a used block`() async {
        await #expect(processExitsWith: .success) {
            let layout = try PixelLayout(format: .rgba8, width: 1_024, height: 2_048)
            let first = try PixelBuffer(
                layout,
                fillingUnsafely: { $0.initializeMemory(as: UInt8.self, repeating: 255) }
            )
            .withUnsafeBytes { $0.baseAddress }
            let image = try PixelBuffer(layout, filling: { _ in })
            image.withUnsafeBytes { bytes in
                #expect(bytes.baseAddress == first)
                #expect(bytes.allSatisfy { $0 == 0 })
            }
        }
    }

    /// Returns the size of the memory that the system cannot reclaim, or `nil` on kernels before 4.12.
    private static func heldKilobytes() throws -> Int? {
        let lines = try String(contentsOfFile: "/proc/self/smaps_rollup", encoding: .utf8).split(separator: "\n")
        func value(_ name: String) -> Int? {
            lines.first { $0.hasPrefix(name + ":") }?.split(separator: " ").compactMap { Int($0) }.first
        }
        guard let all = value("Anonymous"), let free = value("LazyFree") else { return nil }
        return all - free
    }

    @Test func `at most 64 MiB are kept, and the system may take them`() async {
        await #expect(processExitsWith: .success) {
            let before = cshims_trim_heap()
            let held = try AlignedMemoryTests.heldKilobytes()
            for size in [16, 20, 30, 24, 40, 100, 12] {
                _ = try AlignedMemoryTests.address(ofSize: size << 20, writing: 1)
            }
            #expect(cshims_trim_heap() < before + 65 << 20)
            #expect(cshims_trim_heap() > before + 48 << 20)
            if let held { #expect(try AlignedMemoryTests.heldKilobytes() ?? 0 < held + 16 << 10) }
        }
    }

    @Test func `nothing is kept while memory is measured, or limited`() async {
        await #expect(processExitsWith: .success) {
            let before = cshims_trim_heap()
            _ = try AllocatedMemory.peak { try AlignedMemoryTests.address(ofSize: 16 << 20) }
            var limit = rlimit(rlim_cur: 64 << 30, rlim_max: 64 << 30)
            setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
            _ = try AlignedMemoryTests.address(ofSize: 16 << 20)
            #expect(cshims_trim_heap() < before + 8 << 20)
        }
    }
}
