// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// A response as a client receives it.
struct ClientResponse: Sendable {
    let status: Int
    let fields: HeaderFields
    let body: [UInt8]

    /// The body as text.
    var text: String { String(decoding: self.body, as: UTF8.self) }

    /// The value of the first field called `name`.
    subscript(name: String) -> String? { self.fields.values(for: name).first }
}

/// The head of a response at the front of received bytes.
struct ClientResponseHead {
    let status: Int
    let fields: HeaderFields
    /// The number of bytes up to the end of the empty line.
    let byteCount: Int

    /// Reads a head; returns `nil` if it is incomplete or no HTTP.
    init?(_ bytes: [UInt8]) {
        let mark = Array("\r\n\r\n".utf8)
        guard let end = bytes.firstRange(of: mark) else { return nil }
        let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
        guard let first = lines.first, first.hasPrefix("HTTP/1.1 "), let status = Int(first.dropFirst(9).prefix(3))
        else {
            return nil
        }
        var fields = HeaderFields()
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { return nil }
            fields.append(String(parts[1].drop { $0 == " " }), for: String(parts[0]))
        }
        self.status = status
        self.fields = fields
        self.byteCount = end.upperBound
    }
}
