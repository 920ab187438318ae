// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeImgproxy

@testable import TintypeServer

/// The table of routes, while the rules change and with long targets.
struct RouteTableTests {
    private let route: ImageRoute

    init() throws {
        let address = try AddressParser(AddressSettings()).parse("/unsafe/plain/http://origin.example/a", now: 0)
        let request = ImageRequest(url: try #require(URL(string: address.source)))
        self.route = ImageRoute(address: address, work: .raw(request), varies: false, origin: "")
    }

    private func key(_ target: String) -> RouteTable.Key {
        RouteTable.Key(target: target, acceptsWebP: false)
    }

    @Test func `a route that was begun before all routes were removed is not stored`() {
        let table = RouteTable()
        let removalCount = table.removalCount
        table.insert(self.route, for: self.key("/a"), madeAfter: removalCount)
        #expect(table[self.key("/a")] != nil)
        table.removeAll()
        #expect(table[self.key("/a")] == nil)
        table.insert(self.route, for: self.key("/a"), madeAfter: removalCount)
        #expect(table[self.key("/a")] == nil)
        table.insert(self.route, for: self.key("/a"), madeAfter: table.removalCount)
        #expect(table[self.key("/a")] != nil)
    }

    @Test(arguments: [(1, 10), (1_000, 3)])
    func `the table keeps the routes that were used last`(length: Int, count: Int) {
        let table = RouteTable(costLimit: 10)
        let keys = (0..<(4 * count)).map { self.key("/\(String(repeating: "x", count: length))\($0)") }
        for key in keys {
            table.insert(self.route, for: key, madeAfter: 0)
            _ = table[keys[0]]
        }
        #expect(table[keys[0]] != nil && table[keys[keys.count - 1]] != nil)
        #expect(keys.count(where: { table[$0] != nil }) <= 2 * count)
    }
}
