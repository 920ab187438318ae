// SPDX-License-Identifier: Apache-2.0

/// The urgency of a download: among the waiting downloads, the most urgent starts first.
///
/// A transfer that several callers share is as urgent as its most urgent caller.
public enum DownloadPriority: Int, Sendable, Hashable, Comparable, CaseIterable {
    /// After everything else.
    case veryLow
    /// Images that may be needed later, such as prefetched ones.
    case low
    /// The default.
    case normal
    /// Images that a user waits for.
    case high
    /// Before everything else.
    case veryHigh

    public static func < (left: DownloadPriority, right: DownloadPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}

extension DownloadActor {
    /// Which of several equally urgent downloads starts first.
    public enum Order: Sendable, Hashable {
        /// The one that was asked for first.
        case firstInFirstOut
        /// The one that was asked for last: what is looked at now, before what was scrolled past.
        case lastInFirstOut
    }
}
