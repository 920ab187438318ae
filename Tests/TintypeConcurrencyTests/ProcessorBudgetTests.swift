// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeTestSupport

@Suite("The processor time that a process may use")
struct ProcessorBudgetTests {
    @Test(
        arguments: [
            (["": "max 100000"], 8), (["": "150000 100000"], 2), (["": "max 100000", "/a": "400000 100000"], 4),
            (["": "200000 100000", "/a": "400000 100000", "/a/b": "max 100000"], 2), (["/a/b": "10000 100000"], 1),
            (["": "1600000 100000"], 8), (["": "nonsense"], 8), ([:], 8),
        ] as [([String: String], Int)]
    )
    func `the lowest quota of the groups counts, rounded up to whole threads`(
        files: [String: String],
        expected: Int
    ) throws {
        let folder = try TemporaryDirectory()
        for (group, text) in files {
            let url = folder.url(of: "cgroup\(group)")
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: url.appending(path: "cpu.max"))
        }
        try Data("0::/a/b\n".utf8).write(to: folder.url(of: "membership"))
        let budget = ProcessorBudget(
            membershipPath: folder.url(of: "membership").path(),
            mountPath: folder.url(of: "cgroup").path(),
            coreCount: 8
        )
        #expect(budget.threadCount == expected)
    }
}
