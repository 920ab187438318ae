// SPDX-License-Identifier: Apache-2.0

/// Reads the head of a request from pieces of any size, by the strict rules of RFC 9112.
///
/// The parser visits each byte once, in any split of the head. It allocates memory only while a part of a head is there.
package struct RequestHeadParser: Sendable {
    /// The largest sizes of a head.
    package struct Limits: Sendable, Hashable {
        /// The largest number of bytes up to the end of the request line.
        package var requestLine: Int
        /// The largest number of bytes in a head.
        package var head: Int
        /// The largest number of header fields.
        package var fieldCount: Int

        /// Creates limits; a head of more than 65,535 bytes is always too large.
        package init(requestLine: Int = 8_192, head: Int = 16_384, fieldCount: Int = 100) {
            self.head = min(head, 65_535)
            self.requestLine = min(requestLine, self.head)
            self.fieldCount = fieldCount
        }
    }

    /// The result of a piece.
    package enum Outcome: Sendable, Equatable {
        /// The head goes on. The parser has stored the piece.
        case incomplete
        /// The head ended after `byteCount` bytes of the piece. The parser is ready for the next head.
        case head(RequestHead, byteCount: Int)
        /// The head is invalid. The parser refuses all further pieces for the same reason.
        case refused(RequestRefusal)
    }

    /// A part of a head; the next byte belongs to it.
    private enum Phase: Sendable {
        case start, startLineFeed, method, target, version, requestLineFeed
        case fieldStart, name, valueStart, value, fieldLineFeed, endLineFeed

        var isRequestLine: Bool {
            switch self {
            case .start, .startLineFeed, .method, .target, .version, .requestLineFeed: true
            default: false
            }
        }
    }

    /// The longest method: longer ones are invalid.
    private static let maximumMethodLength = 32
    private static let versionLength = 8

    package let limits: Limits

    private var refusal: RequestRefusal?
    private var phase = Phase.start
    /// The bytes of an incomplete head.
    private var received: [UInt8] = []
    /// The number of bytes that were visited.
    private var position = 0
    /// The start of the current method, target, version or name.
    private var start = 0
    private var nameEnd = 0
    private var valueStart = 0
    private var valueEnd = 0

    private var method = RequestMethod.get
    private var target = ""
    private var authority: Range<Int>?
    private var majorVersion = 0
    private var minorVersion = 0
    private var places: [FieldPlace] = []
    private var connection = RequestConnection()

    package init(limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Whether a part of a head was received.
    package var isInHead: Bool { !self.received.isEmpty }

    /// Reads the next bytes of the connection.
    package mutating func parse(_ piece: UnsafeRawBufferPointer) -> Outcome {
        if let refusal { return .refused(refusal) }
        let storedCount = self.received.count
        do throws(RequestRefusal) {
            // Usually the head is in one piece, and is copied only when it is complete.
            guard storedCount > 0 else {
                guard try self.scan(piece) else {
                    self.received = Array(piece)
                    return .incomplete
                }
                return self.finish(Array(piece.prefix(self.position)), byteCount: self.position)
            }
            self.received.append(contentsOf: piece.prefix(self.limits.head - storedCount))
            guard try self.scanReceived() else { return .incomplete }
            let byteCount = self.position - storedCount
            return self.finish(Array(self.received.prefix(self.position)), byteCount: byteCount)
        } catch {
            self.received = []
            self.refusal = error
            return .refused(error)
        }
    }

    private mutating func finish(_ bytes: [UInt8], byteCount: Int) -> Outcome {
        let head = RequestHead(
            method: self.method,
            target: self.target,
            minorVersion: self.minorVersion,
            connection: self.connection,
            bytes: bytes,
            places: self.places,
            hostPlace: self.authority ?? self.connection.hostPlace
        )
        self = RequestHeadParser(limits: self.limits)
        return .head(head, byteCount: byteCount)
    }

    private mutating func scanReceived() throws(RequestRefusal) -> Bool {
        let received = self.received
        return try received.withUnsafeBufferPointer { (bytes) throws(RequestRefusal) in
            try self.scan(UnsafeRawBufferPointer(bytes))
        }
    }

    /// Visits the bytes from `position` on; returns whether the head is complete.
    ///
    /// `bytes` starts with the first byte of the head.
    private mutating func scan(_ bytes: UnsafeRawBufferPointer) throws(RequestRefusal) -> Bool {
        while true {
            let isRequestLine = self.phase.isRequestLine
            let limit = isRequestLine ? self.limits.requestLine : self.limits.head
            let end = min(bytes.count, limit)
            guard self.position < end else {
                guard self.position < limit else { throw isRequestLine ? .requestLineTooLong : .headTooLarge }
                return false
            }
            switch self.phase {
            case .start, .startLineFeed, .method, .target, .version, .requestLineFeed:
                try self.scanRequestLine(bytes, end)
            case .fieldStart: try self.scanFieldStart(bytes[self.position])
            case .name: try self.scanName(bytes, end)
            case .valueStart:
                self.skip(bytes, end, while: ASCIIText.isSpace)
                self.valueStart = self.position
                if self.position < end { self.phase = .value }
            case .value: try self.scanValue(bytes, end)
            case .fieldLineFeed:
                try self.scanLineFeed(bytes, then: .fieldStart)
                let name = self.start..<self.nameEnd
                let place = FieldPlace(name: name, value: self.valueStart..<self.valueEnd)
                try self.connection.read(place, in: bytes)
                if self.places.isEmpty { self.places.reserveCapacity(min(16, self.limits.fieldCount)) }
                self.places.append(place)
            case .endLineFeed:
                try self.scanLineFeed(bytes, then: .start)
                try self.connection.check(minorVersion: self.minorVersion)
                return true
            }
        }
    }

    // MARK: - Request line

    private mutating func scanRequestLine(_ bytes: UnsafeRawBufferPointer, _ end: Int) throws(RequestRefusal) {
        switch self.phase {
        case .start:
            // Some clients send a line break after the body of the request before (RFC 9112, 2.2).
            if bytes[self.position] == UInt8(ascii: "\r") {
                self.position += 1
                self.phase = .startLineFeed
            } else {
                self.phase = .method
            }
        case .startLineFeed:
            try self.scanLineFeed(bytes, then: .method)
            self.start = self.position
        case .method: try self.scanMethod(bytes, end)
        case .target: try self.scanTarget(bytes, end)
        case .version: try self.scanVersion(bytes[self.position])
        default:
            try self.scanLineFeed(bytes, then: .fieldStart)
            guard self.majorVersion == 1 else { throw .unsupportedVersion }
        }
    }

    private mutating func scanMethod(_ bytes: UnsafeRawBufferPointer, _ end: Int) throws(RequestRefusal) {
        let tokens = ByteSet.token
        self.skip(bytes, end) { tokens.contains($0) }
        guard self.position - self.start <= Self.maximumMethodLength else { throw .invalidMethod }
        guard self.position < end else { return }
        let name = bytes[self.start..<self.position]
        guard bytes[self.position] == UInt8(ascii: " "), !name.isEmpty else { throw .invalidMethod }
        self.method = RequestMethod(String(decoding: UnsafeRawBufferPointer(rebasing: name), as: UTF8.self))
        self.advance(to: .target)
    }

    private mutating func scanTarget(_ bytes: UnsafeRawBufferPointer, _ end: Int) throws(RequestRefusal) {
        self.skip(bytes, end) { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "#") }
        guard self.position < end else { return }
        switch bytes[self.position] {
        case UInt8(ascii: " "):
            let target = try RequestTarget(bytes[self.start..<self.position], method: self.method)
            self.target = target.text
            self.authority = target.authority
            self.advance(to: .version)
        case UInt8(ascii: "#"): throw .targetWithFragment
        // HTTP/0.9 has no version.
        case UInt8(ascii: "\r"), UInt8(ascii: "\n"): throw .invalidVersion
        default: throw .invalidTarget
        }
    }

    private mutating func scanVersion(_ byte: UInt8) throws(RequestRefusal) {
        let index = self.position - self.start
        let digit = ByteSet.digit.contains(byte) ? Int(byte - UInt8(ascii: "0")) : nil
        switch (index, digit) {
        case (5, let major?) where major > 0: self.majorVersion = major
        case (7, let minor?): self.minorVersion = min(minor, 1)
        case (Self.versionLength, _):
            guard byte != UInt8(ascii: "\n") else { throw .invalidLineEnding }
            guard byte == UInt8(ascii: "\r") else { throw .invalidVersion }
            self.phase = .requestLineFeed
        default:
            let expected = "HTTP/ .".utf8
            guard index != 5, index != 7, byte == expected[expected.index(expected.startIndex, offsetBy: index)]
            else { throw .invalidVersion }
        }
        self.position += 1
    }

    // MARK: - Fields

    private mutating func scanFieldStart(_ byte: UInt8) throws(RequestRefusal) {
        switch byte {
        case UInt8(ascii: "\r"):
            self.position += 1
            self.phase = .endLineFeed
        case UInt8(ascii: "\n"): throw .invalidLineEnding
        case UInt8(ascii: " "), UInt8(ascii: "\t"): throw .foldedField
        default:
            guard self.places.count < self.limits.fieldCount else { throw .tooManyFields }
            self.start = self.position
            self.phase = .name
        }
    }

    private mutating func scanName(_ bytes: UnsafeRawBufferPointer, _ end: Int) throws(RequestRefusal) {
        let tokens = ByteSet.token
        self.skip(bytes, end) { tokens.contains($0) }
        guard self.position < end else { return }
        guard bytes[self.position] == UInt8(ascii: ":"), self.position > self.start else { throw .invalidFieldName }
        self.nameEnd = self.position
        self.position += 1
        self.phase = .valueStart
    }

    private mutating func scanValue(_ bytes: UnsafeRawBufferPointer, _ end: Int) throws(RequestRefusal) {
        self.skipVisibleWords(bytes, end)
        self.skip(bytes, end) { $0 >= 0x20 && $0 != 0x7F || $0 == UInt8(ascii: "\t") }
        guard self.position < end else { return }
        switch bytes[self.position] {
        case UInt8(ascii: "\r"):
            self.valueEnd = self.position
            while self.valueEnd > self.valueStart, ASCIIText.isSpace(bytes[self.valueEnd - 1]) { self.valueEnd -= 1 }
            self.position += 1
            self.phase = .fieldLineFeed
        case UInt8(ascii: "\n"): throw .invalidLineEnding
        default: throw .invalidFieldValue
        }
    }

    // MARK: - Bytes

    private mutating func scanLineFeed(_ bytes: UnsafeRawBufferPointer, then next: Phase) throws(RequestRefusal) {
        guard bytes[self.position] == UInt8(ascii: "\n") else { throw .invalidLineEnding }
        self.position += 1
        self.phase = next
    }

    private mutating func skip(_ bytes: UnsafeRawBufferPointer, _ end: Int, while belongs: (UInt8) -> Bool) {
        var position = self.position
        while position < end, belongs(bytes[position]) { position += 1 }
        self.position = position
    }

    /// Skips words of eight bytes that have no control character.
    private mutating func skipVisibleWords(_ bytes: UnsafeRawBufferPointer, _ end: Int) {
        let ones: UInt64 = 0x0101_0101_0101_0101
        var position = self.position
        while position + 8 <= end {
            let word = bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)
            let deletes = word ^ (ones &* 0x7F)
            // The high bit of a byte tells that it is less than 0x20 in the word, or 0 in the other one.
            let controls = (word &- ones &* 0x20) & ~word | (deletes &- ones) & ~deletes
            guard controls & (ones &* 0x80) == 0 else { break }
            position += 8
        }
        self.position = position
    }

    /// Moves behind the separator, to the start of the next part of the request line.
    private mutating func advance(to next: Phase) {
        self.position += 1
        self.start = self.position
        self.phase = next
    }
}
