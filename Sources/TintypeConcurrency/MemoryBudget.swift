import FoundationEssentials
import Glibc

/// The memory that this process may use: the RAM, or the limit of a cgroup where that is lower.
package struct MemoryBudget: Sendable {
    /// Where the process finds the names of its cgroups.
    private let membershipPath: String
    /// Where the cgroup file systems are mounted.
    private let mountPath: String
    /// The RAM of the machine in bytes.
    private let physicalByteCount: Int

    /// Reads the limits of this machine, or of the files that a test made.
    package init(
        membershipPath: String = "/proc/self/cgroup",
        mountPath: String = "/sys/fs/cgroup",
        physicalByteCount: Int = sysconf(CInt(_SC_PHYS_PAGES)) * sysconf(CInt(_SC_PAGESIZE))
    ) {
        self.membershipPath = membershipPath
        self.mountPath = mountPath
        self.physicalByteCount = physicalByteCount
    }

    /// The memory in bytes.
    package var byteCount: Int {
        var lowest = self.physicalByteCount
        for line in Self.lines(of: self.membershipPath) {
            // One line a hierarchy: number, controllers, path. Version 2 has number 0 and no controllers.
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { continue }
            if fields[0] == "0", fields[1].isEmpty {
                lowest = min(lowest, self.limit(under: self.mountPath, path: fields[2], file: "memory.max"))
            } else if fields[1].split(separator: ",").contains("memory") {
                let mount = self.mountPath + "/memory"
                lowest = min(lowest, self.limit(under: mount, path: fields[2], file: "memory.limit_in_bytes"))
            }
        }
        return lowest
    }

    /// The lowest limit of the group at `path` and of those above it: each holds for all below.
    ///
    /// In a container the path may be the host's and not exist here; the mount itself is then the
    /// container's own group.
    private func limit(under mount: String, path: Substring, file: String) -> Int {
        var lowest = Int.max
        var group = mount
        let parts: [Substring] = [""] + path.split(separator: "/")
        for part in parts {
            if !part.isEmpty { group += "/" + part }
            // Version 2 says "max" where there is no limit, version 1 a number near `Int.max`.
            if let text = Self.lines(of: group + "/" + file).first, let value = Int(text) {
                lowest = min(lowest, value)
            }
        }
        return lowest
    }

    private static func lines(of path: String) -> [Substring] {
        guard let data = try? Data(contentsOf: URL(filePath: path)) else { return [] }
        return String(decoding: data, as: UTF8.self).split(separator: "\n")
    }
}
