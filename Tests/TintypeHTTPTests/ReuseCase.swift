// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import TintypeHTTP

/// An example of an HTTP rule about the reuse of a stored response.
struct ReuseCase: Sendable, CustomTestStringConvertible {
    /// The section with the rule.
    let rule: String
    let isShared: Bool
    let response: HeaderFields
    let request: HeaderFields
    /// The time since the response was received, and the time that it took to arrive.
    let seconds: Double
    let delay: Double
    let expected: ReuseDecision

    init(
        _ rule: String,
        _ response: HeaderFields,
        request: HeaderFields = [:],
        after seconds: Double = 3,
        delay: Double = 0,
        isShared: Bool = false,
        _ expected: ReuseDecision
    ) {
        self.rule = rule
        self.isShared = isShared
        self.response = response
        self.request = request
        self.seconds = seconds
        self.delay = delay
        self.expected = expected
    }

    var testDescription: String {
        let fields = self.response.map { "\($0.name): \($0.value)" }.joined(separator: " | ")
        let request = self.request.map { "\($0.name): \($0.value)" }.joined(separator: " | ")
        return "\(self.rule) [\(fields)] [\(request)] after \(self.seconds) s is \(self.expected)"
    }

    /// The time at which the response was received, in whole seconds because fields have no fractions.
    static let received = Date(timeIntervalSince1970: 1_800_000_000)

    /// Returns the field for a date that is `offset` seconds after the response was received.
    static func date(_ offset: Double) -> String {
        HTTPDate.text(of: self.received.addingTimeInterval(offset))
    }

    /// The decision about the stored response.
    var decision: ReuseDecision {
        let record = self.makeRecord()
        return ReuseDecision(
            record.freshness,
            headers: self.request,
            now: Self.received.addingTimeInterval(self.seconds)
        )
    }

    func makeRecord() -> ResponseRecord {
        ResponseRecord(
            status: 200,
            headers: self.response,
            requestHeaders: self.request,
            requestDate: Self.received.addingTimeInterval(-self.delay),
            responseDate: Self.received,
            isShared: self.isShared
        )
    }
}
