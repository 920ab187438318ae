// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeTestSupport

/// A test of the public HTTP cache suite, as data.
struct CacheTest: Sendable {
    /// The severity of a failure.
    enum Kind: String, Sendable, CaseIterable {
        case required, optimal, check
    }

    /// A request through the cache, the origin's response, and the expectations of both.
    struct Exchange: Sendable {
        let json: JSONValue

        var expectedType: String? { self.json["expected_type"]?.string }
        var pausesAfter: Bool { self.json["pause_after"]?.isTrue ?? false }
        var status: Int? { self.json["response_status"]?.array.first?.number.map { Int($0) } }

        /// Returns whether a failure of the check called `name` makes the test void instead of failed.
        func isSetup(_ name: String) -> Bool {
            self.json["setup"]?.isTrue ?? false || self.json["setup_tests"]?.array.contains(.string(name)) ?? false
        }

        /// Returns names and values.
        ///
        /// The number of a date field is an offset in seconds.
        func fields(_ member: String) -> [(name: String, value: JSONValue, isRequiredBack: Bool)] {
            (self.json[member]?.array ?? []).compactMap { field in
                guard let name = field.array.first?.string, field.array.count > 1 else { return nil }
                return (name, field.array[1], !(field.array.count > 2 && field.array[2].isFalse))
            }
        }
    }

    let suite: String
    let id: String
    let kind: Kind
    /// Whether upstream runs the test only with private caches.
    let isForPrivateCaches: Bool
    /// Whether upstream runs the test only with shared caches.
    let isForSharedCaches: Bool
    let exchanges: [Exchange]

    /// The reason why a cache behind an image loader cannot run the test, or `nil`.
    var obstacle: String? {
        if self.isForDeliveryNetworks { return "about CDN-Cache-Control" }
        for exchange in self.exchanges {
            if let method = exchange.json["request_method"]?.string, method != "GET" { return "sends \(method)" }
            if exchange.json["request_body"] != nil { return "sends a body" }
            if exchange.json["interim_responses"] != nil { return "about interim responses" }
            if exchange.fields("request_headers").contains(where: { $0.name.lowercased() == "range" }) {
                return "asks for a part"
            }
        }
        return nil
    }

    private let isForDeliveryNetworks: Bool

    /// Returns all tests of the suite, or `nil` if the corpus is not on this machine.
    static func all() throws -> [CacheTest]? {
        guard let file = Fixtures.corpus?.appending(path: "http-cache/cache-tests.json"),
            let data = try? Data(contentsOf: file)
        else { return nil }
        return try JSONDecoder().decode([JSONValue].self, from: data).flatMap { suite in
            (suite["tests"]?.array ?? []).compactMap { CacheTest($0, suite: suite["id"]?.string ?? "") }
        }
    }

    private init?(_ json: JSONValue, suite: String) {
        guard let id = json["id"]?.string else { return nil }
        self.suite = suite
        self.id = id
        self.kind = json["kind"]?.string.flatMap { Kind(rawValue: $0) } ?? .required
        self.isForPrivateCaches = json["browser_only"]?.isTrue ?? false
        self.isForSharedCaches = json["browser_skip"]?.isTrue ?? false
        self.isForDeliveryNetworks = json["cdn_only"]?.isTrue ?? false
        self.exchanges = (json["requests"]?.array ?? []).map { Exchange(json: $0) }
    }
}
