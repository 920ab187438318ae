// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeHTTP

/// The rules of RFC 9111, section 3, about responses that a cache may store.
@Suite struct StorabilityTests {
    struct Example: Sendable, CustomTestStringConvertible {
        let rule: String
        var status = 200
        var response: HeaderFields = [:]
        var request: HeaderFields = [:]
        var isShared = false
        let isStored: Bool

        var testDescription: String { "\(self.rule): \(self.status) \(self.response.map(\.value))" }
    }

    @Test(arguments: [
        Example(rule: "3, cacheable by default", isStored: true),
        Example(rule: "5.2.2.5", response: ["Cache-Control": "no-store"], isStored: false),
        Example(rule: "5.2.2.5", response: ["Cache-Control": "max-age=9, No-Store"], isStored: false),
        Example(rule: "5.2.2.5, malformed", response: ["Cache-Control": "no-store=1"], isStored: false),
        Example(rule: "5.2.2.3", response: ["Cache-Control": "no-store, must-understand, max-age=9"], isStored: true),
        Example(
            rule: "5.2.2.3",
            status: 299,
            response: ["Cache-Control": "must-understand, max-age=9"],
            isStored: false
        ),
        Example(rule: "5.2.1.5", request: ["Cache-Control": "no-store"], isStored: false),
        Example(rule: "5.2.2.7", response: ["Cache-Control": "private"], isStored: true),
        Example(rule: "5.2.2.7", response: ["Cache-Control": "private"], isShared: true, isStored: false),
        Example(rule: "3.5", request: ["Authorization": "x"], isStored: true),
        Example(rule: "3.5", request: ["Authorization": "x"], isShared: true, isStored: false),
        Example(
            rule: "3.5",
            response: ["Cache-Control": "public"],
            request: ["Authorization": "x"],
            isShared: true,
            isStored: true
        ),
        Example(rule: "3, status", status: 201, isStored: false),
        Example(rule: "3, status", status: 201, response: ["Cache-Control": "max-age=9"], isStored: true),
        Example(rule: "3, status", status: 201, response: ["Expires": "0"], isStored: true),
        Example(rule: "3, status", status: 203, isStored: true),
        Example(rule: "3.3, a part", status: 206, response: ["Cache-Control": "max-age=9"], isStored: false),
        Example(rule: "3, s-maxage", status: 201, response: ["Cache-Control": "s-maxage=9"], isStored: false),
        Example(
            rule: "3, s-maxage",
            status: 201,
            response: ["Cache-Control": "s-maxage=9"],
            isShared: true,
            isStored: true
        ),
        Example(rule: "3, Set-Cookie", response: ["Set-Cookie": "a=b"], isStored: true),
    ])
    func `a response is stored as the rule says`(example: Example) {
        let record = ResponseRecord(
            status: example.status,
            headers: example.response,
            requestHeaders: example.request,
            requestDate: ReuseCase.received,
            responseDate: ReuseCase.received,
            isShared: example.isShared
        )
        let isAllowed = Storability.allows(record, requestHeaders: example.request, isShared: example.isShared)
        #expect(isAllowed == example.isStored)
    }

    @Test func `fields of the connection are not stored`() {
        let headers: HeaderFields = [
            "Connection": "close, X-Once", "X-Once": "1", "Keep-Alive": "5", "TE": "x", "Upgrade": "h2c",
            "Transfer-Encoding": "chunked", "Proxy-Authenticate": "x", "ETag": "\"a\"", "Link": "1", "link": "2",
        ]
        #expect(ResponseRecord.storedFields(of: headers).map(\.value) == ["\"a\"", "1", "2"])
    }
}
