// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeHTTP

/// The bytes of response heads.
@Suite struct AnswerHeadTests {
    private func text(_ head: AnswerHead) -> String {
        var buffer = Array("before ".utf8)
        head.append(to: &buffer, date: DateLine(second: 784_111_777))
        return String(decoding: buffer, as: UTF8.self)
    }

    @Test func `a head is a status line, a date and fields`() {
        var head = AnswerHead(status: 200)
        head.fields.append("image/webp", for: "Content-Type")
        head.fields.append(35_840, for: "Content-Length")
        head.fields.append("", for: "X-Empty")
        let isAdded = head.fields.append("Tue\u{E9}\ts", for: "X-More")
        #expect(isAdded)
        #expect(
            self.text(head) == """
                before HTTP/1.1 200 OK\r
                Date: Sun, 06 Nov 1994 08:49:37 GMT\r
                Content-Type: image/webp\r
                Content-Length: 35840\r
                X-Empty: \r
                X-More: Tue\u{E9}\ts\r

                """
        )
    }

    @Test(arguments: [
        ("X", "a\r\nSet-Cookie: b"), ("X", "a\nb"), ("X", "a\rb"), ("X", "\0"), ("X", "\u{7F}"), ("X", "\u{1B}[0m"),
        ("", "a"), ("X Y", "a"), ("X:", "a"), ("X\r\n", "a"), ("\u{E9}", "a"),
    ])
    func `a field that would break the head is not added`(name: String, value: String) {
        var fields = FieldLines()
        let isAdded = fields.append(value, for: name)
        #expect(!isAdded)
        #expect(fields == FieldLines())
    }

    @Test(arguments: [
        100, 200, 204, 206, 304, 400, 403, 404, 405, 408, 413, 414, 416, 417, 421, 422, 429, 431, 499, 500, 501, 502,
        503,
        504, 505,
    ])
    func `each status of the server has a phrase`(status: Int) {
        let phrase = AnswerHead.reason(for: status)
        #expect(!phrase.isEmpty)
        #expect(self.text(AnswerHead(status: status)).hasPrefix("before HTTP/1.1 \(status) \(phrase)\r\n"))
    }

    @Test(arguments: [
        (299, "299 "), (999, "999 "), (0, "500 Internal Server Error"), (1_000, "500 Internal Server Error"),
        (-200, "500 Internal Server Error"),
    ])
    func `a status without a phrase is a number, and has three digits`(status: Int, text: String) {
        #expect(self.text(AnswerHead(status: status)).hasPrefix("before HTTP/1.1 \(text)\r\n"))
    }

    @Test func `the date changes with the second`() {
        var line = DateLine(second: 0)
        #expect(String(decoding: line.bytes, as: UTF8.self) == "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n")
        line.update(to: 0)
        #expect(line == DateLine(second: 0))
        line.update(to: 1)
        #expect(String(decoding: line.bytes, as: UTF8.self) == "Date: Thu, 01 Jan 1970 00:00:01 GMT\r\n")
    }
}
