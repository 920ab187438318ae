/// Which of several equally urgent downloads starts first.
public enum DownloadOrder: Sendable, Hashable {
    /// The one that was asked for first.
    case firstInFirstOut
    /// The one that was asked for last: what somebody looks at now, before what they scrolled past.
    case lastInFirstOut
}
