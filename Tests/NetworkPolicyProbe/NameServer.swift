// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency
import TintypeTestSupport

/// A DNS server with scripted answers, which can differ between look-ups (RFC 1035).
///
/// Its thread ends with the process.
final class NameServer: Sendable {
    private struct State {
        var answers: [String: [[String]]] = [:]
        var names: [String] = []
        var isSilent = true
        /// The waiting look-ups of the silent domain, with the addresses for their answers.
        var held: [(query: [UInt8], client: sockaddr_in)] = []
    }

    /// The address of every name without an answer of its own.
    static let publicAddress = "93.184.216.34"
    /// The top-level domain whose look-ups have to wait for ``answerSilent()``.
    static let silentDomain = "silent"

    private let state = Locked(State())
    private let descriptor: CInt

    init(address: String) throws {
        let descriptor = socket(AF_INET, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        self.descriptor = descriptor
        var local = sockaddr_in()
        local.sin_family = sa_family_t(AF_INET)
        local.sin_port = UInt16(53).bigEndian
        local.sin_addr.s_addr = inet_addr(address)
        let isBound = withUnsafePointer(to: &local) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isBound else { throw TestSupportError("The name server could not be started: errno \(errno).") }
        POSIXThread(name: "name-server") { [self] in self.serve(descriptor) }.detach()
    }

    /// Sets the addresses of a name for each look-up, the last of which also apply to all later look-ups.
    func setAnswers(_ answers: [[String]], for name: String) {
        self.state.withLock { $0.answers[name] = answers }
    }

    /// Returns the names that were looked up since the last call.
    func takeNames() -> Set<String> {
        self.state.withLock { state in
            defer { state.names = [] }
            return Set(state.names)
        }
    }

    /// The number of names in the silent domain that were looked up.
    var silentCount: Int {
        self.state.withLock { state in Set(state.held.map { Self.name(in: $0.query).name }).count }
    }

    /// Answers look-ups in the silent domain from now on.
    func answerSilent() {
        let held = self.state.withLock { state in
            state.isSilent = false
            defer { state.held = [] }
            return state.held
        }
        for (query, client) in held { self.send(self.answer(to: query), to: client) }
    }

    private func serve(_ descriptor: CInt) {
        var query = [UInt8](repeating: 0, count: 1500)
        while true {
            var client = sockaddr_in()
            var received: [UInt8] = []
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafeMutablePointer(to: &client) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    let count = recvfrom(descriptor, &query, query.count, 0, address, &length)
                    guard count > 12 else { return }
                    received = Array(query[..<count])
                }
            }
            guard !received.isEmpty, !self.holds(received, from: client) else { continue }
            self.send(self.answer(to: received), to: client)
        }
    }

    private func holds(_ query: [UInt8], from client: sockaddr_in) -> Bool {
        guard Self.name(in: query).name.hasSuffix(Self.silentDomain) else { return false }
        return self.state.withLock { state in
            if state.isSilent { state.held.append((query, client)) }
            return state.isSilent
        }
    }

    private func send(_ answer: [UInt8], to client: sockaddr_in) {
        _ = withUnsafePointer(to: client) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                sendto(self.descriptor, answer, answer.count, 0, address, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    /// Returns the name in a query, and its end.
    private static func name(in query: [UInt8]) -> (name: String, end: Int) {
        var labels: [String] = []
        var index = 12
        while index < query.count, query[index] != 0, index + 1 + Int(query[index]) < query.count {
            let label = query[(index + 1)...(index + Int(query[index]))]
            labels.append(String(decoding: label, as: UTF8.self))
            index += 1 + Int(query[index])
        }
        return (labels.joined(separator: ".").lowercased(), index)
    }

    private func answer(to query: [UInt8]) -> [UInt8] {
        let (name, index) = Self.name(in: query)
        let end = index + 5
        guard end <= query.count else { return query }
        let family = query[index + 2] == 28 ? AF_INET6 : AF_INET
        let records = self.addresses(of: name, isLast: family == AF_INET)
            .compactMap { Self.record(of: $0, family: family) }
        let counts: [UInt8] = [0, 1, 0, UInt8(records.count), 0, 0, 0, 0]
        return Array(query[..<2]) + [0x81, 0x80] + counts + Array(query[12..<end]) + records.flatMap(\.self)
    }

    /// Returns the addresses for a look-up, which ends with the query for IPv4 because every look-up has one.
    private func addresses(of name: String, isLast: Bool) -> [String] {
        self.state.withLock { state in
            state.names.append(name)
            guard var answers = state.answers[name] else { return [Self.builtIn(name)] }
            guard let first = answers.first else { return [] }
            if isLast, answers.count > 1 {
                answers.removeFirst()
                state.answers[name] = answers
            }
            return first
        }
    }

    /// Returns the address in a name such as `10.0.0.1.nip.io`, as the service of that name does.
    private static func builtIn(_ name: String) -> String {
        if name.hasSuffix(".nip.io") { return String(name.dropLast(".nip.io".count)) }
        return name == "localhost" || name.hasPrefix("ip6-") ? "127.0.0.1" : self.publicAddress
    }

    private static func record(of address: String, family: CInt) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: family == AF_INET6 ? 16 : 4)
        guard inet_pton(family, address, &bytes) == 1 else { return nil }
        let type: UInt8 = family == AF_INET6 ? 28 : 1
        // The name refers to the question, and the time to live is 0.
        return [0xC0, 0x0C, 0, type, 0, 1, 0, 0, 0, 0, 0, UInt8(bytes.count)] + bytes
    }
}
