// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import TintypeHTTP

/// Conditions of RFC 9110, section 13.
@Suite struct PreconditionsTests {
    private static let now = Date(timeIntervalSince1970: 1_800_000_000)
    private static let modified = Date(timeIntervalSince1970: 784_111_777.9)
    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"

    private func result(
        _ lines: [String],
        method: String = "GET",
        entityTag: String? = "\"a\"",
        lastModified: Date? = Self.modified
    ) throws -> Preconditions.Result {
        let head = try #require(RequestHead.with(lines, method: method))
        return Preconditions.evaluate(head, entityTag: entityTag, lastModified: lastModified, now: Self.now)
    }

    private func isNotModified(
        _ lines: [String],
        method: String = "GET",
        entityTag: String? = "\"a\"",
        lastModified: Date? = Self.modified
    ) throws -> Bool {
        try self.result(lines, method: method, entityTag: entityTag, lastModified: lastModified) == .notModified
    }

    @Test(arguments: [
        ("\"a\"", true), ("W/\"a\"", true), ("*", true), (" * ", true), ("\"b\", \"a\"", true), ("\"b\",\"a\"", true),
        ("\"b\" ,, W/\"a\" ,", true), ("\"a,b\", \"a\"", true), ("\"b\\\", \"a\"", true), ("\"\", \"a\"", true),
        (", \"a\"", true), ("\"a\", b", true),
        ("\"b\"", false), ("", false), ("a", false), ("'a'", false), ("\"A\"", false), ("\"a", false), ("a\"", false),
        ("w/\"a\"", false), ("W/ \"a\"", false), ("*, \"b\"", false), ("**", false), ("\"*\"", false),
        ("\"b\" \"c\"", false),
        ("b, \"a\"", false), ("\"b\"\"a\"", false), ("\"aa\"", false), ("\"\"", false), ("\"b, \"a\"", false),
        ("W/", false),
    ])
    func `a list of tags matches weakly`(list: String, matches: Bool) throws {
        #expect(try self.isNotModified(["If-None-Match: \(list)"]) == matches)
        #expect(try self.isNotModified(["If-None-Match: \(list)"], method: "HEAD") == matches)
        #expect(try self.isNotModified(["If-None-Match: \(list)"], entityTag: "W/\"a\"") == matches)
        #expect(try !self.isNotModified(["If-None-Match: \(list)"], method: "POST"))
    }

    @Test func `tags of several fields count`() throws {
        #expect(try self.isNotModified(["If-None-Match: \"b\"", "If-None-Match: \"a\""]))
        #expect(try !self.isNotModified(["If-None-Match: \"b\"", "If-None-Match: \"c\""]))
    }

    @Test(arguments: ["\"a\"", "\"\"", "W/\"\""])
    func `only a star matches a response without a tag`(list: String) throws {
        #expect(try !self.isNotModified(["If-None-Match: \(list)"], entityTag: nil))
        #expect(try self.isNotModified(["If-None-Match: *"], entityTag: nil))
    }

    @Test(arguments: [
        (Self.date, true), ("Sun, 06 Nov 1994 08:49:38 GMT", true), ("Fri, 31 Dec 9999 23:59:59 GMT", true),
        ("Sunday, 06-Nov-94 08:49:37 GMT", true), ("Sun Nov  6 08:49:37 1994", true),
        ("Sun, 06 Nov 1994 08:49:36 GMT", false),
        ("", false), ("now", false), ("784111777", false), ("Sun, 06 Nov 1994 08:49:37 EST", false),
    ])
    func `a date counts if it is valid`(date: String, matches: Bool) throws {
        #expect(try self.isNotModified(["If-Modified-Since: \(date)"]) == matches)
        #expect(try self.isNotModified(["If-Modified-Since: \(date)"], method: "HEAD") == matches)
        #expect(try !self.isNotModified(["If-Modified-Since: \(date)"], method: "OPTIONS"))
        #expect(try !self.isNotModified(["If-Modified-Since: \(date)"], lastModified: nil))
        #expect(try !self.isNotModified(["If-Modified-Since: \(date)", "If-Modified-Since: \(date)"]))
    }

    @Test(arguments: [("\"b\"", false), ("malformed", false), ("", false), ("\"a\"", true)])
    func `a date does not count beside a list of tags`(list: String, matches: Bool) throws {
        #expect(try self.isNotModified(["If-Modified-Since: \(Self.date)", "If-None-Match: \(list)"]) == matches)
    }

    @Test(arguments: [
        ("\"a\"", true), ("*", true), ("\"b\", \"a\"", true), ("W/\"a\", \"a\"", true),
        ("W/\"a\"", false), ("\"b\"", false), ("", false), ("a", false),
    ])
    func `a list of wanted tags matches strongly`(list: String, matches: Bool) throws {
        let line = "If-Match: \(list)"
        #expect(try self.result([line]) == (matches ? .proceed : .failed))
        #expect(try self.result([line, "If-None-Match: \"a\""]) == (matches ? .notModified : .failed))
        // The date does not count beside the list.
        let early = "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT"
        #expect(try self.result([line, early]) == (matches ? .proceed : .failed))
        #expect(try self.result([line], entityTag: "W/\"a\"") == (list == "*" ? .proceed : .failed))
        #expect(try self.result([line], method: "POST") == .proceed)
    }

    @Test(arguments: [
        (Self.date, Preconditions.Result.proceed), ("Sun, 06 Nov 1994 08:49:36 GMT", .failed), ("now", .proceed),
    ])
    func `a response that was modified since is not wanted`(date: String, expected: Preconditions.Result) throws {
        #expect(try self.result(["If-Unmodified-Since: \(date)"]) == expected)
        #expect(try self.result(["If-Unmodified-Since: \(date)"], lastModified: nil) == .proceed)
    }

    @Test func `a request without conditions proceeds`() throws {
        #expect(try !self.isNotModified([]))
    }
}
