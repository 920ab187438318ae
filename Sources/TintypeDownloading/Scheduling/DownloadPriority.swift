/// How urgent a download is: of those that wait for their turn, the most urgent starts first.
///
/// A transfer that several callers share is as urgent as the most urgent of them.
public enum DownloadPriority: Int, Sendable, Hashable, Comparable, CaseIterable {
    /// After everything else.
    case veryLow
    /// What may be needed later, such as what a prefetch brings.
    case low
    /// The default.
    case normal
    /// What a user waits for.
    case high
    /// Before everything else.
    case veryHigh

    public static func < (left: DownloadPriority, right: DownloadPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// Which of several equally urgent downloads starts first.
public enum DownloadOrder: Sendable, Hashable {
    /// The one that was asked for first.
    case firstInFirstOut
    /// The one that was asked for last: what is looked at now, before what was scrolled past.
    case lastInFirstOut
}
