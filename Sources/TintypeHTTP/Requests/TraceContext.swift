// SPDX-License-Identifier: Apache-2.0

/// A position in a distributed trace, as the field `traceparent` names it (W3C Trace Context, version 00).
package struct TraceContext: Sendable, Hashable {
    private static let sampled: UInt8 = 1

    /// The identifier of the trace: 32 hexadecimal digits.
    package let traceID: String
    /// The identifier of the span: 16 hexadecimal digits.
    package let spanID: String
    /// Whether the caller may have recorded the trace.
    package let isSampled: Bool

    /// Reads the value of `traceparent`; returns `nil` if it is invalid.
    ///
    /// A later version may have more parts behind the four known ones.
    package init?(_ value: String) {
        let parts = value.utf8.split(separator: UInt8(ascii: "-"), maxSplits: 4, omittingEmptySubsequences: false)
        guard parts.count >= 4, let version = Self.hexadecimal(parts[0], count: 2), version != "ff",
            version != "00" || parts.count == 4,
            let traceID = Self.hexadecimal(parts[1], count: 32), traceID.contains(where: { $0 != "0" }),
            let spanID = Self.hexadecimal(parts[2], count: 16), spanID.contains(where: { $0 != "0" }),
            let flags = Self.hexadecimal(parts[3], count: 2).flatMap({ UInt8($0, radix: 16) })
        else { return nil }
        self.traceID = traceID
        self.spanID = spanID
        self.isSampled = flags & Self.sampled != 0
    }

    private init(traceID: String, spanID: String, isSampled: Bool) {
        self.traceID = traceID
        self.spanID = spanID
        self.isSampled = isSampled
    }

    /// Reads the context of a request's caller; returns `nil` if the request has no valid `traceparent` field, or several.
    package init?(_ head: RequestHead) {
        guard let context = head.onlyValue(for: "traceparent").flatMap({ TraceContext($0) }) else { return nil }
        self = context
    }

    /// Returns the context of a new span in the same trace.
    package func child(using generator: inout some RandomNumberGenerator) -> TraceContext {
        let spanID = Self.identifier(using: &generator)
        return TraceContext(traceID: self.traceID, spanID: spanID, isSampled: self.isSampled)
    }

    /// The value of `traceparent` for requests that belong to this span.
    package var traceparent: String {
        "00-\(self.traceID)-\(self.spanID)-\(self.isSampled ? "01" : "00")"
    }

    /// Returns 16 random digits, which are not all zeros: such identifiers are invalid.
    private static func identifier(using generator: inout some RandomNumberGenerator) -> String {
        let text = String(UInt64.random(in: 1 ... .max, using: &generator), radix: 16)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }

    private static func hexadecimal(_ digits: Substring.UTF8View, count: Int) -> String? {
        guard digits.count == count, digits.allSatisfy(ByteSet.lowercaseHexadecimal.contains) else { return nil }
        return String(Substring(digits))
    }
}
