// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The processor time that this process may use: that of the cores, or a lower quota of a cgroup.
package struct ProcessorBudget: Sendable {
    private let membershipPath: String
    private let mountPath: String
    private let coreCount: Int

    /// Reads the quotas of this machine, or of the files that a test made.
    package init(
        membershipPath: String = "/proc/self/cgroup",
        mountPath: String = "/sys/fs/cgroup",
        coreCount: Int = ProcessInfo.processInfo.activeProcessorCount
    ) {
        self.membershipPath = membershipPath
        self.mountPath = mountPath
        self.coreCount = coreCount
    }

    /// The number of threads that can compute all the time, rounded up; at least 1.
    package var threadCount: Int {
        max(1, self.folders.compactMap { self.quota(of: $0) }.reduce(self.coreCount) { min($0, Int($1.rounded(.up))) })
    }

    /// The folders of the process's cgroup of version 2, and of those above it: each quota holds for all below.
    private var folders: [String] {
        let line = Self.text(of: self.membershipPath).split(separator: "\n").first { $0.hasPrefix("0::/") }
        let parts = line?.dropFirst("0::/".count).split(separator: "/") ?? []
        return (0...parts.count).map { ([self.mountPath] + parts.prefix($0).map(String.init)).joined(separator: "/") }
    }

    /// The quota of a group in cores: the microseconds in each period, and the period.
    private func quota(of folder: String) -> Double? {
        let numbers = Self.text(of: folder + "/cpu.max").split { " \n".contains($0) }.map { Double($0) }
        guard numbers.count == 2, let time = numbers[0], let period = numbers[1], time > 0, period > 0 else {
            return nil
        }
        return time / period
    }

    private static func text(of path: String) -> String {
        (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    }
}
