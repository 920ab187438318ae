// SPDX-License-Identifier: Apache-2.0

import CTintypeCrypto
import FoundationEssentials

/// A value that is equal only to itself.
///
/// Requests that have one share no transfer. A shared transfer may have started before a change that the second request must follow.
package final class RequestToken: Sendable, Hashable {
    package init() {}

    package static func == (left: RequestToken, right: RequestToken) -> Bool { left === right }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

/// The bytes that a request sends; equal only to its own copies.
struct RequestBody: Sendable, Hashable {
    /// The bytes.
    let data: Data
    /// The SHA-256 of the bytes as lower-case hexadecimal digits, which signatures contain.
    let digest: String
    private let token = RequestToken()

    init(_ data: Data) {
        self.data = data
        self.digest = Self.digest(of: data)
    }

    static func == (left: RequestBody, right: RequestBody) -> Bool { left.token == right.token }

    func hash(into hasher: inout Hasher) {
        hasher.combine(self.token)
    }

    private static func digest(of data: Data) -> String {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { output in
            data.withUnsafeBytes { bytes in
                _ = SHA256(bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, output.baseAddress)
            }
            return output.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        }
    }
}
