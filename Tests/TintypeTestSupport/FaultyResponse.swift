// SPDX-License-Identifier: Apache-2.0

/// The response of a ``FaultyOrigin`` to a request, as a list of steps.
///
/// The factories are the faults that tests need, and ``init(_:)`` scripts any other fault. The connection waits for its
/// next request after the last step, unless the last step is ``Step/close`` or ``Step/reset``.
public struct FaultyResponse: Sendable {
    /// One action of the origin.
    public enum Step: Sendable {
        /// Sends these bytes.
        case send([UInt8])
        /// Waits for so many milliseconds, which is only for drips because tests do not sleep.
        case pause(milliseconds: Int)
        /// Waits until the latch opens or the client leaves.
        case wait(Latch)
        /// Opens a latch to tell the test that all previous steps are done.
        case signal(Latch)
        /// Sends the same bytes repeatedly until the client leaves.
        case flood([UInt8])
        /// Sends so many session tickets, which are not part of an answer, or nothing without TLS.
        case sendTickets(Int)
        /// Waits until the client leaves.
        case stall
        /// Reads frames of HTTP/2 until so many more requests have arrived over the connection.
        case awaitStreams(Int)
        /// Sends the request's own head as the body of a complete response.
        case echo
        /// Performs the response that the closure returns for the request's head.
        case answer(@Sendable (_ head: [UInt8]) -> FaultyResponse)
        /// Closes the connection in an orderly way, with an alert if it uses TLS.
        case close
        /// Closes the connection below TLS, without an alert.
        case cutOff
        /// Resets the connection.
        case reset
    }

    /// The steps, which can also be part of another response.
    public let steps: [Step]

    /// Creates a response from steps.
    public init(_ steps: [Step]) {
        self.steps = steps
    }

    /// Returns a step that sends the head of a response.
    public static func head(_ status: Int = 200, _ headers: [(String, String)] = []) -> Step {
        let lines = headers.map { "\($0): \($1)\r\n" }.joined()
        return .send(Array("HTTP/1.1 \(status) Scripted\r\n\(lines)\r\n".utf8))
    }

    /// Returns a complete response without faults.
    public static func body(
        _ body: [UInt8],
        status: Int = 200,
        headers: [(String, String)] = []
    ) -> FaultyResponse {
        FaultyResponse([self.head(status, headers + [("Content-Length", "\(body.count)")]), .send(body)])
    }

    /// Returns a redirect to `location`, which is sent unchanged.
    public static func redirect(to location: String, status: Int = 302) -> FaultyResponse {
        self.body([], status: status, headers: [("Location", location)])
    }

    /// Returns a head with a declared length, `body` with any length, and the end of the connection.
    ///
    /// A declared length above the real one cuts the body short, and one below it leaves surplus bytes.
    public static func lying(declaredLength: Int, body: [UInt8]) -> FaultyResponse {
        FaultyResponse([self.head(200, [("Content-Length", "\(declaredLength)")]), .send(body), .close])
    }

    /// Returns a body without a declared length, which ends with the connection.
    public static func undeclared(_ body: [UInt8]) -> FaultyResponse {
        FaultyResponse([self.head(200, [("Connection", "close")]), .send(body), .close])
    }

    /// Returns a chunked body without a declared length.
    public static func chunked(_ chunks: [[UInt8]], headers: [(String, String)] = []) -> FaultyResponse {
        let body = chunks.map { Step.send(self.chunk($0)) }
        return FaultyResponse(
            [self.head(200, headers + [("Transfer-Encoding", "chunked")])] + body + [.send(self.chunk([]))]
        )
    }

    /// Returns a chunk of the chunked coding, which ends the body if it is empty.
    public static func chunk(_ bytes: [UInt8]) -> [UInt8] {
        Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Array("\r\n".utf8)
    }

    /// Returns a frame of HTTP/2 (RFC 9113, 4.1).
    public static func frame(type: UInt8, flags: UInt8 = 0, stream: UInt8 = 0, _ payload: [UInt8] = []) -> [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16 & 255), UInt8(count >> 8 & 255), UInt8(count & 255), type, flags, 0, 0, 0, stream]
            + payload
    }

    /// The settings with which a server of HTTP/2 begins.
    public static let settingsFrame = Self.frame(type: 4)

    /// Returns the head of an HTTP/2 response with status 200.
    public static func headFrame(stream: UInt8 = 1, length: Int? = nil) -> [UInt8] {
        // In the static table of HPACK (RFC 7541), field 8 is status 200, and field 28 has the name "content-length".
        let value = length.map { Array("\($0)".utf8) }
        let field = value.map { [0x0F, 28 - 15, UInt8($0.count)] + $0 } ?? []
        return Self.frame(type: 1, flags: 4, stream: stream, [0x88] + field)
    }

    /// Returns a frame with bytes of a body over HTTP/2.
    public static func dataFrame(_ bytes: [UInt8], stream: UInt8 = 1, isLast: Bool = false) -> [UInt8] {
        Self.frame(type: 0, flags: isLast ? 1 : 0, stream: stream, bytes)
    }

    /// Returns a frame that ends a stream of HTTP/2 with an error.
    public static func resetFrame(code: UInt8) -> [UInt8] {
        Self.frame(type: 3, stream: 1, [0, 0, 0, code])
    }

    /// Returns a body that comes in pieces of `size` bytes with pauses between them.
    public static func drip(_ body: [UInt8], size: Int, pauseMilliseconds: Int) -> FaultyResponse {
        let pieces = stride(from: 0, to: body.count, by: size).flatMap { start -> [Step] in
            [.pause(milliseconds: pauseMilliseconds), .send(Array(body[start..<min(body.count, start + size)]))]
        }
        return FaultyResponse([self.head(200, [("Content-Length", "\(body.count)")])] + pieces)
    }

    /// Returns a head and the first bytes of a body, and stalls until the client leaves.
    public static func stall(declaredLength: Int, after body: [UInt8] = []) -> FaultyResponse {
        FaultyResponse([self.head(200, [("Content-Length", "\(declaredLength)")]), .send(body), .stall])
    }

    /// Returns a complete response that starts when the latch opens.
    public static func held(by latch: Latch, body: [UInt8]) -> FaultyResponse {
        FaultyResponse([.wait(latch), self.head(200, [("Content-Length", "\(body.count)")]), .send(body)])
    }

    /// No answer, on a connection that stays open.
    public static let silence = FaultyResponse([.stall])
    /// Bytes that are not HTTP, and the end of the connection.
    public static let garbage = FaultyResponse([
        .send(Array("\u{1}\u{2}SSH-2.0-not-a-web-server\r\n\r\n".utf8)), .close,
    ])
    /// A reset instead of an answer.
    public static let reset = FaultyResponse([.reset])
    /// Status 200 and an empty body.
    public static let empty = FaultyResponse.body([])
    /// The head of the request as the body, which shows what the client sent.
    public static let echo = FaultyResponse([.echo])
}
