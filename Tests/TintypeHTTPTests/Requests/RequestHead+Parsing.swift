// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

extension RequestHeadParser {
    mutating func parse(_ bytes: some Sequence<UInt8>) -> Outcome {
        Array(bytes).withUnsafeBytes { self.parse($0) }
    }

    /// Returns the outcome for `bytes` in one piece.
    static func outcome(of bytes: some Sequence<UInt8>, limits: Limits = Limits()) -> Outcome {
        var parser = RequestHeadParser(limits: limits)
        return parser.parse(bytes)
    }

    /// Returns the outcome for `bytes` in pieces of these sizes, with the number of bytes from the first one on.
    static func outcome(of bytes: [UInt8], pieces: some Sequence<Int>, limits: Limits = Limits()) -> Outcome {
        var parser = RequestHeadParser(limits: limits)
        var start = 0
        for size in pieces {
            let end = min(start + size, bytes.count)
            switch parser.parse(bytes[start..<end]) {
            case .head(let head, let byteCount): return .head(head, byteCount: start + byteCount)
            case .refused(let refusal): return .refused(refusal)
            case .incomplete: start = end
            }
        }
        return .incomplete
    }
}

extension RequestHeadParser.Outcome {
    var head: RequestHead? {
        if case .head(let head, _) = self { head } else { nil }
    }

    var byteCount: Int? {
        if case .head(_, let byteCount) = self { byteCount } else { nil }
    }

    var refusal: RequestRefusal? {
        if case .refused(let refusal) = self { refusal } else { nil }
    }
}

extension RequestHead {
    /// Returns the head of a request for `/` with these field lines.
    static func with(_ lines: [String], method: String = "GET") -> RequestHead? {
        let text = (["\(method) / HTTP/1.1", "Host: a"] + lines).map { $0 + "\r\n" }.joined() + "\r\n"
        return RequestHeadParser.outcome(of: text.utf8).head
    }
}
