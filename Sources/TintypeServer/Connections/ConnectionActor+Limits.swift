// SPDX-License-Identifier: Apache-2.0

extension ConnectionActor {
    /// The limits of connections.
    struct Limits: Sendable {
        /// The longest time from the first byte of a request's head to its end; for the first head, from the start of
        /// the connection.
        var headTime: Duration = .seconds(5)
        /// The longest time without a request.
        var idleTime: Duration = .seconds(60)
        /// The longest time that a handler may take.
        var answerTime: Duration = .seconds(15)
        /// The period in which a client must send or take ``minimumByteCount``.
        var progressTime: Duration = .seconds(10)
        /// The minimum number of bytes that a client must send of a body or take of an answer in each ``progressTime``.
        var minimumByteCount = 10_240
        /// The most connections at once; a further one takes the place of an idle one, or waits to be accepted.
        var connectionCount = 20_000
        /// The most bytes of all bodies that are being received.
        var bodyByteCount = 128 << 20
        /// The most bytes of unsent answers in memory; beyond that, the server closes the slowest connections.
        var unsentByteCount = 256 << 20
        /// The most periods of ``progressTime`` that a client may take for one body.
        var periodCount = 6
    }
}
