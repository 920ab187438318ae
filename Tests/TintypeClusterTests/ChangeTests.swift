// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import TintypeCluster

@Suite struct ChangeTests {
    private func text(_ text: String) -> RedisValue { .bytes(Data(text.utf8)) }

    @Test func `the entries of a stream are changes, and entries of another form are left out`() {
        let good = RedisValue.array([self.text("1-0"), .array([self.text("node"), self.text("https://a")])])
        let odd = RedisValue.array([self.text("2-0"), .array([self.text("node")])])
        let changes = Change.changes(in: .array([good, odd, .null, .integer(7)]))
        #expect(changes == [Change(id: "1-0", node: "node", text: "https://a")])
    }

    @Test(arguments: [RedisValue.null, .integer(1), .status("OK")])
    func `another reply has no changes`(reply: RedisValue) {
        #expect(Change.changes(in: reply) == nil)
    }
}
