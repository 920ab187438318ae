// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeHTTP

@testable import TintypeDownloading

@Suite struct ResponseRulesTests {
    private let address: ResourceAddress
    private let resource: URL

    init() throws {
        self.address = try ResourceAddress("https://example.org/a.jpg")
        self.resource = try url("https://example.org/a.jpg")
    }

    private func rules(
        _ method: DownloadRequest.Method = .get,
        headers: HeaderFields = [:],
        asksForRest: Bool = false,
        types: [String]? = nil
    ) -> ResponseRules {
        var configuration = DownloadActor.Configuration()
        configuration.acceptableContentTypes = types
        return ResponseRules(
            method: method,
            requestHeaders: headers,
            limits: TransferLimits(DownloadRequest(url: self.resource), configuration),
            asksForRest: asksForRest
        )
    }

    private func response(_ status: Int?, _ headers: HeaderFields = [:], bytes: Int = 0) -> ResponseState {
        ResponseState(
            address: self.address,
            status: status,
            headers: headers,
            hasHead: status != nil,
            receivedBytes: bytes
        )
    }

    // MARK: The head

    @Test(
        arguments: [
            ([:], nil), (["Content-Length": "5"], 5), (["Content-Length": "0"], 0),
            (["Content-Length": "5", "Transfer-Encoding": "chunked"], nil),
            (["Content-Length": "5", "Transfer-Encoding": "identity, Chunked ,"], nil),
            (["Content-Length": "5", "Transfer-Encoding": "chunked", "transfer-encoding": "identity"], 5),
            (["Content-Length": "5", "Transfer-Encoding": ""], 5),
        ] as [(HeaderFields, Int64?)]
    )
    func `a declared length is read`(fields: HeaderFields, length: Int64?) throws {
        #expect(try ResponseRules.declaredLength(of: self.response(200, fields)) == length)
    }

