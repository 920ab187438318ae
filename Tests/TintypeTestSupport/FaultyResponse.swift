/// What a ``FaultyOrigin`` does with a request: a list of steps, one after the other.
///
/// The factories are the faults that tests need; ``init(_:)`` scripts any other. When the last step is done
/// and was not ``Step/close`` or ``Step/reset``, the connection waits for its next request.
public struct FaultyResponse: Sendable {
    /// One thing that the origin does.
    public enum Step: Sendable {
        /// Sends these bytes.
        case send([UInt8])
        /// Waits for so long; for drips only, since tests do not sleep.
        case pause(milliseconds: Int)
        /// Waits until the door opens or the client leaves.
        case wait(Latch)
        /// Opens a door, to tell the test that all before is done.
        case signal(Latch)
        /// Sends the same bytes again and again until the client leaves.
        case flood([UInt8])
        /// Sends so many session tickets, which are no bytes of an answer; nothing without TLS.
        case sendTickets(Int)
        /// Waits until the client leaves.
        case stall
        /// Reads frames of HTTP/2 until so many more requests have come over the connection.
        case awaitStreams(Int)
        /// Sends the request's own head as the body of a complete response.
        case echo
        /// Does what the closure makes of the request's head.
        case answer(@Sendable (_ head: [UInt8]) -> FaultyResponse)
        /// Closes the connection in order, with an alert where it speaks TLS.
        case close
        /// Closes the connection below TLS, without an alert.
        case cutOff
        /// Breaks the connection off, so that the client sees a reset.
        case reset
    }

    /// The steps, to be done behind or before others.
    public let steps: [Step]

    /// Scripts a response.
    public init(_ steps: [Step]) {
        self.steps = steps
    }

    /// The head of a response, as bytes to send.
    public static func head(_ status: Int = 200, _ headers: [(String, String)] = []) -> Step {
        let lines = headers.map { "\($0): \($1)\r\n" }.joined()
        return .send(Array("HTTP/1.1 \(status) Scripted\r\n\(lines)\r\n".utf8))
    }

    /// A complete and faultless response.
    public static func body(
        _ body: [UInt8],
        status: Int = 200,
        headers: [(String, String)] = []
    ) -> FaultyResponse {
        FaultyResponse([self.head(status, headers + [("Content-Length", "\(body.count)")]), .send(body)])
    }

    /// A redirect to `location`, which is sent as it is.
    public static func redirect(to location: String, status: Int = 302) -> FaultyResponse {
        self.body([], status: status, headers: [("Location", location)])
    }

    /// A head with a declared length, then `body`, whatever its length is, then the end of the connection.
    ///
    /// A declared length over the body's is a body cut short; one under it leaves bytes over.
    public static func lying(declaredLength: Int, body: [UInt8]) -> FaultyResponse {
        FaultyResponse([self.head(200, [("Content-Length", "\(declaredLength)")]), .send(body), .close])
    }

    /// A body of no declared length, which ends with the connection.
    public static func undeclared(_ body: [UInt8]) -> FaultyResponse {
        FaultyResponse([self.head(200, [("Connection", "close")]), .send(body), .close])
    }

    /// A body in chunks, of no declared length.
    public static func chunked(_ chunks: [[UInt8]], headers: [(String, String)] = []) -> FaultyResponse {
        let body = chunks.map { Step.send(self.chunk($0)) }
        return FaultyResponse(
            [self.head(200, headers + [("Transfer-Encoding", "chunked")])] + body + [.send(self.chunk([]))]
        )
    }

    /// A chunk in the chunked coding; an empty one ends the body.
    public static func chunk(_ bytes: [UInt8]) -> [UInt8] {
        Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Array("\r\n".utf8)
    }

    /// A frame of HTTP/2 (RFC 9113, 4.1).
    public static func frame(type: UInt8, flags: UInt8 = 0, stream: UInt8 = 0, _ payload: [UInt8] = []) -> [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16 & 255), UInt8(count >> 8 & 255), UInt8(count & 255), type, flags, 0, 0, 0, stream]
            + payload
    }

    /// The settings with which a server of HTTP/2 begins.
    public static let settingsFrame = Self.frame(type: 4)

    /// The head of an answer over HTTP/2, status 200.
    public static func headFrame(stream: UInt8 = 1, length: Int? = nil) -> [UInt8] {
        // In the static table of HPACK (RFC 7541) status 200 is field 8, and "content-length" the name of field 28.
        let value = length.map { Array("\($0)".utf8) }
        let field = value.map { [0x0F, 28 - 15, UInt8($0.count)] + $0 } ?? []
        return Self.frame(type: 1, flags: 4, stream: stream, [0x88] + field)
    }

    /// Bytes of a body over HTTP/2.
    public static func dataFrame(_ bytes: [UInt8], stream: UInt8 = 1, isLast: Bool = false) -> [UInt8] {
        Self.frame(type: 0, flags: isLast ? 1 : 0, stream: stream, bytes)
    }

    /// The end of a stream of HTTP/2 with an error.
    public static func resetFrame(code: UInt8, stream: UInt8 = 1) -> [UInt8] {
        Self.frame(type: 3, stream: stream, [0, 0, 0, code])
    }

    /// A body that comes in pieces of `size` bytes with pauses between them.
    public static func drip(_ body: [UInt8], size: Int, pauseMilliseconds: Int) -> FaultyResponse {
        let pieces = stride(from: 0, to: body.count, by: size).flatMap { start -> [Step] in
            [.pause(milliseconds: pauseMilliseconds), .send(Array(body[start..<min(body.count, start + size)]))]
        }
        return FaultyResponse([self.head(200, [("Content-Length", "\(body.count)")])] + pieces)
    }

    /// A head and the first bytes of a body, then nothing until the client leaves.
    public static func stall(declaredLength: Int, after body: [UInt8] = []) -> FaultyResponse {
        FaultyResponse([self.head(200, [("Content-Length", "\(declaredLength)")]), .send(body), .stall])
    }

    /// A complete response that starts only when the door opens.
    public static func held(by latch: Latch, body: [UInt8]) -> FaultyResponse {
        FaultyResponse([.wait(latch), self.head(200, [("Content-Length", "\(body.count)")]), .send(body)])
    }

    /// No answer at all: the connection stays open and silent.
    public static let silence = FaultyResponse([.stall])
    /// Bytes that are no HTTP, then the end of the connection.
    public static let garbage = FaultyResponse([
        .send(Array("\u{1}\u{2}SSH-2.0-not-a-web-server\r\n\r\n".utf8)), .close,
    ])
    /// A reset instead of an answer.
    public static let reset = FaultyResponse([.reset])
    /// Status 200 and a body of no bytes.
    public static let empty = FaultyResponse.body([])
    /// The head of the request as the body, to see what was sent.
    public static let echo = FaultyResponse([.echo])
}
