// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeHTTP
import TintypeTestSupport

/// A run of one test of the suite against its own loader.
struct CacheTestRun: Sendable {
    enum Outcome: Sendable {
        case passed
        case failed(String)
        /// A precondition of the test did not hold, so the test has no result.
        case void(String)
    }

    private struct Failure: Error {
        let isSetup: Bool
        let message: String
    }

    /// The response that came through the cache.
    private struct Answer {
        var status: Int?
        var headers = HeaderFields()
        /// The body, or `nil` if the loader returns no body, as for an error.
        var body: String?

        func value(_ name: String) -> String? {
            let values = self.headers.values(for: name)
            return values.isEmpty ? nil : values.joined(separator: ", ")
        }

        var serverCount: Int? { self.value("Server-Request-Count").flatMap { Int($0) } }
    }

    let test: CacheTest
    let isShared: Bool

    func run() async throws -> Outcome {
        let scripted = ScriptedOrigin()
        let fixture = try LoaderFixture(origin: scripted)
        let clock = TestClock()
        let origin = CacheTestOrigin(self.test, clock: clock, at: scripted)
        let loader = fixture.makeLoader { configuration in
            configuration.cachePolicy = .honorFreshness
            configuration.isSharedCache = self.isShared
            configuration.now = { clock.now }
            configuration.memory.now = { clock.now }
            configuration.disk?.now = { clock.now }
            // These fields name the test and count its requests.
            configuration.neutralHeaders = ["Test-ID", "Req-Num"]
            // The suite's bodies are text.
            configuration.isStorable = { _ in true }
            configuration.laneCount = 1
        }
        do {
            var answers: [Answer] = []
            for (index, exchange) in self.test.exchanges.enumerated() {
                let request = self.request(exchange, number: index + 1, origin, now: clock.now)
                let answer = await self.answer(to: request, from: loader)
                try self.check(answer, to: exchange, number: index + 1, origin)
                answers.append(answer)
                // Revalidations in the background end before time goes on.
                await loader.waitForRevalidations()
                if exchange.pausesAfter { clock.advance(by: 3) }
            }
            try self.check(answers, origin)
            return .passed
        } catch let failure as Failure {
            return failure.isSetup ? .void(failure.message) : .failed(failure.message)
        }
    }

    private func request(
        _ exchange: CacheTest.Exchange,
        number: Int,
        _ origin: CacheTestOrigin,
        now: Date
    ) -> ImageRequest {
        var headers: HeaderFields = ["Test-ID": self.test.id, "Req-Num": "\(number)"]
        for field in exchange.fields("request_headers") {
            headers.append(origin.text(field.value, of: field.name, now: now), for: field.name)
        }
        var request = ImageRequest(url: origin.url(of: exchange), headers: headers)
        switch exchange.json["cache"]?.string {
        case "no-cache": request.cachePolicy = .revalidate
        case "reload": request.cachePolicy = .reload
        case "no-store": (request.cachePolicy, request.caching.originals) = (.reload, .none)
        case "force-cache": request.cachePolicy = .neverRevalidate
        case "only-if-cached": request.cachePolicy = .cacheOnly
        default: break
        }
        return request
    }

    private func answer(to request: ImageRequest, from loader: LoaderActor) async -> Answer {
        do {
            let response = try await loader.dataResponse(for: request)
            return Answer(
                status: response.metadata.response?.status,
                headers: response.headers,
                body: String(decoding: response.data, as: UTF8.self)
            )
        } catch let error as LoadError where error.code == .notModified {
            return Answer(status: 304, headers: error.headers)
        } catch let error as LoadError where error.code == .notInCache {
            return Answer(status: 504)
        } catch {
            let cause = (error as? LoadError)?.underlyingError as? DownloadError
            return Answer(status: cause?.status, headers: cause?.headers ?? [:])
        }
    }

    // MARK: Checks of an answer

    private func check(
        _ answer: Answer,
        to exchange: CacheTest.Exchange,
        number: Int,
        _ origin: CacheTestOrigin
    ) throws {
        func require(_ condition: Bool, _ check: String, _ message: @autoclosure () -> String) throws {
            if !condition {
                throw Failure(isSetup: exchange.isSetup(check), message: "request \(number): \(message())")
            }
        }
        switch exchange.expectedType {
        case "cached":
            let isCached = answer.serverCount.map { $0 < number } ?? (answer.status == 304)
            try require(isCached, "expected_type", "not from the cache (status \(answer.status ?? 0))")
        case "not_cached":
            try require(answer.serverCount == number, "expected_type", "from the cache (\(answer.serverCount ?? 0))")
        default: break
        }
        if let expected = exchange.json["expected_status"] {
            let isMet = expected == .null || answer.status.map { Double($0) } == expected.number
            try require(isMet, "expected_status", "status \(answer.status ?? 0), not \(expected)")
        } else if answer.status == 999 {
            try require(false, "expected_type", "the request should have been conditional")
        } else {
            let status = exchange.status ?? 200
            try require(answer.status == status, "setup", "status \(answer.status ?? 0), not \(status)")
        }
        try self.checkFields(answer, exchange, origin, require)
        try self.checkBody(answer, exchange, origin, require)
    }

