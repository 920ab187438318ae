// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype

/// Results as JSON, one object a line.
enum JSONLine {
    /// The text of `value`, without a line break.
    static func text(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return self.escaped(String(decoding: try encoder.encode(value), as: UTF8.self))
    }

    /// Escapes the characters that act on a terminal.
    ///
    /// JSON needs that only for U+0000 to U+001F. In a text of one line, all of them are within strings.
    private static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: \.isDeceptive) else { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            guard scalar.isDeceptive else {
                result.unicodeScalars.append(scalar)
                continue
            }
            for unit in String(scalar).utf16 {
                let digits = String(unit, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return result
    }

    /// Prints `value` on standard output.
    static func print(_ value: some Encodable) throws {
        try Output.standard.line(try self.text(value))
    }
}

/// The output for an input that failed.
struct JSONFailure: Encodable {
    /// The input, if the command calls it a URL.
    var url: String?
    /// The input, if the command calls it a path.
    var path: String?
    /// The cause and the remedy.
    let error: String
    /// The stable name of the failure.
    let code: String
}

/// An error as the command reports it: in one line, with its stable code.
struct ErrorText {
    /// The stable name, such as `tooManyPixels`.
    let code: String
    /// The cause and the remedy, on one line.
    let line: String

    /// The columns of a message, which may quote an argument of any length.
    static let maximumColumns = 1_000

    /// The line for an input that failed.
    func line(for input: String) -> String {
        "tintype: \(input.abbreviated): \(self.line)"
    }

    init(_ error: any Error) {
        let (code, message): (String, String) =
            switch error {
            case let error as any TintypeError: (error.code.description, error.message)
            case let error as OutputError: ("outputFailed", error.message)
            case let error as ListError: ("listUnreadable", error.message)
            case let error as UsageError: ("wrongUsage", error.message)
            case is CancellationError: ("cancelled", "The load was cancelled.")
            default: ("unexpected", "\(error)")
            }
        self.code = code
        self.line = message.printable.shortened(to: Self.maximumColumns)
    }
}
