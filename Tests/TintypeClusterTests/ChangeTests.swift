// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import TintypeCluster

@Suite struct ChangeTests {
    private func text(_ text: String) -> RedisValue { .bytes(Data(text.utf8)) }

    @Test func `the entries of a stream are changes, and entries of another form are left out`() {
        let good = RedisValue.array([self.text("1-0"), .array([self.text("node"), self.text("https://a")])])
        let odd = RedisValue.array([self.text("2-0"), .array([self.text("node")])])
        let entries = Change.entries(in: .array([.null, .integer(7), good, odd]))
        #expect(entries.compactMap(\.change) == [Change(id: "1-0", node: "node", text: "https://a")])
        // The reader goes on behind them.
        #expect(entries.map(\.id) == ["1-0", "2-0"])
    }

    @Test(arguments: [RedisValue.null, .integer(1), .status("OK"), .array([])])
    func `another reply has no changes`(reply: RedisValue) {
        #expect(Change.entries(in: reply).isEmpty)
    }
}
