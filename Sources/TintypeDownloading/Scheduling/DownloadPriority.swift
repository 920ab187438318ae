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
    /// The order of downloads of equal priority.
    public enum Order: Sendable, Hashable {
        /// The earliest request first.
        case firstInFirstOut
        /// The latest request first, so that visible images come before images that were scrolled past.
        case lastInFirstOut
    }
}
