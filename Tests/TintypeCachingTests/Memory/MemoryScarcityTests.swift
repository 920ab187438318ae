// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.computing) struct MemoryScarcityTests {
    private struct Fixed: PressureSensor {
        let signal: PressureSignal? = nil
        func read() -> MemoryPressure? { .some }
    }

    @Test(
        arguments: [
            // The machine's free memory of 1,000, the limit and use of the group, and whether memory is short.
            (500, nil, nil, false), (99, nil, nil, true), (500, "1000", "899", false), (500, "1000", "900", true),
            (500, "max", "900", false), (50, "1000", "10", true), (nil, nil, nil, true), (nil, "1000", "10", true),
        ] as [(Int?, String?, String?, Bool)]
    )
    func `stalls count only while memory is short`(
        available: Int?,
        limit: String?,
        usage: String?,
        isShort: Bool
    ) throws {
        let folder = try ScratchFolder()
        let path = folder.url.path
        if let available {
            try Data("MemTotal:        1000 kB\nMemAvailable:     \(available) kB\n".utf8)
                .write(to: URL(filePath: path + "/meminfo"))
        }
        if let limit { try Data("\(limit)\n".utf8).write(to: URL(filePath: path + "/memory.max")) }
        if let usage { try Data("\(usage)\n".utf8).write(to: URL(filePath: path + "/memory.current")) }
        let scarcity = MemoryScarcity(meminfoPath: path + "/meminfo", folder: path)
        #expect(scarcity.isReal == isShort)
        #expect(ConfirmedSensor(base: Fixed(), scarcity: scarcity).read() == (isShort ? .some : nil))
    }
}
