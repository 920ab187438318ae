import FoundationEssentials
import Glibc

/// The memory that this process may use: the RAM, or the limit of a cgroup or of the process where that is lower.
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
        var lowest = min(self.physicalByteCount, Self.processLimit)
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

    /// The part of the memory that this process does not use, in bytes: 0 where it uses more than it may.
    ///
    /// Pages of files, which the system can take back, and other processes are not looked at.
    package var freeByteCount: Int {
        // Pages: size, resident, and the part of these that is of files or shared.
        let fields = Self.lines(of: "/proc/self/statm").first?.split(separator: " ").compactMap { Int($0) } ?? []
        let used = fields.count > 2 ? (fields[1] - fields[2]) * sysconf(CInt(_SC_PAGESIZE)) : 0
        return max(0, self.byteCount - used)
    }

    /// What `ulimit -v` or `ulimit -d` permits.
    private static var processLimit: Int {
        [RLIMIT_AS, RLIMIT_DATA].map { resource in
            var limit = rlimit()
            return getrlimit(CInt(resource.rawValue), &limit) == 0 ? Int(clamping: limit.rlim_cur) : .max
        }.min() ?? .max
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
