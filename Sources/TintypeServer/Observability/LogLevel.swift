// SPDX-License-Identifier: Apache-2.0

/// The weight of a log line.
enum LogLevel: String, Sendable {
    case info
    case warning
    case error

    /// The level of an exchange with this status: 499 and other failures of clients are warnings.
    init(status: Int) {
        self =
            switch status {
            case 500...: .error
            case 400...: .warning
            default: .info
            }
    }
}
