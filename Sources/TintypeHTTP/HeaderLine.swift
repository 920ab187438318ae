// SPDX-License-Identifier: Apache-2.0

/// One line of a response's head, as libcurl hands it over.
package enum HeaderLine {
    case status(Int)
    case field(name: String, value: String)
    /// More of the value of the field before: a fold, as old servers send it.
    case continuation(String)
    case end
    case malformed

    /// Reads a line; `previous` is the name of the field before, which the line may continue.
    package init(_ bytes: UnsafeRawBufferPointer, after previous: @autoclosure () -> String? = nil) {
        let line = Self.trimmed(bytes[...])
        guard let first = bytes.first, !line.isEmpty else {
            // Spaces alone are a fold of nothing.
            self = bytes.first == UInt8(ascii: "\r") || bytes.first == UInt8(ascii: "\n") ? .end : .malformed
            return
        }
        if Self.isSpace(first) {
            self = .continuation(Self.text(line, of: previous() ?? "", isStart: false))
        } else if line.starts(with: "HTTP/".utf8) {
            self = Self.status(line)
        } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
            let name = String(decoding: line[..<colon], as: UTF8.self)
            self = .field(name: name, value: Self.text(Self.trimmed(line[(colon + 1)...]), of: name, isStart: true))
        } else {
            self = .malformed
        }
    }

    /// The value of a field; what is no UTF-8 is replaced.
    ///
    /// A location names a resource by its bytes: those over 0x7F are percent-encoded, as browsers do it.
    private static func text(_ bytes: Slice<UnsafeRawBufferPointer>, of name: String, isStart: Bool) -> String {
        guard bytes.contains(where: { $0 > 0x7F }), HeaderField(name: name, value: "").isNamed("Location") else {
            return String(decoding: bytes, as: UTF8.self)
        }
        let start = isStart ? self.endOfHost(in: bytes) : bytes.startIndex
        return String(decoding: bytes[..<start], as: UTF8.self) + PercentEncoding.encodeNonASCII(bytes[start...])
    }

    /// Returns the end of the host in a reference; host names are never percent-encoded.
    private static func endOfHost(in bytes: Slice<UnsafeRawBufferPointer>) -> Int {
        guard let slash = bytes.firstIndex(of: UInt8(ascii: "/")), bytes[(slash + 1)...].first == UInt8(ascii: "/"),
            bytes[..<slash].allSatisfy({ $0 < 0x80 && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
        else { return bytes.startIndex }
        return bytes[(slash + 2)...].firstIndex { "/?#".utf8.contains($0) } ?? bytes.endIndex
    }

    /// The number after the version; libcurl has checked the line already.
    private static func status(_ line: Slice<UnsafeRawBufferPointer>) -> HeaderLine {
        guard let space = line.firstIndex(of: UInt8(ascii: " ")) else { return .malformed }
        let digits = self.trimmed(line[space...]).prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
        return Int(String(decoding: digits, as: UTF8.self)).map { .status($0) } ?? .malformed
    }

    private static func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        var bytes = bytes
        while let first = bytes.first, self.isSpace(first) { bytes.removeFirst() }
        while let last = bytes.last, self.isSpace(last) { bytes.removeLast() }
        return bytes
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
            || byte == UInt8(ascii: "\n")
    }
}
