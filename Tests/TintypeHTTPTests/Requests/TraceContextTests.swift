// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeHTTP
import TintypeTestSupport

/// Trace contexts of the W3C recommendation.
@Suite struct TraceContextTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let span = "00f067aa0ba902b7"

    @Test(arguments: [
        ("00-\(Self.trace)-\(Self.span)-01", true), ("00-\(Self.trace)-\(Self.span)-00", false),
        ("00-\(Self.trace)-\(Self.span)-02", false), ("00-\(Self.trace)-\(Self.span)-ff", true),
        ("01-\(Self.trace)-\(Self.span)-01", true), ("cc-\(Self.trace)-\(Self.span)-00-more-parts", false),
        ("fe-\(Self.trace)-\(Self.span)-01-", true),
    ])
    func `a valid context gives its child the same trace`(text: String, isSampled: Bool) throws {
        var generator = SeededGenerator(seed: 1)
        let context = try #require(TraceContext(text))
        #expect(context.traceID == Self.trace)
        #expect(context.spanID == Self.span)
        #expect(context.isSampled == isSampled)
        let child = context.child(using: &generator)
        #expect(child.spanID != Self.span)
        #expect(child.traceparent == "00-\(Self.trace)-\(child.spanID)-0\(isSampled ? 1 : 0)")
        #expect(TraceContext(child.traceparent) == child)
        let head = try #require(RequestHead.with(["Traceparent: \(text)"]))
        #expect(TraceContext(head) == context)
    }

    @Test(arguments: [
        "", "00", "00-\(Self.trace)-\(Self.span)", "00-\(Self.trace)-\(Self.span)-", "00-\(Self.trace)-\(Self.span)-1",
        "00-\(Self.trace)-\(Self.span)-01-", "00-\(Self.trace)-\(Self.span)-01-more",
        "00-\(Self.trace)-\(Self.span)-011",
        "ff-\(Self.trace)-\(Self.span)-01", "0-\(Self.trace)-\(Self.span)-01", "0g-\(Self.trace)-\(Self.span)-01",
        "00-\(Self.trace.uppercased())-\(Self.span)-01", "00-\(Self.trace)-\(Self.span.uppercased())-01",
        "00-\(Self.trace)0-\(Self.span)-01", "00-\(Self.trace.dropLast())-\(Self.span)-01",
        "00-\(Self.trace)-\(Self.span)0-01",
        "00-00000000000000000000000000000000-\(Self.span)-01", "00-\(Self.trace)-0000000000000000-01",
        "00-\(Self.trace)-\(Self.span)-0A", "00-\(Self.trace)-\(Self.span)-0x", "00_\(Self.trace)_\(Self.span)_01",
        "00-\(Self.trace)-\(Self.span)-01, 00-\(Self.trace)-\(Self.span)-01", "-00-\(Self.trace)-\(Self.span)-01",
        "cc-\(Self.trace)-\(Self.span)-01.more", "00-\u{661}bf92f3577b34da6a3ce929d0e0e473-\(Self.span)-01",
    ])
    func `an invalid context is none`(text: String) throws {
        #expect(TraceContext(text) == nil)
        #expect(try TraceContext(#require(RequestHead.with(["traceparent: \(text)"]))) == nil)
    }

    @Test func `several contexts are none`() throws {
        let line = "traceparent: 00-\(Self.trace)-\(Self.span)-01"
        let head = try #require(RequestHead.with([line, line]))
        #expect(TraceContext(head) == nil)
    }

    /// Gives zeros first, and then small numbers.
    private struct LowGenerator: RandomNumberGenerator {
        var number: UInt64 = 0

        mutating func next() -> UInt64 {
            self.number += 1
            return self.number / 4
        }
    }

    @Test func `identifiers have all their digits and are never zero`() throws {
        let parent = try #require(TraceContext("00-\(Self.trace)-\(Self.span)-01"))
        var low = LowGenerator()
        var seeded = SeededGenerator(seed: 4)
        for _ in 0..<1_000 {
            for context in [parent.child(using: &low), parent.child(using: &seeded)] {
                #expect(TraceContext(context.traceparent) == context)
            }
        }
    }
}
