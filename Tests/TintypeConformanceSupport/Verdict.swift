// SPDX-License-Identifier: Apache-2.0

/// The result of checking a corpus file.
public enum Verdict: Sendable, Equatable {
    /// The result agrees with the corpus.
    case right
    /// The decoder refused the file with a typed error, as the corpus requires or allows.
    case refused
    /// The result differs from the corpus, for the given reason.
    case wrong(String)
}
