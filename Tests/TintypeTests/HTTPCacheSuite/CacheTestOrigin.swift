// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency
import TintypeHTTP
import TintypeTestSupport

@testable import Tintype

/// The responses of a scripted origin in one test of the suite, and the requests that it received.
///
/// The test sets the script and reads the state directly, instead of through the suite's `/config` and `/state`. The
/// origin does not see fields that a downloader adds, such as `Accept`. No test of the suite needs them.
final class CacheTestOrigin: Sendable {
    /// A request that reached the origin.
    struct Seen: Sendable {
        let method: String
        let headers: HeaderFields
        /// The fields that were sent and must come back.
        let sent: [(name: String, value: String)]
    }

    private static let dateFields: Set = ["date", "expires", "last-modified", "if-modified-since"]

    let uuid: String
    private let test: CacheTest
    private let clock: TestClock
    private let scripted: ScriptedOrigin
    private let state = Locked<[Seen]>([])

    init(_ test: CacheTest, clock: TestClock, at scripted: ScriptedOrigin) {
        self.test = test
        self.scripted = scripted
        self.clock = clock
        self.uuid = UUID().uuidString.lowercased()
    }

    var seen: [Seen] { self.state.withLock { $0 } }

    /// Returns the URL of an exchange, and scripts the origin's response there.
    func url(of exchange: CacheTest.Exchange) -> URL {
        var path = "/test/\(self.uuid)"
        if let name = exchange.json["filename"]?.string { path += "/\(name)" }
        self.scripted.script(path, .answer { [weak self] in self?.answer(to: $0) ?? .reset })
        return self.scripted.url(path + (exchange.json["query_arg"]?.string.map { "?\($0)" } ?? ""))
    }

    /// Returns the text of a field.
    ///
    /// The number of a date field is in seconds from now.
    func text(_ value: JSONValue, of name: String, now: Date) -> String {
        if let text = value.string { return text }
        let number = value.number ?? 0
        guard Self.dateFields.contains(name.lowercased()) else { return String(Int(number)) }
        return HTTPDate.text(of: now.addingTimeInterval(number))
    }

    private func answer(to request: DownloadRequest) -> ScriptedResponse {
        let headers = request.headers
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
            method: request.method.description,
            headers: headers,
            sent: fields.filter(\.back).map { ($0.name, $0.value) }
        )
        self.state.withLock { $0.append(seen) }
        if exchange.json["disconnect"]?.isTrue ?? false { return .reset }

        var all = HeaderFields()
        for field in fields { all.append(field.value, for: field.name) }
        all.append("\(count)", for: "Server-Request-Count")
        all.append("\(number)", for: "Client-Request-Count")
        all.append(HTTPDate.text(of: now), for: "Server-Now")
        let body = [204, 304].contains(status) ? "" : exchange.json["response_body"]?.string ?? self.uuid
        if all["Content-Length"] == nil, status != 304 { all.append("\(body.utf8.count)", for: "Content-Length") }
        return .body(Array(body.utf8), status: status, headers: all)
    }

    /// Returns the status of the response.
    ///
    /// If a validation is due, a known validator gets 304, and other requests get 999.
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
}
