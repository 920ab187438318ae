// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency

/// The listening socket and the threads of a ``FaultyOrigin``.
final class FaultyServer: Sendable {
    private struct State {
        var threads: [POSIXThread] = []
        var connections: Set<CInt> = []
        var isStopped = false
    }

    let port: Int
    let record: FaultyRecord
    /// Opens when the origin stops, and ends every wait of a thread.
    let stopping = Latch()
    /// The certificates of the origin, if it uses TLS.
    let authority: TLSCertificates?
    let speaksHTTP2: Bool
    private let listener: CInt
    private let state = Locked(State())

    init(
        _ responses: [String: FaultyResponse],
        address: String,
        usesTLS: Bool,
        speaksHTTP2: Bool,
        acceptsConnections: Bool
    ) throws {
        self.record = FaultyRecord(responses: responses)
        self.speaksHTTP2 = speaksHTTP2
        self.authority = usesTLS || speaksHTTP2 ? try TLSCertificates.shared() : nil
        (self.listener, self.port) = try LoopbackSocket.listen(
            address: address,
            backlog: acceptsConnections ? 511 : 0
        )
        guard acceptsConnections else { return }
        self.start(name: "faulty-accept") { self.accept() }
    }

    deinit {
        Glibc.close(self.listener)
    }

    func stop() {
        let threads = self.state.withLock { state -> [POSIXThread] in
            defer { state.threads = [] }
            state.isStopped = true
            // End the `send` or `recv` calls that threads are blocked in.
            for connection in state.connections { shutdown(connection, CInt(SHUT_RDWR)) }
            return state.threads
        }
        self.stopping.open()
        // From now on, the system refuses clients.
        shutdown(self.listener, CInt(SHUT_RDWR))
        for thread in threads { thread.join() }
    }

    /// Closes a connection under the lock, so that ``stop()`` cannot shut down a newer one with the same number.
    func close(connection: CInt) {
        self.state.withLock { state in
            state.connections.remove(connection)
            Glibc.close(connection)
        }
    }

    private func accept() {
        while self.waitForConnection() {
            let connection = ChildProcess.starting.withLock { _ in
                let connection = Glibc.accept(self.listener, nil, nil)
                if connection >= 0 { _ = fcntl(connection, F_SETFD, FD_CLOEXEC) }
                return connection
            }
            // The client may have left before `accept`.
            guard connection >= 0 else { continue }
            self.record.update { $0.connections += 1 }
            let isServed = self.state.withLock { state -> Bool in
                guard !state.isStopped else { return false }
                state.connections.insert(connection)
                return true
            }
            // Send the bytes of each step at once.
            var noDelay: CInt = 1
            setsockopt(connection, CInt(IPPROTO_TCP), TCP_NODELAY, &noDelay, socklen_t(MemoryLayout<CInt>.size))
            guard isServed else {
                Glibc.close(connection)
                return
            }
            self.start(name: "faulty-serve") {
                var connection = FaultyConnection(connection, server: self)
                connection.serve()
            }
        }
    }

    /// Returns `true` when there is a connection to accept, and `false` when the origin stops.
    private func waitForConnection() -> Bool {
        var sources = [
            pollfd(fd: self.listener, events: Int16(POLLIN), revents: 0),
            pollfd(fd: self.stopping.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        while poll(&sources, nfds_t(sources.count), -1) < 0, errno == EINTR {}
        return sources[1].revents == 0
    }

    private func start(name: String, _ main: @escaping @Sendable () -> Void) {
        let thread = POSIXThread(name: name, main)
        let mustDetach = self.state.withLock { state -> Bool in
            if !state.isStopped { state.threads.append(thread) }
            return state.isStopped
        }
        if mustDetach { thread.detach() }
    }
}