    @Test func `a length that is not a number is an invalid response`() {
        let error = #expect(throws: DownloadError.self) {
            try ResponseRules.declaredLength(of: self.response(200, ["Content-Length": "x"]))
        }
        #expect(error?.code == .invalidResponse)
    }

    @Test(arguments: [(["Transfer-Encoding": "chunked"], true), ([:], false)] as [(HeaderFields, Bool)])
    func `libcurl finds the end of chunks by itself`(fields: HeaderFields, isWatched: Bool) {
        let plan = self.rules().plan(status: 200, fields: fields, declared: nil, date: .distantPast)
        #expect(plan.isWanted && plan.hasBody)
        #expect(plan.declaredBytes == nil)
        #expect(plan.hasWatchedFraming == isWatched)
    }

    @Test(arguments: ["Content-Length ", "Content-Length\t", "", " "])
    func `a field without a name that can be read is refused`(name: String) {
        let error = #expect(throws: DownloadError.self) {
            try self.rules().checkHead(of: self.response(200, [name: "5"]))
        }
        #expect(error?.code == .invalidResponse)
    }

    @Test(arguments: [(204, DownloadRequest.Method.get), (304, .get), (200, .head)])
    func `a response that can have no body is watched for bytes`(status: Int, method: DownloadRequest.Method) {
        let plan = self.rules(method).plan(status: status, fields: [:], declared: 7, date: .distantPast)
        #expect(!plan.hasBody)
        #expect(plan.hasWatchedFraming)
    }

    @Test func `a part needs a request for it`() throws {
        #expect(throws: DownloadError.self) { try self.rules().checkHead(of: self.response(206)) }
        try self.rules(headers: ["Range": "bytes=1-"]).checkHead(of: self.response(206))
        try self.rules(asksForRest: true).checkHead(of: self.response(206))
    }

    @Test func `a difference needs a request for it`() throws {
        #expect(throws: DownloadError.self) { try self.rules().checkHead(of: self.response(226)) }
        try self.rules(headers: ["A-IM": "vcdiff"]).checkHead(of: self.response(226))
    }

    @Test(arguments: ["gzip", "gzip, chunked", "chunked, br"])
    func `a transfer coding other than chunks is refused`(coding: String) {
        #expect(throws: DownloadError.self) {
            try self.rules().checkHead(of: self.response(200, ["Transfer-Encoding": coding]))
        }
    }

    @Test func `a media type must be acceptable, except for that of a confirmation`() throws {
        let rules = self.rules(types: ["image/*"])
        try rules.checkContentType(of: self.response(200, ["Content-Type": "image/png"]))
        try rules.checkContentType(of: self.response(304))
        #expect(throws: DownloadError.self) { try rules.checkContentType(of: self.response(200)) }
    }

    // MARK: The whole response

    /// Returns the code of the error for a complete response, or `nil` if there is no error.
    private func code(
        _ end: BodyEnd,
        declared: Int64? = nil,
        hasBody: Bool = true,
        isMultiplexed: Bool = false,
        total: Int? = nil,
        response: ResponseState
    ) -> DownloadError.Code? {
        let plan = TransferMachine.BodyPlan(hasBody: hasBody, declaredBytes: declared)
        do throws(DownloadError) {
            try self.rules().check(end, of: plan, isMultiplexed: isMultiplexed, total: total, response: response)
            return nil
        } catch {
            return error.code
        }
    }

    @Test func `a whole body has exactly its declared length`() {
        let response = self.response(200, bytes: 5)
        #expect(self.code(BodyEnd(bytes: 5, hasEndedStream: false), declared: 5, response: response) == nil)
        #expect(self.code(BodyEnd(bytes: 4, hasEndedStream: true), declared: 5, response: response) == .bodyCutShort)
        #expect(self.code(BodyEnd(bytes: 6, hasEndedStream: true), declared: 5, response: response) == .bodyCutShort)
    }

    @Test func `without a length the end of an HTTP/2 stream decides`() {
        let response = self.response(200, bytes: 5)
        let (open, ended) = (BodyEnd(bytes: 5, hasEndedStream: false), BodyEnd(bytes: 5, hasEndedStream: true))
        #expect(self.code(open, response: response) == nil)
        #expect(self.code(open, isMultiplexed: true, response: response) == .bodyCutShort)
        #expect(self.code(ended, isMultiplexed: true, response: response) == nil)
    }

    @Test func `a coding must have come to its end`() {
        let end = BodyEnd(bytes: 5, hasEndedStream: false, hasEndedCodings: false)
        #expect(self.code(end, declared: 5, response: self.response(200, bytes: 9)) == .bodyCutShort)
    }

    @Test(arguments: [(200, DownloadError.Code.emptyBody), (204, .emptyBody), (304, nil), (404, nil)])
    func `only a response outside of success may be empty`(status: Int, code: DownloadError.Code?) {
        let end = BodyEnd(bytes: 0, hasEndedStream: false)
        #expect(self.code(end, hasBody: false, response: self.response(status)) == code)
    }

    @Test func `a rest must complete the whole`() {
        let end = BodyEnd(bytes: 3, hasEndedStream: false)
        #expect(self.code(end, declared: 3, total: 10, response: self.response(206, bytes: 10)) == nil)
        #expect(self.code(end, declared: 3, total: 10, response: self.response(206, bytes: 9)) == .bodyCutShort)
    }

    // MARK: Redirects

    private func target(_ status: Int, _ location: String?, count: Int = 0) throws -> String? {
        var response = self.response(status)
        if let location { response.headers = ["Location": location] }
        return try Redirect.target(of: response, count: count, limit: 2, policy: .unrestricted)?.text
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `a redirect leads to its location`(status: Int) throws {
        #expect(try self.target(status, "/b.jpg") == "https://example.org/b.jpg")
    }

    @Test func `a response without a location, or with another status, leads nowhere`() throws {
        #expect(try self.target(302, nil) == nil)
        #expect(try self.target(302, "") == nil)
        #expect(try self.target(304, "/b.jpg") == nil)
    }

    @Test func `redirects have a limit, and lead to HTTP only`() {
        #expect(throws: DownloadError.self) { try self.target(302, "/b.jpg", count: 2) }
        #expect(throws: DownloadError.self) { try self.target(302, "file:///etc/passwd") }
    }

    @Test func `a redirect to another origin takes the credentials out, and a new try brings them back`() throws {
        var request = DownloadRequest(url: self.resource, headers: ["Authorization": "secret", "Accept": "image/*"])
        request.credentials = .bearer("token")
        var outgoing = OutgoingRequest(
            SharedRequest(request),
            address: self.address,
            configuration: SharedConfiguration(.init())
        )
        outgoing.redirect(to: try ResourceAddress("https://example.org/b.jpg"))
        #expect(outgoing.headers["Authorization"] == "secret")
        #expect(outgoing.options?.credentials != nil)
        outgoing.redirect(to: try ResourceAddress("https://example.com/b.jpg"))
        #expect(outgoing.headers == ["Accept": "image/*"])
        #expect(outgoing.options?.credentials == nil)
        outgoing.restart()
        #expect(outgoing.address.text == self.address.text)
        #expect(outgoing.headers["Authorization"] == "secret")
        #expect(outgoing.options?.credentials != nil)
    }

    // MARK: Resumption

    private let fields: HeaderFields = ["ETag": "\"1\"", "Accept-Ranges": "bytes", "Content-Length": "10"]

    private func resumption(of count: Int, _ fields: HeaderFields, total: Int64? = 10) -> Resumption? {
        let plan = TransferMachine.BodyPlan(isWanted: true, expectedBytes: total)
        return Resumption(of: count, response: self.response(200, fields, bytes: count), plan: plan, earlier: nil)
    }

    @Test func `a part can be completed if the version is known and ranges are offered`() {
        #expect(self.resumption(of: 4, self.fields)?.headers == ["Range": "bytes=4-", "If-Range": "\"1\""])
        #expect(self.resumption(of: 0, self.fields) == nil)
        #expect(self.resumption(of: 10, self.fields) == nil)
        #expect(self.resumption(of: 4, self.fields, total: nil) == nil)
        #expect(self.resumption(of: 4, ["ETag": "\"1\""]) == nil)
        #expect(self.resumption(of: 4, ["ETag": "W/\"1\"", "Accept-Ranges": "bytes"]) == nil)
    }

    @Test func `only the same version and the right range continue a part`() throws {
        let resumption = try #require(self.resumption(of: 4, self.fields))
        func isRest(_ status: Int, _ fields: HeaderFields, isAsked: Bool = true, isIdentity: Bool = true) -> Bool? {
            let response = self.response(status, fields)
            return switch resumption.answer(of: response, isIdentity: isIdentity, isAsked: isAsked, count: 4) {
            case .rest: true
            case .whole: false
            case .useless: nil
            }
        }
        let rest: HeaderFields = ["ETag": "\"1\"", "Content-Range": "bytes 4-9/10"]
        #expect(isRest(206, rest) == true)
        #expect(isRest(200, self.fields) == false)
        #expect(isRest(206, rest, isAsked: false) == nil)
        #expect(isRest(206, rest, isIdentity: false) == nil)
        #expect(isRest(206, ["ETag": "\"2\"", "Content-Range": "bytes 4-9/10"]) == nil)
        #expect(isRest(206, ["ETag": "\"1\"", "Content-Range": "bytes 5-9/10"]) == nil)
        #expect(isRest(304, [:]) == nil)
    }

    @Test func `requests with conditions of their own are not resumed`() {
        let codes = TransferLimits(DownloadRequest(url: self.resource), .init()).acceptableStatusCodes
        #expect(Resumption.isPossible(.get, headers: ["Accept": "image/*"], accepting: codes))
        #expect(!Resumption.isPossible(.head, headers: [:], accepting: codes))
        #expect(!Resumption.isPossible(.get, headers: ["If-None-Match": "\"1\""], accepting: codes))
        #expect(!Resumption.isPossible(.get, headers: [:], accepting: [200]))
    }

    @Test func `some errors may be the answer to a request for the rest`() {
        func isRefused(_ code: DownloadError.Code, hasGrown: Bool = false, status: Int? = nil) -> Bool {
            let error = DownloadError(code: code, message: "It failed.", status: status)
            return Resumption.isRefused(by: error, hasGrown: hasGrown)
        }
        #expect(isRefused(.emptyBody) && isRefused(.invalidResponse))
        #expect(isRefused(.badStatus, status: 416) && !isRefused(.badStatus, status: 503))
        #expect(isRefused(.bodyCutShort) && !isRefused(.bodyCutShort, hasGrown: true))
        #expect(!isRefused(.timedOut))
    }
}
