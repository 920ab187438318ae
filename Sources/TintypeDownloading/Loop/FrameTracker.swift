// SPDX-License-Identifier: Apache-2.0

/// Follows the frames that an HTTP/2 server sends, and records how each stream ends.
///
/// libcurl 7.88 reports success for a stream that its server reset without an error, and for every stream of a session
/// that nghttp2 gives up because of an illegal frame. Only the frames tell these ends from a real one.
struct FrameTracker {
    private enum End {
        case none
        /// With the last frame of the body.
        case body
        /// With a head or with trailers.
        case fields
        case reset
    }

    private struct Stream {
        var bodyBytes = 0
        var end = End.none
    }

    // The types and flags of RFC 9113, 6.
    private static let data: UInt8 = 0
    private static let headers: UInt8 = 1
    private static let reset: UInt8 = 3
    private static let endStream: UInt8 = 1
    private static let padded: UInt8 = 8
    private static let headerSize = 9

    /// The streams that transfers wait for, oldest first.
    private var streams: [(id: UInt32, stream: Stream)] = []
    private var nextID: UInt32 = 1
    /// The first bytes of a frame: its header, and the length of the padding if it has one.
    private var header: InlineArray<10, UInt8> = .init(repeating: 0)
    private var headerCount = 0
    /// The bytes of the frame that are yet to come.
    private var missingBytes = 0

    /// The number of streams that transfers wait for.
    var openCount: Int { self.streams.count }

    /// Adds the stream of a request that is about to be sent; returns its number.
    mutating func open() -> UInt32 {
        defer { self.nextID += 2 }
        self.streams.append((self.nextID, Stream()))
        return self.nextID
    }

    mutating func close(_ id: UInt32) {
        self.streams.removeAll { $0.id == id }
    }

    /// Whether the server ended the stream after exactly `bodyBytes` bytes of its body.
    ///
    /// Trailers count as an end only if libcurl handed them over (`hasTrailers`), which shows that it could read them.
    func hasEnded(_ id: UInt32, bodyBytes: Int, hasTrailers: Bool) -> Bool {
        guard let stream = self.streams.first(where: { $0.id == id })?.stream, stream.bodyBytes == bodyBytes else {
            return false
        }
        return switch stream.end {
        case .none, .reset: false
        case .body: true
        case .fields: bodyBytes == 0 || hasTrailers
        }
    }

    /// Reads the next bytes of the connection; a frame may be split anywhere.
    mutating func read(_ bytes: UnsafeRawBufferPointer) {
        var index = 0
        while index < bytes.count {
            if self.missingBytes > 0 {
                let count = min(self.missingBytes, bytes.count - index)
                self.missingBytes -= count
                index += count
                continue
            }
            self.header[self.headerCount] = bytes[index]
            self.headerCount += 1
            index += 1
            if self.headerCount >= Self.headerSize { self.readHeader() }
        }
    }

    private mutating func readHeader() {
        let length = Int(self.header[0]) << 16 | Int(self.header[1]) << 8 | Int(self.header[2])
        let (type, flags) = (self.header[3], self.header[4])
        let isPadded = type == Self.data && flags & Self.padded != 0
        // The length of the padding comes first.
        if isPadded, length > 0, self.headerCount == Self.headerSize { return }
        let padding = isPadded ? Int(self.header[Self.headerSize]) + 1 : 0
        self.missingBytes = length - (self.headerCount - Self.headerSize)
        self.headerCount = 0
        let high = UInt32(self.header[5] & 0x7F) << 24 | UInt32(self.header[6]) << 16
        let id = high | UInt32(self.header[7]) << 8 | UInt32(self.header[8])
        guard let index = self.streams.firstIndex(where: { $0.id == id }), self.streams[index].stream.end == .none
        else {
            return
        }
        // A frame with more padding than bytes is illegal, and ends nothing.
        guard padding <= length else { return }
        switch type {
        case Self.data:
            self.streams[index].stream.bodyBytes += length - padding
            if flags & Self.endStream != 0 { self.streams[index].stream.end = .body }
        case Self.headers where flags & Self.endStream != 0: self.streams[index].stream.end = .fields
        case Self.reset: self.streams[index].stream.end = .reset
        default: break
        }
    }
}
