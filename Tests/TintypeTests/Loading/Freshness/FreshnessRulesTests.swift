// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeHTTP
import TintypeTestSupport

@testable import Tintype

/// The rules of a loader about stored responses, without a loader.
@Suite struct FreshnessRulesTests {
    private static let received = Date(timeIntervalSince1970: 1_800_000_000)

    private let request: ImageRequest

    init() throws {
        self.request = ImageRequest(url: try #require(URL(string: "https://example.com/a")))
    }

    private func rules(_ change: (inout LoaderActor.Configuration) -> Void = { _ in }) -> FreshnessRules {
        var configuration = LoaderActor.Configuration()
        configuration.now = { Self.received }
        change(&configuration)
        return FreshnessRules(configuration)
    }

    private func record(_ fields: HeaderFields) -> ResponseRecord {
        ResponseRecord(
            status: 200,
            headers: fields,
            requestHeaders: [:],
            requestDate: Self.received,
            responseDate: Self.received,
            isShared: false
        )
    }

    // MARK: Plans

    @Test(
        arguments: [
            (.neverRevalidate, nil, .neverRevalidate, false), (.honorFreshness, nil, .honorFreshness, true),
            (.honorFreshness, .neverRevalidate, .neverRevalidate, false),
            (.neverRevalidate, .revalidate, .revalidate, true), (.neverRevalidate, .reload, .reload, false),
            (.honorFreshness, .reload, .reload, true), (.honorFreshness, .cacheOnly, .cacheOnly, true),
        ] as [(CachePolicy, CachePolicy?, CachePolicy, Bool)]
    )
    func `a request's policy comes first`(loader: CachePolicy, own: CachePolicy?, policy: CachePolicy, byHTTP: Bool) {
        var request = self.request
        request.cachePolicy = own
        let plan = self.rules { $0.cachePolicy = loader }.plan(for: request)
        #expect(plan.policy == policy)
        #expect(plan.usesHTTPKeys == byHTTP)
    }

    // MARK: Judgement

    @Test(
        arguments: [
            (["Cache-Control": "max-age=60"], .init(minimumLifetime: .seconds(100)), 100),
            (["Cache-Control": "max-age=600"], .init(maximumLifetime: .seconds(100)), 100),
            (["Cache-Control": "max-age=60"], .init(maximumLifetime: .seconds(-1)), 0),
            // The maximum lifetime wins over the minimum lifetime.
            (["Expires": "0"], .init(minimumLifetime: .seconds(100), maximumLifetime: .seconds(50)), 50),
            (["ETag": "\"1\""], .init(defaultLifetime: .seconds(90), heuristicLifetime: .seconds(30)), 30),
            ([:], .init(defaultLifetime: .seconds(90), heuristicLifetime: .seconds(30)), 90),
        ] as [(HeaderFields, FreshnessBounds, Double)]
    )
    func `a judged lifetime is within the bounds`(fields: HeaderFields, bounds: FreshnessBounds, lifetime: Double) {
        let rules = self.rules { $0.freshnessBounds = bounds }
        #expect(rules.judged(self.record(fields), of: self.request).freshness.lifetime == lifetime)
    }

    @Test(
        arguments: [
            ([:], 20, 30), (["Cache-Control": "max-age=60"], 20, 30),
            (["Cache-Control": "stale-while-revalidate=0"], 0, 30), (["Cache-Control": "stale-if-error=0"], 20, 0),
            (["Cache-Control": "stale-while-revalidate=5, stale-if-error=7"], 5, 7),
            (["Cache-Control": "stale-while-revalidate=x, stale-if-error"], 0, 0),
        ] as [(HeaderFields, Double, Double)]
    )
    func `a response that says nothing gets the defaults`(fields: HeaderFields, whileAsked: Double, ifFailed: Double) {
        let rules = self.rules {
            $0.freshnessBounds = FreshnessBounds(staleWhileRevalidate: .seconds(20), staleIfError: .seconds(30))
        }
        let freshness = rules.judged(self.record(fields), of: self.request).freshness
        #expect(freshness.staleWhileRevalidate == whileAsked)
        #expect(freshness.staleIfError == ifFailed)
    }

    @Test(
        arguments: [
            (true, nil, "Accept, cookie", true), (true, nil, "Accept", false), (false, nil, "Cookie", false),
            (true, .disabled, "Cookie", false), (false, .jar(CookieJar()), "Cookie", true),
        ] as [(Bool, CookiePolicy?, String, Bool)]
    )
    func `Vary with Cookie forces revalidation if the request uses a cookie jar`(
        hasJar: Bool,
        cookies: CookiePolicy?,
        vary: String,
        isAsked: Bool
    ) {
        let rules = self.rules { $0.downloads.cookieJar = hasJar ? CookieJar() : nil }
        var request = self.request
        request.source.cookies = cookies
        let judged = rules.judged(self.record(["Cache-Control": "max-age=60", "Vary": vary]), of: request)
        let decision: ReuseDecision = isAsked ? .revalidate : .serve
        #expect(judged.freshness.flags.contains(.variesOnEverything) == isAsked)
        #expect(rules.decision(judged.freshness, of: request, under: .honorFreshness) == decision)
    }

    @Test func `a judged record keeps all but its freshness`() {
        func record(lifetime: Double) -> ResponseRecord {
            ResponseRecord(
                status: 203,
                fields: ["Vary": "Accept"],
                requestDate: Self.received.addingTimeInterval(-2),
                responseDate: Self.received.addingTimeInterval(-1),
                selectionDigest: "digest",
                freshness: Freshness(birth: Self.received, lifetime: lifetime, staleIfError: 5, flags: .immutable)
            )
        }
        let rules = self.rules { $0.freshnessBounds = FreshnessBounds(minimumLifetime: .seconds(100)) }
        #expect(rules.judged(record(lifetime: 60), of: self.request) == record(lifetime: 100))
    }

    @Test(arguments: [FreshnessBounds(), FreshnessBounds(minimumLifetime: .seconds(9), staleIfError: .seconds(9))])
    func `a record that the rules do not change is returned as it is`(bounds: FreshnessBounds) {
        let record = self.record(["Cache-Control": "max-age=60, stale-if-error=5"])
        let rules = self.rules { $0.freshnessBounds = bounds }
        #expect(rules.judged(record, of: self.request) === record)
    }

    // MARK: Reuse

    @Test(
        arguments: [
            (.neverRevalidate, [.serve, .serve, .serve, .serve, .serve]),
            (.honorFreshness, [.serve, .serve, .revalidate, .serveWhileRevalidating, .revalidate]),
            (.revalidate, [.revalidate, .serve, .revalidate, .revalidate, .revalidate]),
            (.reload, [.revalidate, .revalidate, .revalidate, .revalidate, .revalidate]),
            (.cacheOnly, [.serve, .serve, .serve, .serve, .serve]),
        ] as [(CachePolicy, [ReuseDecision])]
    )
    func `each policy decides about each kind of response`(policy: CachePolicy, expected: [ReuseDecision]) {
        let birth = Self.received.addingTimeInterval(-3)
        let stored: [Freshness?] = [
            Freshness(birth: birth, lifetime: 4), Freshness(birth: birth, lifetime: 4, flags: .immutable),
            Freshness(birth: birth, lifetime: 3), Freshness(birth: birth, lifetime: 3, staleWhileRevalidate: 1), nil,
        ]
        let rules = self.rules()
        let decisions = stored.map { rules.decision($0, of: self.request, under: policy) }
        #expect(decisions == expected)
    }

    @Test func `the clock of the loader and the fields of the request take part in the decision`() {
        let clock = TestClock()
        let rules = self.rules { $0.now = { clock.now } }
        let freshness = Freshness(birth: clock.now, lifetime: 60)
        let doubting = ImageRequest(url: self.request.url, headers: ["Cache-Control": "no-cache"])
        #expect(rules.decision(freshness, of: self.request, under: .honorFreshness) == .serve)
        #expect(rules.decision(freshness, of: doubting, under: .honorFreshness) == .revalidate)
        #expect(rules.decision(freshness, of: doubting, under: .neverRevalidate) == .serve)
        clock.advance(by: 60)
        #expect(rules.decision(freshness, of: self.request, under: .honorFreshness) == .revalidate)
    }

    // MARK: Bodies and fields

    @Test func `a body may be stored if it begins like an image, or if the program says so`() throws {
        let (png, page, own) = (Data(try makePNG()), Data("<html>".utf8), Data("SQUARE 12".utf8))
        let rules = self.rules()
        let storable = [png, page, own, Data()].map { rules.isStorable($0, for: self.request) }
        #expect(storable == [true, false, false, false])
        var drawing = self.request
        drawing.rendering.coder = Named("square", SquareCoder())
        #expect(rules.isStorable(own, for: drawing))
        let squares = self.rules { $0.coders = CoderRegistry(coders: [SquareCoder()]) }
        #expect(squares.isStorable(own, for: self.request))
        let pages = self.rules { $0.isStorable = { $0.starts(with: "<".utf8) } }
        #expect(pages.isStorable(page, for: self.request))
        #expect(!pages.isStorable(png, for: self.request))
    }

    @Test(
        arguments: [
            ([:], ["Accept": "image/png", "User-Agent": "test"]),
            (["accept": "image/webp", "X": "1"], ["accept": "image/webp", "X": "1", "User-Agent": "test"]),
            (["User-Agent": ""], ["User-Agent": "", "Accept": "image/png"]),
        ] as [(HeaderFields, HeaderFields)]
    )
    func `a field of the request replaces a default`(own: HeaderFields, all: HeaderFields) {
        let rules = self.rules { ($0.downloads.acceptHeader, $0.downloads.userAgent) = ("image/png", "test") }
        #expect(rules.headers(of: ImageRequest(url: self.request.url, headers: own)) == all)
    }

    @Test func `credentials count as a field unless the request has its own`() {
        let (rules, credentials) = (self.rules(), Credentials.bearer("token"))
        var request = self.request
        #expect(rules.headers(of: request)["Authorization"] == nil)
        request.source.credentials = credentials
        #expect(rules.headers(of: request).values(for: "Authorization") == [credentials.identity])
        request.headers = ["authorization": "own"]
        #expect(rules.headers(of: request).values(for: "Authorization") == ["own"])
    }

    @Test func `neutral fields do not change the resource key, whatever the case of their names`() {
        let rules = self.rules { $0.neutralHeaders = ["X-Request-ID"] }
        func key(_ headers: HeaderFields, _ rules: FreshnessRules) -> CacheKey {
            rules.resourceKey(of: ImageRequest(url: self.request.url, headers: headers))
        }
        #expect(key(["x-request-id": "1"], rules) == key([:], rules))
        #expect(key(["x-request-id": "1"], self.rules()) != key([:], self.rules()))
        #expect(key(["X-Request-ID": "1", "X-User": "a"], rules) == key(["X-User": "a"], rules))
        #expect(key(["X-User": "a"], rules) != key(["X-User": "b"], rules))
    }

    // MARK: Rules of HTTP under a policy

    @Test(
        arguments: [
            (CachePolicy.revalidate, "max-age=60, immutable", .serve),
            (.revalidate, "max-age=1, immutable", .revalidate),
            (.revalidate, "max-age=60", .revalidate),
            (.revalidate, "max-age=1, immutable, stale-while-revalidate=9", .revalidate),
            (.honorFreshness, "max-age=60", .serve),
            (.honorFreshness, "max-age=1, stale-while-revalidate=9", .serveWhileRevalidating),
            (.neverRevalidate, "no-cache", .serve), (.cacheOnly, "no-cache", .serve),
            (.reload, "max-age=60, immutable", .revalidate),
        ] as [(CachePolicy, String, ReuseDecision)]
    )
    func `a policy asks the origin as it says`(policy: CachePolicy, control: String, expected: ReuseDecision) {
        let freshness = self.record(["Cache-Control": control]).freshness
        let now = Self.received.addingTimeInterval(3)
        #expect(ReuseDecision(freshness, policy: policy, headers: [:], now: now) == expected)
    }

    @Test func `entries of older versions have validators as well`() {
        let old = EntryMetadata(etag: "\"a\"", lastModified: "x", responseDate: Self.received)
        #expect(Validators(old) == Validators(["ETag": "\"a\"", "Last-Modified": "x"]))
        let both = EntryMetadata(etag: "\"a\"", response: self.record(["ETag": "\"b\""]))
        #expect(Validators(both) == Validators(["ETag": "\"b\""]))
    }

    @Test(
        arguments: [
            (["Date": "Fri, 15 Jan 2027 08:00:00 GMT"], 0, true),
            (["Date": "Fri, 15 Jan 2027 08:00:00 GMT"], -1, false),
            (["Date": "Fri, 15 Jan 2027 07:59:59 GMT"], -1, true), (["Date": "now"], 0, true), ([:], -1, false),
        ] as [(HeaderFields, Double, Bool)]
    )
    func `without a date of modification, the date of the response counts`(
        stored: HeaderFields,
        offset: Double,
        isNotModified: Bool
    ) {
        let since = HTTPDate.text(of: Self.received.addingTimeInterval(offset))
        let metadata = EntryMetadata(response: self.record(stored))
        let headers: HeaderFields = ["If-Modified-Since": since]
        #expect(Precondition.isNotModified(headers, stored: metadata, now: Self.received) == isNotModified)
    }
}
