// SPDX-License-Identifier: Apache-2.0

/// The units in which times are printed.
enum TimeUnit: String, Sendable {
    case nanoseconds = "ns"
    case microseconds = "us"
    case milliseconds = "ms"

    /// How many of them make a second.
    var perSecond: Double {
        switch self {
        case .nanoseconds: 1e9
        case .microseconds: 1e6
        case .milliseconds: 1e3
        }
    }
}
