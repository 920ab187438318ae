// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import FoundationEssentials
import Glibc

/// The memory that this process may use: the RAM, or a lower limit of a cgroup or of the process.
package struct MemoryBudget: Sendable {
    /// The path of the file that lists the cgroups of the process.
    private let membershipPath: String
    /// The path at which the cgroup file systems are mounted.
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
    package var byteCount: Int { self.groupLimits.reduce(self.processLimit) { min($0, $1.byteCount) } }

    /// Returns whether the process can take `byteCount` more bytes, and gives back what it keeps unused if it cannot at
    /// first.
    package func hasRoom(for byteCount: Int, givingBack giveBack: () -> Void = Self.giveBack) -> Bool {
        if byteCount <= self.freeByteCount { return true }
        giveBack()
        return byteCount <= self.freeByteCount
    }

    /// Frees the blocks of pixels that are kept for the next image.
    package static func freeBlocks() { cshims_drop_blocks() }

    /// Returns unused memory to the system: kept blocks and the free pages of the heap, which count as used until then.
    package static func giveBack() {
        self.freeBlocks()
        _ = cshims_trim_heap()
    }

    /// The part of the memory that is free, in bytes: 0 if more is used than is permitted.
    ///
    /// A limit of the process and the RAM are compared with the memory of this process, and the limit of each cgroup with
    /// the memory of all its processes: the kernel counts in the same way before it kills one.
    package var freeByteCount: Int {
        let own = Self.ownByteCount
        let free = self.groupLimits.reduce(self.processLimit - own) { free, limit in
            min(free, limit.byteCount - (limit.group.heldByteCount ?? own))
        }
        return max(0, free)
    }

    /// The bytes of this process without the pages of files, which the system can take back.
    private static var ownByteCount: Int {
        // Pages: size, resident, and the part of these that is of files or shared.
        let fields = Self.lines(of: "/proc/self/statm").first?.split(separator: " ").compactMap { Int($0) } ?? []
        return fields.count > 2 ? (fields[1] - fields[2]) * sysconf(CInt(_SC_PAGESIZE)) : 0
    }

    /// The RAM, or what `ulimit -v` or `ulimit -d` permits.
    private var processLimit: Int {
        [RLIMIT_AS, RLIMIT_DATA].reduce(self.physicalByteCount) { lowest, resource in
            var limit = rlimit()
            guard getrlimit(CInt(resource.rawValue), &limit) == 0 else { return lowest }
            return min(lowest, Int(clamping: limit.rlim_cur))
        }
    }

    /// The cgroups of the process that have a limit, and the groups above them: each limit holds for all below.
    private var groupLimits: [(group: ControlGroup, byteCount: Int)] {
        Self.lines(of: self.membershipPath).flatMap { line -> [ControlGroup] in
            // One line a hierarchy: number, controllers, path. Version 2 has number 0 and no controllers.
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { return [] }
            if fields[0] == "0", fields[1].isEmpty {
                return ControlGroup.all(under: self.mountPath, path: fields[2], .version2)
            }
            guard fields[1].split(separator: ",").contains("memory") else { return [] }
            return ControlGroup.all(under: self.mountPath + "/memory", path: fields[2], .version1)
        }
        .compactMap { group in group.limit.map { (group, $0) } }
    }

    fileprivate static func lines(of path: String) -> [Substring] {
        guard let data = try? Data(contentsOf: URL(filePath: path)) else { return [] }
        return String(decoding: data, as: UTF8.self).split(separator: "\n")
    }
}

/// A cgroup whose memory is counted.
package struct ControlGroup: Sendable {
    /// The files of a version that tell of memory.
    package struct Files: Sendable {
        fileprivate let limit: String
        fileprivate let usage: String
        /// The pages in `memory.stat` that the kernel takes back before it kills a process: of files, and pages that
        /// processes have marked as free (`MADV_FREE`).
        fileprivate let reclaimableNames: [Substring]

        package static let version1 = Files(
            limit: "memory.limit_in_bytes",
            usage: "memory.usage_in_bytes",
            reclaimableNames: ["total_inactive_file", "total_active_file"]
        )
        package static let version2 = Files(
            limit: "memory.max",
            usage: "memory.current",
            reclaimableNames: ["inactive_file", "active_file", "slab_reclaimable"]
        )
    }

    private let folder: String
    private let files: Files

    /// The group at `path`, and those above it.
    ///
    /// In a container the path may be the host's and not exist here; the mount itself is then the container's own group.
    fileprivate static func all(under mount: String, path: Substring, _ files: Files) -> [ControlGroup] {
        var folder = mount
        return [ControlGroup(folder: mount, files: files)]
            + path.split(separator: "/").map { part in
                folder += "/" + part
                return ControlGroup(folder: folder, files: files)
            }
    }

    /// The limit in bytes; `nil` for the text "max" of version 2, for which version 1 has a number near `Int.max`.
    fileprivate var limit: Int? { self.number(in: self.files.limit) }

    /// The bytes that the processes of the group use and the kernel cannot take back; `nil` if that is not known.
    fileprivate var heldByteCount: Int? {
        self.number(in: self.files.usage).map {
            Self.heldByteCount(usage: $0, statistics: self.lines(of: "memory.stat"), self.files)
        }
    }

    /// Returns the part of `usage` that the kernel cannot take back, by the lines of `memory.stat`.
    package static func heldByteCount(usage: Int, statistics: [Substring], _ files: Files) -> Int {
        statistics.reduce(usage) { rest, line in
            let fields = line.split(separator: " ")
            guard fields.count == 2, files.reclaimableNames.contains(fields[0]), let count = Int(fields[1]), count > 0
            else { return rest }
            // The kernel changes the figures while they are read.
            return max(0, rest - min(rest, count))
        }
    }

    private func number(in file: String) -> Int? { self.lines(of: file).first.flatMap { Int($0) } }

    private func lines(of file: String) -> [Substring] { MemoryBudget.lines(of: self.folder + "/" + file) }
}
