// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import TintypeCaching

/// A memory cgroup for one test, with a limit.
///
/// Creating one needs the right to create cgroups.
final class LimitedCgroup: Sendable {
    let path: String
    private let isFirstVersion: Bool

    /// Whether this process may create a memory cgroup.
    static let isAvailable: Bool = (try? LimitedCgroup(byteCount: 64 << 20)) != nil

    init(byteCount: Int) throws {
        let groups = SystemPressure.groups(membershipPath: "/proc/self/cgroup", mountPath: "/sys/fs/cgroup")
        guard let parent = groups.first ?? groups.second else { throw LimitedCgroupError() }
        self.isFirstVersion = groups.first != nil
        self.path = "\(parent)/tintype-test-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        guard mkdir(self.path, 0o755) == 0 else { throw LimitedCgroupError() }
        let limit = self.isFirstVersion ? "memory.limit_in_bytes" : "memory.max"
        guard self.write("\(byteCount)", to: limit) else {
            rmdir(self.path)
            throw LimitedCgroupError()
        }
    }

    deinit {
        // Ended processes may take a moment to leave the group.
        for _ in 0..<100_000 where rmdir(self.path) != 0 && errno == EBUSY { sched_yield() }
    }

    /// The sensors that watch the group.
    var sensors: [any PressureSensor] {
        guard self.isFirstVersion else { return [CgroupEventSensor(folder: self.path)].compactMap { $0 } }
        return [
            CgroupLevelSensor(folder: self.path, level: .some), CgroupLevelSensor(folder: self.path, level: .full),
        ].compactMap { $0 }
    }

    /// Writes and reads files of `byteCount` bytes within the group until `condition` holds.
    ///
    /// The page cache counts for the group. The group must release pages again and again, but no process is killed.
    func press(byteCount: Int, in folder: String, until condition: @escaping @Sendable () -> Bool) {
        let file = folder + "/pages"
        let script = """
            echo $$ > '\(self.path)/cgroup.procs' || exit 1
            head -c \(byteCount) /dev/zero > '\(file)'
            exec cat '\(file)' > /dev/null
            """
        for _ in 0..<50 where !condition() {
            guard let pipe = popen(script, "r") else { return }
            pclose(pipe)
        }
        unlink(file)
    }

    private func write(_ text: String, to file: String) -> Bool {
        Descriptor(path: self.path + "/" + file, flags: O_WRONLY)?.write(text) ?? false
    }
}

struct LimitedCgroupError: Error {}
