/// What came of a file of the corpus.
public enum Verdict: Sendable, Equatable {
    /// As the corpus says.
    case right
    /// Refused with a typed error, as the corpus asks or allows.
    case refused
    /// Not as the corpus says, and why.
    case wrong(String)
}
