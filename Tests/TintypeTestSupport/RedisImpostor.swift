// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency

/// A server that answers like no Redis server would.
///
/// It serves one connection at a time, on a thread of its own.
public final class RedisImpostor: Sendable {
    public let port: Int
    private let listener: CInt
    private let thread: POSIXThread

    /// Starts a server on a free port, which sends the result of `answer` after each piece that it receives, or only after
    /// the first one if it then closes the connection.
    ///
    /// - Throws: ``TestSupportError`` if no port can be opened.
    public init(closesAfterAnswer: Bool = false, _ answer: @escaping @Sendable (_ command: String) -> String) throws {
        let (listener, port) = try LoopbackSocket.listen()
        self.listener = listener
        self.port = port
        _ = fcntl(listener, F_SETFL, 0)
        self.thread = POSIXThread(name: "impostor") {
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                while let piece = LoopbackSocket.receive(from: connection),
                    LoopbackSocket.send(Array(answer(String(decoding: piece, as: UTF8.self)).utf8), to: connection),
                    !closesAfterAnswer
                {}
                close(connection)
            }
        }
    }

    deinit {
        shutdown(self.listener, CInt(SHUT_RDWR))
        self.thread.join()
        close(self.listener)
    }
}
