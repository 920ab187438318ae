// SPDX-License-Identifier: Apache-2.0

/// The refusal of an option.
struct OptionError: Error {
    /// A sentence that does not name the option.
    let message: String

    static func value(_ text: String, isNot expectation: String) -> OptionError {
        OptionError(message: "\(Quotation.of(text)) is not \(expectation).")
    }

    static func pro(_ text: String, kind: String) -> OptionError {
        OptionError(message: "\(Quotation.of(text)) is \(kind) of imgproxy Pro, which Tintype does not have.")
    }
}
