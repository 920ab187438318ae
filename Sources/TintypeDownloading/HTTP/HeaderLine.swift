/// One line of a response's head, as libcurl hands it over.
enum HeaderLine {
    case status(Int)
    case field(name: String, value: String)
    /// More of the value of the field before: a fold, as old servers send it.
    case continuation(String)
    case end
    case malformed

    init(_ bytes: UnsafeRawBufferPointer) {
        let line = Self.trimmed(bytes[...])
        guard let first = bytes.first, !line.isEmpty else {
            // Spaces alone are a fold of nothing.
            self = bytes.first == UInt8(ascii: "\r") || bytes.first == UInt8(ascii: "\n") ? .end : .malformed
            return
        }
        if Self.isSpace(first) {
            self = .continuation(String(decoding: line, as: UTF8.self))
        } else if line.starts(with: "HTTP/".utf8) {
            self = Self.status(line)
        } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
            let name = String(decoding: line[..<colon], as: UTF8.self)
            self = .field(name: name, value: String(decoding: Self.trimmed(line[(colon + 1)...]), as: UTF8.self))
        } else {
            self = .malformed
        }
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
