// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeHTTP
import TintypeTestSupport

/// Compares the parser with a reference on heads that differ from valid ones in a few places.
@Suite struct RequestHeadMutationTests {
    private static let heads = [
        "GET /a?b HTTP/1.1\r\nHost: example.com\r\nAccept: image/webp\r\n",
        "HEAD http://example.com/a HTTP/1.0\r\nConnection: keep-alive\r\nX-Y:  z \r\n",
        "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 12\r\nExpect: 100-continue\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close, TE\r\n",
    ]
    private static let lines = [
        "Host: example.com", "Host: b:8", "Content-Length: 5", "Content-Length: 1,1", "Transfer-Encoding: chunked",
        "Expect: 100-continue", "Expect: x", "Connection: close", "Connection: keep-alive", " folded", "X : y", "\r\n",
        "X:",
        "GET / HTTP/1.1", "GET / HTTP/1.0", "GET / HTTP/2.0",
    ]
    private static let bytes = Array("\r\n \t:\0\u{7F},-0129aZH/.#*@[]?%\u{E9}\"".utf8) + [0xFF]

    private static func mutant(using generator: inout SeededGenerator) -> [UInt8] {
        var head = Array(self.heads[Int.random(in: 0..<self.heads.count, using: &generator)].utf8)
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
            let index = Int.random(in: 0..<max(1, head.count), using: &generator)
            let byte = self.bytes[Int.random(in: 0..<self.bytes.count, using: &generator)]
            switch Int.random(in: 0..<7, using: &generator) {
            case 0: head.insert(byte, at: index)
            case 1 where index < head.count: head.remove(at: index)
            case 2 where index < head.count: head[index] = byte
            case 3 where index < head.count: head[index] ^= 0x20
            case 4: head.removeSubrange(index..<min(head.count, index + 8))
            case 5:
                let line = self.lines[Int.random(in: 0..<self.lines.count, using: &generator)]
                let starts = [0] + head.indices.filter { head[$0] == 10 }.map { $0 + 1 }
                let start = starts[Int.random(in: 0..<starts.count, using: &generator)]
                head.insert(contentsOf: (line + "\r\n").utf8, at: start)
            default: head += head[index...]
            }
        }
        return head + Array("\r\n\r\n".utf8)
    }

    /// Counts all outcomes, so that a change of the mutations cannot leave one of them out.
    @Test(arguments: [24, 25] as [UInt64])
    func `the parser agrees with the reference, in any split`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var counts: [Int: Int] = [:]
        var wrong: [String] = []
        for _ in 0..<50_000 {
            let bytes = Self.mutant(using: &generator)
            let outcome = RequestHeadParser.outcome(of: bytes)
            counts[outcome.refusal?.status ?? 200, default: 0] += 1
            let first = Int.random(in: 0...bytes.count, using: &generator)
            let second = Int.random(in: 0...(bytes.count - first), using: &generator)
            let pieces = [first, second, bytes.count - first - second]
            guard ReferenceRequestHead(outcome) == ReferenceRequestHead(bytes),
                RequestHeadParser.outcome(of: bytes, pieces: pieces) == outcome
            else {
                wrong.append(String(decoding: bytes, as: UTF8.self))
                continue
            }
        }
        #expect(wrong == [])
        #expect(Set(counts.keys) == [200, 400, 417, 501, 505])
        #expect(counts.values.allSatisfy { $0 >= 20 })
    }

    @Test func `no bytes stop the parser, in any split and with any limits`() {
        var generator = SeededGenerator(seed: 9112)
        for _ in 0..<10_000 {
            let bytes = Self.mutant(using: &generator)
            let limits = RequestHeadParser.Limits(
                requestLine: Int.random(in: 0...64, using: &generator),
                head: Int.random(in: 0...128, using: &generator),
                fieldCount: Int.random(in: 0...4, using: &generator)
            )
            let whole = RequestHeadParser.outcome(of: bytes, limits: limits)
            let drip = repeatElement(1, count: bytes.count)
            guard RequestHeadParser.outcome(of: bytes, pieces: drip, limits: limits) != whole else { continue }
            Issue.record("\(String(decoding: bytes, as: UTF8.self).debugDescription) with \(limits)")
        }
    }
}
