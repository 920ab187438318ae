// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeConcurrency
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@Suite(.computing) struct MemoryBudgetTests {
    private let folder: ScratchFolder

    init() throws {
        self.folder = try ScratchFolder()
    }

    @Test(
        arguments: [
            // Membership, files, and the expected limit.
            ("0::/\n", [:], 1_000),
            ("0::/a/b\n", ["a/b/memory.max": "max"], 1_000),
            ("0::/a/b\n", ["a/b/memory.max": "300\n"], 300),
            ("0::/a/b\n", ["a/b/memory.max": "300\n", "a/memory.max": "200\n"], 200),
            ("0::/a/b\n", ["a/b/memory.max": "5000\n"], 1_000),
            // In a container the path is the host's, and the mount is the container's group.
            ("0::/host/only\n", ["memory.max": "400\n"], 400),
            ("9:cpu:/x\n4:memory:/x\n", ["memory/x/memory.limit_in_bytes": "500\n"], 500),
            ("4:cpu,memory:/x:y\n", ["memory/x:y/memory.limit_in_bytes": "600\n"], 600),
            ("4:memory:/x\n", ["memory/x/memory.limit_in_bytes": "9223372036854771712\n"], 1_000),
            ("garbage\n:\n0::", ["memory.max": "junk"], 1_000),
        ] as [(String, [String: String], Int)]
    )
    func `is the lowest limit`(membership: String, files: [String: String], expected: Int) throws {
        let budget = try self.budget(membership, files)
        #expect(budget.byteCount == expected)
    }

    @Test func `is the memory of the machine where nothing is known`() {
        let budget = MemoryBudget(membershipPath: "/nonexistent", mountPath: "/nonexistent", physicalByteCount: 7)
        #expect(budget.byteCount == 7)
        #expect(MemoryBudget().byteCount > 0)
    }

    private func budget(
        _ membership: String,
        _ files: [String: String],
        physicalByteCount: Int = 1_000
    ) throws -> MemoryBudget {
        let mount = self.folder.path + "/mount"
        for (name, content) in files { try self.write(content, to: name) }
        let membershipPath = self.folder.path + "/cgroup"
        try Data(membership.utf8).write(to: URL(filePath: membershipPath))
        return MemoryBudget(
            membershipPath: membershipPath,
            mountPath: mount,
            physicalByteCount: physicalByteCount
        )
    }

    private func write(_ content: String, to name: String) throws {
        let url = URL(filePath: self.folder.path + "/mount/" + name)
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(content.utf8).write(to: url)
    }

    @Test(
        arguments: [
            // Usage, statistics, version, and the expected use.
            (1_000, "", .version2, 1_000),
            (1_000, "anon 500\nfile 450\ninactive_file 300\nactive_file 100\nslab_reclaimable 50\n", .version2, 550),
            // Pages of a file system in memory are not in these lists.
            (1_000, "shmem 700\ninactive_anon 700\n", .version2, 1_000),
            (1_000, "inactive_file 90\nactive_file 9\ntotal_inactive_file 300\ntotal_active_file 100", .version1, 600),
            (1_000, "inactive_file 900\nactive_file 900\n", .version2, 0),
            (1_000, "inactive_file -5\nactive_file junk\ninactive_file\n\n", .version2, 1_000),
            (.max, "inactive_file \(Int.max)\nactive_file 1\n", .version2, 0),
        ] as [(Int, String, ControlGroup.Files, Int)]
    )
    func `pages of files in a cgroup are not held`(
        usage: Int,
        statistics: String,
        files: ControlGroup.Files,
        expected: Int
    ) {
        let lines = statistics.split(separator: "\n")
        #expect(ControlGroup.heldByteCount(usage: usage, statistics: lines, files) == expected)
    }

    @Test(
        arguments: [
            ("0::/a/b\n", ["a/b/memory.max": "300", "a/b/memory.current": "250"], 50),
            (
                "0::/a/b\n",
                ["a/b/memory.max": "300", "a/b/memory.current": "250", "a/b/memory.stat": "active_file 200\n"], 250
            ),
            // Another process belongs to the parent group.
            (
                "0::/a/b\n",
                [
                    "a/b/memory.max": "300", "a/b/memory.current": "100", "a/memory.max": "500",
                    "a/memory.current": "480",
                ], 20
            ),
            (
                "0::/a\n",
                [
                    "a/memory.max": "max", "a/memory.current": "250", "memory.max": "390", "memory.current": "300",
                ], 90
            ),
            ("0::/a\n", ["a/memory.max": "300", "a/memory.current": "400"], 0),
            (
                "4:memory:/x\n",
                [
                    "memory/x/memory.limit_in_bytes": "500", "memory/x/memory.usage_in_bytes": "450",
                    "memory/x/memory.stat": "total_inactive_file 150",
                ], 200
            ),
        ] as [(String, [String: String], Int)]
    )
    func `the room in a cgroup is what nobody holds of its limit`(
        membership: String,
        files: [String: String],
        expected: Int
    ) throws {
        let budget = try self.budget(membership, files, physicalByteCount: 1 << 50)
        #expect(budget.freeByteCount == expected)
    }

    @Test func `the room is looked at again when unused memory was given back`() throws {
        let name = "a/memory.current"
        let budget = try self.budget(
            "0::/a\n",
            ["a/memory.max": "1000", name: "900"],
            physicalByteCount: 1 << 50
        )
        #expect(budget.hasRoom(for: 100, givingBack: { Issue.record("gave back without need") }))
        #expect(!budget.hasRoom(for: 101, givingBack: {}))
        #expect(budget.hasRoom(for: 101, givingBack: { try? self.write("800", to: name) }))
    }

    @Test(.disabled(if: ThisProcess.isSanitized, "sanitizers keep what is freed"))
    func `blocks that are kept and pages of the heap that are free are given back for large ones`() async {
        await #expect(processExitsWith: .success) {
            MemoryBudget.giveBack()
            let free = MemoryBudget(membershipPath: "/nonexistent", physicalByteCount: 1 << 40).freeByteCount
            let budget = MemoryBudget(
                membershipPath: "/nonexistent",
                physicalByteCount: 1 << 40 - free + 72 << 20
            )
            for size in [16, 24] {
                let memory = try AlignedMemory(byteCount: size << 20)
                memset(memory.start, 1, size << 20)
            }
            var blocks = (0..<2_000).map { _ in malloc(16 << 10) }
            for block in blocks { if let block { memset(block, 1, 16 << 10) } }
            let last = malloc(16)
            for block in blocks { Glibc.free(block) }
            blocks = []
            #expect(budget.freeByteCount < 40 << 20)
            #expect(budget.hasRoom(for: 64 << 20))
            Glibc.free(last)
        }
    }
}
