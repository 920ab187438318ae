// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeTestSupport

/// A network whose loopback interface answers for every address.
struct IsolatedNetwork {
    static let nameServerAddress = "127.0.0.53"

    /// Contains the files that replace the system's until the process ends.
    private let folder: TemporaryDirectory

    /// Leaves the network and the mounts of this machine, and sets up new ones.
    ///
    /// The process must have a single thread, because existing threads stay in the old namespaces.
    init() throws {
        try Self.leaveNamespaces()
        self.folder = try TemporaryDirectory(prefix: "tintype-probe")
        try self.replace("/etc/resolv.conf", by: "nameserver \(Self.nameServerAddress)\noptions timeout:5 attempts:1\n")
        try self.replace("/etc/nsswitch.conf", by: "hosts: files dns\n")
        try self.replace("/etc/hosts", by: "")
        let socket = try RouteSocket()
        try socket.bringUpLoopback()
        // Make the whole address space local (ip route add local default dev lo).
        try socket.addLocalDefaultRoute(family: AF_INET)
        try socket.addLocalDefaultRoute(family: AF_INET6)
    }

    /// Leaves the namespaces of this machine, before which nothing may be changed because it would affect the whole
    /// machine.
    private static func leaveNamespaces() throws {
        // A sanitizer has its own thread, which starts no others.
        guard ThisProcess.threadNames.count == 1 || ThisProcess.isSanitized else {
            throw TestSupportError("Threads that have started already would stay outside.")
        }
        let outside = try Self.namespaces()
        // The header declares it for GNU sources only.
        typealias Unshare = @convention(c) (CInt) -> CInt
        guard let symbol = dlsym(nil, "unshare") else { throw TestSupportError("This system has no namespaces.") }
        let (newNetwork, newMounts): (CInt, CInt) = (0x4000_0000, 0x0002_0000)
        guard unsafeBitCast(symbol, to: Unshare.self)(newNetwork | newMounts) == 0 else {
            throw TestSupportError("No namespaces could be made: errno \(errno). Run the probe as root.")
        }
        // Keep the new mounts invisible outside.
        guard mount("none", "/", nil, UInt(MS_REC | MS_PRIVATE), nil) == 0 else {
            throw TestSupportError("The mounts could not be made private: errno \(errno).")
        }
        guard Set(try Self.namespaces()).isDisjoint(with: outside) else {
            throw TestSupportError("The process is still in the namespaces of this machine.")
        }
    }

    /// Returns the kernel's names for the network and the mounts of the calling thread.
    private static func namespaces() throws -> [String] {
        try ["net", "mnt"].map { name in
            try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self/ns/\(name)")
        }
    }

    private func replace(_ path: String, by content: String) throws {
        guard access(path, F_OK) == 0 else { return }
        let file = try self.folder.write(content.utf8, to: path.split(separator: "/").joined(separator: "-"))
        guard mount(file, path, nil, UInt(MS_BIND), nil) == 0 else {
            throw TestSupportError("\(path) could not be replaced: errno \(errno).")
        }
    }
}
