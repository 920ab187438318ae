import FoundationEssentials
import TestSupport
import TintypeConcurrency
import TintypeHTTP

@testable import Tintype

/// What an origin does in one test of the suite, and what it saw.
///
/// It speaks the suite's protocol for `/test/<uuid>`; its script is given and its state read directly,
/// in place of `/config` and `/state`.
final class CacheTestOrigin: Sendable {
    /// A request that reached the origin.
    struct Seen: Sendable {
        let number: Int
        let method: String
        let headers: HeaderFields
        /// The fields that were sent and must come back.
        let sent: [(name: String, value: String)]
    }

    private static let dateFields: Set = ["date", "expires", "last-modified", "if-modified-since"]

    let uuid: String
    private let test: CacheTest
    private let clock: TestClock
    private let state = Locked<[Seen]>([])

    init(_ test: CacheTest, clock: TestClock) {
        self.test = test
        self.clock = clock
        self.uuid = UUID().uuidString.lowercased()
    }

    var seen: [Seen] { self.state.withLock { $0 } }

    /// The URL of an exchange, at which `server` is made to answer.
    func url(of exchange: CacheTest.Exchange, at server: FaultyOrigin) -> URL {
        var path = "/test/\(self.uuid)"
        if let name = exchange.json["filename"]?.string { path += "/\(name)" }
        server.script(path, FaultyResponse([.answer { [self] in self.answer($0) }]))
        return server.url(path + (exchange.json["query_arg"]?.string.map { "?\($0)" } ?? ""))
    }

    /// The text of a field: a number is seconds from now where the field is a date.
    func text(_ value: JSONValue, of name: String, now: Date) -> String {
        if let text = value.string { return text }
        let number = value.number ?? 0
        guard Self.dateFields.contains(name.lowercased()) else { return String(Int(number)) }
        return HTTPDate.text(of: now.addingTimeInterval(number))
    }

    private func answer(_ head: [UInt8]) -> FaultyResponse {
        let (method, headers) = Self.parse(head)
        let count = self.seen.count + 1
        let number = headers["Req-Num"].flatMap { Int($0) } ?? count
        guard self.test.exchanges.indices.contains(number - 1) else {
            return .body(Array("no such request".utf8), status: 409)
        }
        let exchange = self.test.exchanges[number - 1]
        if let pause = exchange.json["response_pause"]?.number { self.clock.advance(by: pause) }
        let now = self.clock.now
        let fields = exchange.fields("response_headers").map { field in
            (name: field.name, value: self.text(field.value, of: field.name, now: now), back: field.isRequiredBack)
        }
        let status = self.status(of: exchange, headers)
        let seen = Seen(
            number: number,
            method: method,
            headers: headers,
            sent: fields.filter(\.back).map { ($0.name, $0.value) }
        )
        self.state.withLock { $0.append(seen) }
        if exchange.json["disconnect"]?.isTrue ?? false { return .reset }

        var all = fields.map { ($0.name, $0.value) }
        all.append(("Server-Request-Count", "\(count)"))
        all.append(("Client-Request-Count", "\(number)"))
        all.append(("Server-Now", HTTPDate.text(of: now)))
        let body = [204, 304].contains(status) ? "" : exchange.json["response_body"]?.string ?? self.uuid
        let isDeclared = all.contains { $0.0.lowercased() == "content-length" }
        if !isDeclared, status != 304 { all.append(("Content-Length", "\(body.utf8.count)")) }
        return FaultyResponse([FaultyResponse.head(status, all), .send(Array(body.utf8))])
    }

    /// 304 for a request that has the validator of an earlier response, where one is due, and else 999.
    private func status(of exchange: CacheTest.Exchange, _ headers: HeaderFields) -> Int {
        guard let type = exchange.expectedType, type.hasSuffix("_validated") else { return exchange.status ?? 200 }
        func wasSent(_ name: String, in field: String) -> Bool {
            guard let value = headers[field] else { return false }
            return self.seen.contains { seen in
                seen.sent.contains { $0.name.lowercased() == name && $0.value == value }
            }
        }
        let isCurrent = wasSent("etag", in: "If-None-Match") || wasSent("last-modified", in: "If-Modified-Since")
        return isCurrent ? 304 : 999
    }

    static func parse(_ head: [UInt8]) -> (method: String, headers: HeaderFields) {
        let lines = String(decoding: head, as: UTF8.self).split(whereSeparator: \.isNewline)
        var headers = HeaderFields()
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            headers.append(String(value), for: String(line[..<colon]))
        }
        return (lines.first.map { String($0.prefix { $0 != " " }) } ?? "", headers)
    }
}
