// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeTestSupport

/// The hosts of the fleet: a network namespace for each server and for Redis, or only this host.
///
/// Each server has a link to this process, which has the clients and the origin, and a link to Redis. The namespaces
/// have no names: the system removes them, and their links, with the last process in them.
struct Network: Sendable {
    static let serverCount = 3
    private static let mark = "FLEET_TORTURE_NAMESPACE"
    private static let originAddress = "10.77.9.1"

    /// The processes that keep the namespaces of the servers, and of Redis as the last one.
    private let keepers: [Member]
    private let log: String
    /// Whether links can be slow.
    let hasSlowLinks: Bool

    /// Whether there are links that can fail.
    var hasLinks: Bool { !self.keepers.isEmpty }

    /// Starts the program anew in a network namespace of its own; returns whether it has one.
    static func enterNamespace() throws -> Bool {
        guard getenv(Self.mark) == nil else { return true }
        let unshare = try Program.path(of: "unshare", package: "util-linux")
        let trial = [unshare, "--net", "/bin/sh", "-c", "ip link set lo up"]
        guard (try? ChildProcess.run(trial, log: "/dev/null")) != nil else { return false }
        setenv(Self.mark, "1", 1)
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let script = #"ip link set lo up && exec "$0" "$@""#
        let words = [unshare, "--net", "/bin/sh", "-c", script, program] + CommandLine.arguments.dropFirst()
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
        arguments.append(nil)
        execv(unshare, arguments)
        throw TestSupportError("\(unshare) could not be started: errno \(errno)")
    }

    /// Creates the namespaces and their links.
    init(folder: TemporaryDirectory, hasNamespaces: Bool) async throws {
        self.log = folder.path(of: "network.log")
        guard hasNamespaces else {
            (self.keepers, self.hasSlowLinks) = ([], false)
            return
        }
        var keepers: [Member] = []
        for name in (0..<Self.serverCount).map({ "host-\($0)" }) + ["host-redis"] {
            let keeper = Member(name, ["unshare", "--net", "sleep", "infinity"], folder: folder) { number in
                let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/net")
                let other = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(number)/ns/net")
                return other != nil && own != other
            }
            try await keeper.start()
            keepers.append(keeper)
        }
        let redis = keepers[Self.serverCount].number
        var script = """
            set -e
            ip address add \(Self.originAddress)/32 dev lo
            ip link add hub type veth peer name hub netns \(redis)
            ip address add 10.78.9.2/24 dev hub
            ip link set hub up
            in_redis() { nsenter --net=/proc/\(redis)/ns/net ip "$@"; }
            in_redis link set lo up
            in_redis address add 10.78.9.1/24 dev hub
            in_redis link set hub up

            """
        for index in 0..<Self.serverCount {
            let host = keepers[index].number
            script += """
                in_server() { nsenter --net=/proc/\(host)/ns/net ip "$@"; }
                in_server link set lo up
                ip link add front\(index) type veth peer name front netns \(host)
                ip address add 10.77.\(index).1/24 dev front\(index)
                ip link set front\(index) up
                in_server address add 10.77.\(index).2/24 dev front
                in_server link set front up
                in_server route add default via 10.77.\(index).1
                in_redis link add back\(index) type veth peer name back netns \(host)
                in_redis address add 10.78.\(index).1/24 dev back\(index)
                in_redis link set back\(index) up
                in_server address add 10.78.\(index).2/24 dev back
                in_server link set back up

                """
        }
        try ChildProcess.run(["/bin/sh", "-c", script], log: self.log)
        let slow = "nsenter --net=/proc/\(redis)/ns/net tc qdisc"
        let trial = "\(slow) add dev back0 root \(Self.slowness) && \(slow) del dev back0 root"
        self.hasSlowLinks = (try? ChildProcess.run(["/bin/sh", "-c", trial], log: self.log)) != nil
        self.keepers = keepers
    }

    // MARK: Addresses

    /// The address of the origin, which is the same for all servers.
    var origin: String { self.hasLinks ? Self.originAddress : "127.0.0.1" }

    /// The address at which clients reach a server.
    func server(_ index: Int) -> String { self.hasLinks ? "10.77.\(index).2" : "127.0.0.1" }

    /// The address at which a server, or this process, reaches Redis.
    func redis(from server: Int?) -> String { self.hasLinks ? "10.78.\(server ?? 9).1" : "127.0.0.1" }

    /// The command that starts a program on the host of a server, or of Redis.
    func entry(_ server: Int?) -> [String] {
        guard self.hasLinks else { return [] }
        return ["nsenter", "--net=/proc/\(self.keepers[server ?? Self.serverCount].number)/ns/net"]
    }

    // MARK: Faults

    /// Lets the link between a server and Redis carry packets, or lose all of them; neither side is told.
    func setLink(of server: Int, up: Bool) throws {
        try self.run(["ip", "link", "set", "back\(server)", up ? "up" : "down"])
    }

    /// The limit of a slow link: Redis sends 32 kB a second to it, with a long queue.
    private static let slowness = "tbf rate 256kbit burst 4kb latency 2s"

    func setSlow(_ server: Int, _ isSlow: Bool) throws {
        let change = isSlow ? "add dev back\(server) root \(Self.slowness)" : "del dev back\(server) root"
        try self.run(["tc", "qdisc"] + change.split(separator: " ").map(String.init))
    }

    /// Runs a command on the host of Redis.
    private func run(_ words: [String]) throws {
        try ChildProcess.run(["/usr/bin/env"] + self.entry(nil) + words, log: self.log)
    }

    func stop() {
        for keeper in self.keepers { keeper.kill() }
    }
}