    private func checkFields(
        _ answer: Answer,
        _ exchange: CacheTest.Exchange,
        _ origin: CacheTestOrigin,
        _ require: (Bool, String, @autoclosure () -> String) throws -> Void
    ) throws {
        for field in exchange.json["expected_response_headers"]?.array ?? [] {
            let name = field.string ?? field.array.first?.string ?? ""
            let value = answer.value(name)
            try require(value != nil, "expected_response_headers", "no \(name)")
            if field.array.count == 3, field.array[1] == .string(">") {
                let isMore = value.flatMap { Double($0) }.map { $0 > field.array[2].number ?? 0 } ?? false
                try require(isMore, "expected_response_headers", "\(name) is \(value ?? "")")
            } else if field.array.count == 2 {
                let sentAt = answer.value("Server-Now").flatMap { HTTPDate.parse($0, now: Date()) } ?? Date()
                let expected = origin.text(field.array[1], of: name, now: sentAt)
                try require(value == expected, "expected_response_headers", "\(name): \(value ?? ""), not \(expected)")
            }
        }
        for field in exchange.json["expected_response_headers_missing"]?.array ?? [] {
            let name = field.string ?? field.array.first?.string ?? ""
            let isMissing =
                field.array.count == 2 ? answer.value(name) != field.array[1].string : answer.value(name) == nil
            try require(isMissing, "expected_response_headers_missing", "\(name) is there")
        }
    }

    private func checkBody(
        _ answer: Answer,
        _ exchange: CacheTest.Exchange,
        _ origin: CacheTestOrigin,
        _ require: (Bool, String, @autoclosure () -> String) throws -> Void
    ) throws {
        guard !(exchange.json["check_body"]?.isFalse ?? false), let body = answer.body else { return }
        if let expected = exchange.json["expected_response_text"] {
            try require(expected == .null || body == expected.string, "expected_response_text", "body \(body)")
        } else {
            let expected = exchange.json["response_body"]?.string ?? origin.uuid
            try require(body == expected, "check_body", "body \(body), not \(expected)")
        }
    }

    // MARK: Checks of the origin's requests

    private func check(_ answers: [Answer], _ origin: CacheTestOrigin) throws {
        var seen = origin.seen[...]
        for (index, exchange) in self.test.exchanges.enumerated() where exchange.expectedType != "cached" {
            let request = seen.popFirst()
            func require(_ condition: Bool, _ check: String, _ message: String) throws {
                if condition { return }
                throw Failure(isSetup: exchange.isSetup(check), message: "request \(index + 1): \(message)")
            }
            guard let request else {
                try require(exchange.expectedType == nil, "expected_type", "the origin did not see it")
                continue
            }
            switch exchange.expectedType {
            case "etag_validated":
                try require(request.headers["If-None-Match"] != nil, "expected_type", "it had no If-None-Match")
            case "lm_validated":
                try require(request.headers["If-Modified-Since"] != nil, "expected_type", "it had no If-Modified-Since")
            default: break
            }
            if let method = exchange.json["expected_method"]?.string {
                try require(request.method == method, "expected_method", "it was \(request.method)")
            }
            for field in exchange.json["expected_request_headers"]?.array ?? [] {
                let name = field.string ?? field.array.first?.string ?? ""
                let value = request.headers.values(for: name).joined(separator: ", ")
                let isMet = field.array.count == 2 ? value == field.array[1].string : !value.isEmpty
                try require(isMet, "expected_request_headers", "\(name): \(value)")
            }
            for name in exchange.json["expected_request_headers_missing"]?.array ?? [] {
                let name = name.string ?? name.array.first?.string ?? ""
                try require(request.headers[name] == nil, "expected_request_headers_missing", "\(name) was sent")
            }
            guard exchange.expectedType == nil || exchange.expectedType == "not_cached" else { continue }
            for (name, group) in Dictionary(grouping: request.sent, by: \.name) {
                guard answers[index].serverCount != nil else { continue }
                let expected = group.map(\.value).joined(separator: ", ")
                try require(answers[index].value(name) == expected, "response_headers", "\(name) did not come back")
            }
        }
    }
}
