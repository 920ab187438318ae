// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeHTTP

/// Answers the requests of a server's connections.
protocol RequestHandling: Sendable {
    /// Returns the answer if it needs neither waiting nor much work; called on the loop.
    func readyAnswer(to request: ServerRequest) -> ServerAnswer?

    /// Returns the answer.
    ///
    /// Runs in a task of its own, which the connection cancels when the client leaves or the time is over.
    func answer(to request: ServerRequest) async -> ServerAnswer

    /// Returns the reason to refuse a request with a body before the body is received, or `nil`.
    func refusal(ofBodyOf head: RequestHead) -> ServerAnswer?

    /// The most bytes that the body of a request may have; 0 if it may have none.
    func bodyLimit(of request: RequestHead) -> Int

    /// Returns the answer to a request that the server refuses by itself.
    func refusal(_ status: Int, _ reason: String) -> ServerAnswer

    /// Reports an exchange that has ended; the loop calls it.
    func didEnd(_ exchange: ExchangeRecord)

    /// Reports the end of a turn of the loop, in which exchanges may have ended.
    func didEndTurn()
}

/// A request as a handler receives it.
struct ServerRequest: Sendable {
    /// The method, the target and the fields.
    let head: RequestHead
    /// The content; empty for most requests.
    let body: Data
    /// The other end of the connection.
    let client: ClientAddress
}

/// The address of a client, as IPv6; IPv4 addresses are mapped.
struct ClientAddress: Sendable, Hashable, CustomStringConvertible {
    private let high: UInt64
    private let low: UInt64

    init(bytes: [UInt8]) {
        func number(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
        self.high = bytes.count == 16 ? number(0..<8) : 0
        self.low = bytes.count == 16 ? number(8..<16) : 0
    }

    /// The network of the client: an IPv6 host may use all addresses of its /64.
    var network: ClientAddress { self.isMapped ? self : ClientAddress(high: self.high, low: 0) }

    /// The address as a number.
    var number: UInt128 { UInt128(self.high) << 64 | UInt128(self.low) }

    private init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    private var isMapped: Bool { self.high == 0 && self.low >> 32 == 0xFFFF }

    /// The address as text, such as `192.0.2.1` or `2001:db8:0:0:0:0:0:1`.
    var description: String {
        var bytes: [UInt8] = []
        self.append(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends the text.
    func append(to bytes: inout [UInt8]) {
        if self.isMapped {
            for index in 0..<4 {
                if index > 0 { bytes.append(UInt8(ascii: ".")) }
                bytes.append(contentsOf: String(self.low >> UInt64(24 - 8 * index) & 0xFF).utf8)
            }
        } else {
            for index in 0..<8 {
                if index > 0 { bytes.append(UInt8(ascii: ":")) }
                let half = index < 4 ? self.high : self.low
                let group = half >> UInt64(48 - 16 * (index % 4)) & 0xFFFF
                bytes.append(contentsOf: String(group, radix: 16).utf8)
            }
        }
    }
}

/// The identifier of a request: the client's own, if it is valid, or a number.
enum RequestIdentifier: Sendable, CustomStringConvertible {
    case given(String)
    case number(UInt64)

    /// Accepts letters, digits, `_` and `-`, at most 64, from a client.
    init(given text: String?, number: @autoclosure () -> UInt64) {
        let isValid = text.map { text in
            !text.isEmpty && text.utf8.count <= 64
                && text.utf8.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                        UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"), UInt8(ascii: "-"):
                        true
                    default: false
                    }
                }
        }
        if let text, isValid == true { self = .given(text) } else { self = .number(number()) }
    }

    var description: String {
        var bytes: [UInt8] = []
        self.append(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends the text: a number as 16 hexadecimal digits.
    func append(to bytes: inout [UInt8]) {
        switch self {
        case .given(let text): bytes.append(contentsOf: text.utf8)
        case .number(let number):
            for shift in stride(from: 60, through: 0, by: -4) {
                let digit = UInt8(truncatingIfNeeded: number >> UInt64(shift)) & 15
                bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            }
        }
    }
}

/// An exchange that has ended, for the access log and the counters.
struct ExchangeRecord: Sendable {
    /// The request; `nil` if its head was malformed.
    let head: RequestHead?
    let client: ClientAddress
    let identifier: RequestIdentifier
    /// The status code; 499 if the client left before there was an answer (as nginx logs it).
    let status: Int
    /// The bytes of the body that were sent.
    let sentByteCount: Int
    /// Whether the whole answer was sent.
    let isWhole: Bool
    /// The time since the head of the request was complete.
    let duration: Duration
    let note: AnswerNote
}
