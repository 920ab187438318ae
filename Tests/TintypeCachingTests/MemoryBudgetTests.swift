import FoundationEssentials
import TestTraits
import Testing
import TintypeConcurrency

@testable import TintypeCaching

@Suite(.computing) struct MemoryBudgetTests {
    private let folder: ScratchFolder

    init() throws {
        self.folder = try ScratchFolder()
    }

    @Test(
        arguments: [
            // membership, files, expected
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
    func isTheLowestLimit(membership: String, files: [String: String], expected: Int) throws {
        let mount = self.folder.path + "/mount"
        for (name, content) in files {
            let url = URL(filePath: mount + "/" + name)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(content.utf8).write(to: url)
        }
        let membershipPath = self.folder.path + "/cgroup"
        try Data(membership.utf8).write(to: URL(filePath: membershipPath))
        let budget = MemoryBudget(membershipPath: membershipPath, mountPath: mount, physicalByteCount: 1_000)
        #expect(budget.byteCount == expected)
    }

    @Test func isTheMemoryOfTheMachineWhereNothingIsKnown() {
        let budget = MemoryBudget(membershipPath: "/nonexistent", mountPath: "/nonexistent", physicalByteCount: 7)
        #expect(budget.byteCount == 7)
        #expect(MemoryBudget().byteCount > 0)
    }
}
