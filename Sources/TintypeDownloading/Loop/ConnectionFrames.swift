// SPDX-License-Identifier: Apache-2.0

import CTintypeCrypto

/// The frames of one HTTP/2 connection, which are read here before libcurl gets them.
///
/// libcurl shows bodies, but no frames. From the first byte on, it can only read what ``look()`` has seen.
///
/// Not sendable: only the loop's thread touches it.
final class ConnectionFrames {
    /// The most that a TLS record has.
    static let recordSize = 16 << 10

    /// The functions that OpenSSL calls; all connections share them.
    ///
    /// Safe for all threads: it is complete before it is used, and OpenSSL only reads it.
    private static nonisolated(unsafe) let method = ccrypto_make_view_method()

    /// Lives until the connection is closed.
    private let view: UnsafeMutablePointer<ccrypto_view>
    private let record: UnsafeMutableRawBufferPointer
    var tracker = FrameTracker()

    /// Begins to watch a connection on which nothing has been read since its handshake, or returns `nil` if there is
    /// no memory.
    ///
    /// - Parameters:
    ///   - tls: OpenSSL's `SSL`.
    ///   - descriptor: The socket.
    ///   - turn: The number of the loop's turn; outlives the connection.
    ///   - limit: The bytes that the connection may bring in one turn.
    ///   - record: Room for a record, which outlives the connection; other connections may use it as well.
    init?(
        tls: UnsafeMutableRawPointer,
        descriptor: CInt,
        turn: UnsafePointer<UInt64>,
        limit: Int,
        record: UnsafeMutableRawBufferPointer
    ) {
        guard let method = Self.method.map({ UnsafeRawPointer($0) }),
            let view = ccrypto_view_connection(tls, descriptor, method, turn, limit)
        else { return nil }
        self.view = view
        self.record = record
    }

    /// Reads the frames of the next TLS record, if it is here and libcurl has read the one before.
    func look() {
        let count = Int(ccrypto_look(self.view, self.record.baseAddress, CInt(self.record.count)))
        if count > 0 { self.tracker.read(UnsafeRawBufferPointer(rebasing: self.record[..<count])) }
    }

    /// Whether libcurl has left a record unread.
    var hasUnread: Bool { ccrypto_pending(self.view) > 0 }
}
