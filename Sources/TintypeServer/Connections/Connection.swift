// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import FoundationEssentials
import Glibc
import TintypeCaching
import TintypeHTTP

/// One connection of a client, and the request that it carries.
///
/// Only ``ConnectionActor`` uses it.
final class Connection {
    /// The step of the connection.
    enum Phase {
        /// The client may send a request, or is sending its head.
        case reading
        /// The client sends the body of a request.
        case receiving
        /// A task makes the answer.
        case waiting(Task<Void, Never>)
        /// The answer is being sent.
        case sending
        /// The server has sent its last answer, and discards input until the client closes. Otherwise the kernel would
        /// reset the connection, and the client might lose the answer.
        case lingering
        case closed
    }

    /// The request that the connection carries.
    ///
    /// Like ``Output``, it is a class, because copies of its values would count many references.
    final class Exchange {
        let head: RequestHead?
        let identifier: RequestIdentifier
        /// The time in nanoseconds at which the head was complete.
        let start: UInt64
        /// The same time if a task makes the answer, for `Server-Timing`.
        var waitStart: UInt64?
        /// The bytes of the request's body.
        var body = Data()

        init(head: RequestHead?, identifier: RequestIdentifier, start: UInt64) {
            self.head = head
            self.identifier = identifier
            self.start = start
        }
    }

    /// The part of an answer that has not been sent.
    final class Output {
        let status: Int
        let note: AnswerNote
        /// The unsent bytes of the head.
        var head: ArraySlice<UInt8>
        /// The body to send; `.none` in the answer to HEAD.
        let body: ServerAnswer.Body
        /// The time in nanoseconds at which the answer was ready.
        let start: UInt64
        var sentBodyCount = 0

        init(_ answer: ServerAnswer, head: ArraySlice<UInt8>, body: ServerAnswer.Body, start: UInt64) {
            self.status = answer.status
            self.note = answer.note
            self.head = head
            self.body = body
            self.start = start
        }

        /// Returns the mean rate at which the client has taken the body, in bytes a nanosecond.
        func rate(at time: UInt64) -> Double { Double(self.sentBodyCount) / Double(time - self.start + 1) }

        var isWhole: Bool { self.head.isEmpty && self.sentBodyCount == self.body.count }
    }

    /// The outcome of an attempt to send.
    enum Progress {
        case done
        /// The socket takes no more for now.
        case blocked
        case broken
    }

    let descriptor: CInt
    let client: ClientAddress
    var phase = Phase.reading
    /// The time in milliseconds at which the phase ends, unless it makes progress.
    var deadline: UInt64 = 0
    /// The time in nanoseconds when the connection began to wait for a request, or for the rest of its head.
    var idleStart: UInt64 = 0
    /// The bytes that were sent or received since the deadline was set.
    var progressByteCount = 0
    var parser = RequestHeadParser()
    /// The bytes that were received after the last request.
    var input: [UInt8] = []
    /// Whether the time for the head of a request has begun.
    var hasHeadDeadline = true
    /// Whether the kernel may have more bytes.
    var mayHaveInput = false
    /// Whether the client has stopped sending.
    var isPeerDone = false
    /// Whether the connection continues in the next turn of the loop.
    var isUnfinished = false
    var exchange: Exchange?
    /// The number of the request that waits, because the answer to an earlier one may come late.
    var waitNumber: UInt64 = 0
    var output: Output?
    /// The body of the output if it counts as unsent.
    var unsentBody: BodyIdentity?
    /// Whether the connection ends after the output that is being sent.
    var isLast = false

    init(descriptor: CInt, client: ClientAddress) {
        self.descriptor = descriptor
        self.client = client
    }

    /// Whether the connection waits for a request, or for the rest of its head.
    var isReading: Bool {
        guard case .reading = self.phase else { return false }
        return self.input.isEmpty
    }

    /// Whether no byte of a request has arrived, not even in the kernel.
    var isIdle: Bool {
        guard self.isReading, !self.parser.isInHead else { return false }
        var byte: UInt8 = 0
        return recv(self.descriptor, &byte, 1, CInt(MSG_PEEK)) <= 0
    }

    /// Sends as much of the output as the socket takes.
    func send() -> Progress {
        guard let output = self.output else { return .done }
        while !output.isWhole {
            let count = self.send(output)
            guard count > 0 else {
                if count < 0, errno == EINTR { continue }
                return count < 0 && errno == EAGAIN ? .blocked : .broken
            }
            let headCount = min(count, output.head.count)
            output.head.removeFirst(headCount)
            output.sentBodyCount += count - headCount
            self.progressByteCount += count
        }
        return .done
    }

    private func send(_ output: Output) -> Int {
        output.head.withUnsafeBytes { head in
            switch output.body {
            case .none: return cshims_send(self.descriptor, head.baseAddress, head.count, nil, 0)
            case .data(let data):
                return data.withUnsafeBytes { body in
                    let rest = body[output.sentBodyCount...]
                    let start = UnsafeRawBufferPointer(rebasing: rest)
                    return cshims_send(self.descriptor, head.baseAddress, head.count, start.baseAddress, start.count)
                }
            case .file(let file, let offset, let count):
                guard head.isEmpty else {
                    return cshims_send(self.descriptor, head.baseAddress, head.count, nil, 0)
                }
                let (sent, rest) = (offset + output.sentBodyCount, count - output.sentBodyCount)
                return cshims_send_file(self.descriptor, file.descriptor, sent, rest)
            }
        }
    }
}
