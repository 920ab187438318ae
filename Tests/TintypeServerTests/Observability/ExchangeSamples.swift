// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeHTTP

@testable import TintypeServer

/// Exchanges for the tests of the metrics and of the log.
enum ExchangeSamples {
    /// Returns an exchange that has ended; its client is 192.0.2.1.
    ///
    /// The request line is the method and the target, or `nil` for a malformed head.
    static func record(
        _ requestLine: String? = "GET /unsafe/plain/a",
        status: Int = 200,
        byteCount: Int = 1_000,
        isWhole: Bool = true,
        duration: Duration = .microseconds(1_250),
        note: AnswerNote = AnswerNote(cache: "memory", format: "webp")
    ) throws -> ExchangeRecord {
        ExchangeRecord(
            head: try requestLine.map { try Self.head($0) },
            client: ClientAddress(bytes: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, 2, 1]),
            identifier: .number(7),
            status: status,
            sentByteCount: byteCount,
            isWhole: isWhole,
            duration: duration,
            note: note
        )
    }

    private static func head(_ requestLine: String) throws -> RequestHead {
        var parser = RequestHeadParser()
        let outcome = Array("\(requestLine) HTTP/1.1\r\nHost: a\r\n\r\n".utf8).withUnsafeBytes { parser.parse($0) }
        var parsed: RequestHead?
        if case .head(let head, _) = outcome { parsed = head }
        return try #require(parsed)
    }
}
