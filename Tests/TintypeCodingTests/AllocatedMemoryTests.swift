// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport
import TintypeTestTraits

@Suite(.computing, .enabled(if: AllocatedMemory.isMeasured)) struct AllocatedMemoryTests {
    @Test func `the peak is what was there at once`() {
        let (_, peak) = AllocatedMemory.peak {
            for _ in 0..<3 {
                let first = UnsafeMutableRawPointer.allocate(byteCount: 1 << 20, alignment: 16)
                let second = UnsafeMutableRawPointer.allocate(byteCount: 2 << 20, alignment: 64)
                first.deallocate()
                second.deallocate()
            }
        }
        #expect(peak >= 3 << 20)
        #expect(peak < 3 << 20 + 1 << 14)
    }

    @Test func `memory from before does not count`() {
        let before = UnsafeMutableRawPointer.allocate(byteCount: 4 << 20, alignment: 16)
        let (_, peak) = AllocatedMemory.peak {
            before.deallocate()
            UnsafeMutableRawPointer.allocate(byteCount: 1 << 20, alignment: 16).deallocate()
        }
        #expect(peak == 0)
    }
}
