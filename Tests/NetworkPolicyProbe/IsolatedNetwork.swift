import FoundationEssentials
import Glibc
import TestSupport

/// A network whose loopback interface answers for every address there is.
struct IsolatedNetwork {
    static let nameServerAddress = "127.0.0.53"

    /// Holds the files that stand in for those of the system until the process ends.
    private let folder: TemporaryDirectory

    /// Sets up the namespaces that the process was started in.
    ///
    /// - Throws: ``ProbeError``, also when they are those of the process that started it: it would cut this machine off.
    init() throws {
        for name in ["net", "mnt"] {
            let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/\(name)")
            let outer = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(getppid())/ns/\(name)")
            guard own != outer else {
                throw ProbeError("Start the probe by: unshare --net --mount NetworkPolicyProbe")
            }
        }
        self.folder = try TemporaryDirectory(prefix: "tintype-probe")
        try self.replace("/etc/resolv.conf", by: "nameserver \(Self.nameServerAddress)\noptions timeout:1 attempts:1\n")
        try self.replace("/etc/nsswitch.conf", by: "hosts: files dns\n")
        try self.replace("/etc/hosts", by: "")
        let socket = try RouteSocket()
        try socket.bringUpLoopback()
        // All of the address space is local (ip route add local default dev lo).
        try socket.addLocalDefaultRoute(family: AF_INET)
        try socket.addLocalDefaultRoute(family: AF_INET6)
    }

    private func replace(_ path: String, by content: String) throws {
        guard access(path, F_OK) == 0 else { return }
        let file = try self.folder.write(content.utf8, to: path.split(separator: "/").joined(separator: "-"))
        guard mount(file, path, nil, UInt(MS_BIND), nil) == 0 else {
            throw ProbeError("\(path) could not be replaced: errno \(errno).")
        }
    }
}
