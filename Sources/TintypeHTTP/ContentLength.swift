// SPDX-License-Identifier: Apache-2.0

/// The length of a body as its response declares it (RFC 9112, section 6.3).
package enum DeclaredLength: Equatable {
    case none
    case bytes(Int64)
    /// The length is not a number, or there are several that differ: the end of the body is unknown.
    case invalid

    package init(_ headers: HeaderFields) {
        let values = headers.values(for: "Content-Length")
        // Chunks mark their own end (RFC 9112, 6.3).
        guard let first = values.first, !headers.isChunked else {
            self = .none
            return
        }
        guard FieldText.isNumber(first), values.allSatisfy({ $0 == first }) else {
            self = .invalid
            return
        }
        // One that no number holds is over every limit.
        self = .bytes(Int64(first) ?? .max)
    }
}

extension HeaderFields {
    /// Whether the body comes in chunks: whether the last of its transfer codings is `chunked` (RFC 9112, 6.1).
    package var isChunked: Bool {
        let codings = self.values(for: "Transfer-Encoding").joined(separator: ",").split { ", \t".contains($0) }
        return codings.last?.lowercased() == "chunked"
    }
}

/// The part of a resource that a 206 response has (RFC 9110, section 14.4).
package struct ContentRange: Equatable {
    package let first: Int
    package let last: Int
    package let total: Int?

    /// Reads the value of `Content-Range`; returns `nil` if it names no part.
    package init?(_ value: String) {
        let parts = value.split(separator: " ", omittingEmptySubsequences: true)
        guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
        let halves = parts[1].split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last
        else { return nil }
        let total = Self.number(halves[1])
        guard halves[1] == "*" || total.map({ last < $0 }) ?? false else { return nil }
        self.first = first
        self.last = last
        self.total = total
    }

    private static func number(_ text: Substring) -> Int? {
        FieldText.isNumber(text) ? Int(text) : nil
    }
}
