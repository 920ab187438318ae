// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

extension LogLines {
    /// Appends the line of an exchange.
    ///
    /// - Parameters:
    ///   - exchange: The exchange, which has ended.
    ///   - traceID: The identifier of the request's trace, if it has one.
    ///   - milliseconds: The time since 1970.
    mutating func append(_ exchange: ExchangeRecord, traceID: String?, at milliseconds: Int) {
        let note = exchange.note
        self.begin(ImageServer.LogLevel(status: exchange.status), at: milliseconds)
        self.add("request_id") { exchange.identifier.append(to: &$0) }
        if let traceID { self.add("trace_id", traceID) }
        self.add("client") { exchange.client.append(to: &$0) }
        if let head = exchange.head {
            self.add("method", head.method.name)
            self.add("path", head.target)
            // Readers of the log cannot read a source in Base64.
            if !note.source.isEmpty, !Self.isPlain(head.target) { self.add("source", note.source) }
        }
        self.add("status", exchange.status)
        self.add("bytes", exchange.sentByteCount)
        self.add("milliseconds", exchange.duration)
        if !note.cache.isEmpty { self.add("cache", note.cache) }
        if !note.format.isEmpty { self.add("format", note.format) }
        if !note.errorCode.isEmpty { self.add("error", note.errorCode) }
        if !note.message.isEmpty {
            self.add("message", note.message)
        } else if !exchange.isWhole {
            self.add("message", "The client did not take the whole answer.")
        }
        self.end()
    }

    /// Whether a target shows its source, as in `/insecure/plain/https://example.com/cat.jpg`.
    private static func isPlain(_ target: String) -> Bool {
        // `contains("/plain/")` takes longer than all the rest of a line.
        var rest = target.utf8[...]
        while let slash = rest.firstIndex(of: UInt8(ascii: "/")) {
            rest = rest[slash...].dropFirst()
            if rest.starts(with: "plain/".utf8) { return true }
        }
        return false
    }

    /// Appends a line of the server itself.
    ///
    /// - Parameters:
    ///   - level: The level of the line.
    ///   - message: The event, in a full sentence.
    ///   - fields: Values that belong to the event. Their names are lower-case words.
    ///   - milliseconds: The time since 1970.
    mutating func append(
        _ level: ImageServer.LogLevel,
        _ message: String,
        _ fields: KeyValuePairs<String, String>,
        at milliseconds: Int
    ) {
        self.begin(level, at: milliseconds)
        self.add("message", message)
        for (name, value) in fields { self.add(name, value) }
        self.end()
    }
}
