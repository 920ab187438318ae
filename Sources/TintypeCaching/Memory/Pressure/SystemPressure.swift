// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// The pressure sensors of this machine for this process.
enum SystemPressure {
    /// Returns sensors for the whole machine, and for the cgroup of the process.
    static func sensors() -> [any PressureSensor] {
        let mountPath = "/sys/fs/cgroup"
        let groups = self.groups(membershipPath: "/proc/self/cgroup", mountPath: mountPath)
        let machine = MemoryScarcity()
        var sensors = self.stallSensors("/proc/pressure/memory", machine)
        if let folder = groups.second {
            let group = MemoryScarcity(folder: folder)
            sensors += self.stallSensors(folder + "/memory.pressure", group)
            if let sensor = CgroupEventSensor(folder: folder) { sensors.append(sensor) }
        }
        if let folder = groups.first {
            // The root group is the whole machine and has no limit.
            let isRoot = folder == mountPath + "/memory"
            sensors += self.levelSensors(folder).map {
                isRoot ? ConfirmedSensor(base: $0, scarcity: machine) : $0
            }
        }
        return sensors
    }

    private static func stallSensors(_ path: String, _ scarcity: MemoryScarcity) -> [any PressureSensor] {
        [MemoryPressure.some, .full].compactMap { level in
            StallSensor(path: path, level: level).map { ConfirmedSensor(base: $0, scarcity: scarcity) }
        }
    }

    private static func levelSensors(_ folder: String) -> [any PressureSensor] {
        let sensors: [any PressureSensor] = [
            CgroupLevelSensor(folder: folder, level: .some), CgroupLevelSensor(folder: folder, level: .full),
        ].compactMap { $0 }
        if sensors.count == 2 { return sensors }
        return [CgroupUsageSensor(folder: folder)].compactMap { $0 }
    }

    /// Returns the folders of the process' memory cgroups of version 1 and 2, if there are any.
    static func groups(membershipPath: String, mountPath: String) -> (first: String?, second: String?) {
        var groups: (first: String?, second: String?) = (nil, nil)
        let membership = Descriptor(path: membershipPath, flags: 0)?.text() ?? ""
        for line in membership.split(separator: "\n") {
            // There is one line per hierarchy: number, controllers, path. Version 2 has number 0 and no controllers.
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { continue }
            if fields[0] == "0", fields[1].isEmpty {
                groups.second = self.folder(mountPath, fields[2], having: "memory.events")
            } else if fields[1].split(separator: ",").contains("memory") {
                groups.first = self.folder(mountPath + "/memory", fields[2], having: "memory.pressure_level")
            }
        }
        return groups
    }

    /// Returns the folder of a group.
    ///
    /// In a container, `path` may be a path of the host that does not exist here. The mount itself is then the group of
    /// the container.
    private static func folder(_ mount: String, _ path: Substring, having file: String) -> String? {
        [mount + path, mount].first { FileManager.default.fileExists(atPath: $0 + "/" + file) }
    }
}

/// A check of the memory figures, which confirms or refutes reported stalls.
///
/// Stalls alone do not prove a shortage. A kernel that returns memory to its host ahead of need, or another group at
/// its own limit, stalls tasks on a machine with plenty of memory.
struct MemoryScarcity: Sendable {
    /// The available share of the machine's memory below which it is short.
    private static let leastAvailable = 0.1
    /// The used share of a group's limit from which it is short.
    private static let mostUsed = 0.9

    private let machine: Descriptor?
    private let limit: Descriptor?
    private let usage: Descriptor?

    /// Reads the figures of the machine, and of the group of version 2 at `folder`, if there is one.
    init(meminfoPath: String = "/proc/meminfo", folder: String? = nil) {
        self.machine = Descriptor(path: meminfoPath, flags: O_RDONLY)
        self.limit = folder.flatMap { Descriptor(path: $0 + "/memory.max", flags: O_RDONLY) }
        self.usage = folder.flatMap { Descriptor(path: $0 + "/memory.current", flags: O_RDONLY) }
    }

    /// Whether the machine or the group is short of memory; `true` if the figures are unknown.
    var isReal: Bool {
        if let share = self.groupShare, share >= Self.mostUsed { return true }
        guard let text = self.machine?.text(), let total = Self.value(of: "MemTotal:", in: text),
            let available = Self.value(of: "MemAvailable:", in: text), total > 0
        else { return true }
        return Double(available) / Double(total) < Self.leastAvailable
    }

    private var groupShare: Double? {
        guard let limit = self.limit.flatMap({ Self.number(in: $0.text()) }), limit > 0,
            let usage = self.usage.flatMap({ Self.number(in: $0.text()) })
        else { return nil }
        return Double(usage) / Double(limit)
    }

    /// Returns the kibibytes on one line of `/proc/meminfo`.
    private static func value(of name: String, in text: String) -> Int? {
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    }

    private static func number(in text: String) -> Int? {
        text.split(separator: "\n").first.flatMap { Int($0) }
    }
}

/// A sensor that reports pressure only if the memory figures confirm it.
struct ConfirmedSensor: PressureSensor {
    let base: any PressureSensor
    let scarcity: MemoryScarcity

    var signal: PressureSignal? { self.base.signal }

    func read() -> MemoryPressure? {
        self.base.read().flatMap { self.scarcity.isReal ? $0 : nil }
    }
}
