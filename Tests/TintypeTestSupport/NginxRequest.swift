// SPDX-License-Identifier: Apache-2.0

/// A request that an ``NginxOrigin`` has answered.
public struct NginxRequest: Sendable, Hashable {
    /// The HTTP version, such as `HTTP/2.0`.
    public let version: String
    /// The method, such as `GET`.
    public let method: String
    /// The status of the answer.
    public let status: Int
    /// The number of the connection, which several requests may share.
    public let connection: Int
    /// The path without a query.
    public let path: String
    /// The value of `If-None-Match`, or `nil` if the request has no such field.
    public let ifNoneMatch: String?

    init?(logLine: Substring) {
        let fields = logLine.split(separator: " ", maxSplits: 5)
        guard fields.count == 6, let status = Int(fields[2]), let connection = Int(fields[3]) else { return nil }
        self.version = String(fields[0])
        self.method = String(fields[1])
        self.status = status
        self.connection = connection
        self.path = String(fields[4].prefix { $0 != "?" })
        let validator = fields[5].dropFirst().dropLast()
        // nginx writes a dash for a missing field, and \x22 for a quote.
        self.ifNoneMatch =
            validator == "-"
            ? nil : validator.split(separator: #"\x22"#, omittingEmptySubsequences: false).joined(separator: "\"")
    }
}
