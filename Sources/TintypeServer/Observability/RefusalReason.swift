// SPDX-License-Identifier: Apache-2.0

import Tintype

/// The reason of a refusal, for the counters.
enum RefusalReason: String, CaseIterable {
    /// The server has as many requests as it can answer in time.
    case overload
    /// The client has as many requests as it may have while others wait.
    case client
    /// The network policy does not allow the URL of the source, or the address of its host.
    case networkPolicy = "network_policy"
    /// The URL has no valid signature.
    case signature
    /// The server does not serve images of this source.
    case source

    /// The codes of errors (``AnswerNote/errorCode``) with this reason.
    var errorCodes: [String] {
        switch self {
        case .overload: ["overload"]
        case .client: ["client"]
        case .networkPolicy: Self.policyErrorCodes
        case .signature: ["forbidden"]
        case .source: Self.sourceErrorCodes
        }
    }

    private static let policyErrorCodes = [
        TintypeErrorCode.schemeNotAllowed, .userInformationInURL, .malformedHost, .portNotAllowed, .hostNotAllowed,
        .addressNotAllowed,
    ].map(\.description)

    private static let sourceErrorCodes: [String] =
        ["invalidSource"] + [TintypeErrorCode.refused, .downloadRefused].map(\.description)
}
