// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeHTTP

/// Writes the heads of answers, with the fields that a connection adds to them.
struct AnswerHeadWriter {
    private static let usualEnd = Array("\r\n\r\n".utf8)
    private static let keptEnd = Array("\r\nConnection: keep-alive\r\n\r\n".utf8)
    private static let lastEnd = Array("\r\nConnection: close\r\n\r\n".utf8)
    private static let serverField = Array("Server: tintype\r\nX-Request-ID: ".utf8)

    private var date = DateLine(second: time(nil))

    /// Returns the bytes of a head and its empty line.
    ///
    /// - Parameters:
    ///   - head: The status and the fields of the answer.
    ///   - exchange: The request that it answers.
    ///   - isLast: Whether the connection ends after the answer.
    ///   - waitTime: The nanoseconds that the client has waited; `nil` if no task made the answer.
    /// - Returns: The bytes.
    mutating func bytes(
        of head: AnswerHead,
        to exchange: Connection.Exchange,
        isLast: Bool,
        waitTime: UInt64?
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(1_024)
        self.date.update(to: time(nil))
        head.append(to: &bytes, date: self.date)
        if let waitTime {
            let microseconds = waitTime / 1_000
            bytes.append(
                contentsOf: "Server-Timing: total;dur=\(microseconds / 1_000).\(microseconds / 100 % 10)\r\n".utf8
            )
        }
        bytes.append(contentsOf: Self.serverField)
        exchange.identifier.append(to: &bytes)
        let isHTTP10 = exchange.head?.minorVersion == 0
        bytes.append(contentsOf: isLast ? Self.lastEnd : isHTTP10 ? Self.keptEnd : Self.usualEnd)
        return bytes
    }
}
