import FoundationEssentials
import Tintype

/// Results as JSON, one object a line.
enum JSONLine {
    /// The text of `value`, without a line break.
    static func text(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    /// Prints `value` on standard output.
    static func print(_ value: some Encodable) throws {
        try Output.standard.line(try self.text(value))
    }
}

/// What is printed for an input that failed.
struct JSONFailure: Encodable {
    /// The input, where it is called a URL.
    var url: String?
    /// The input, where it is called a path.
    var path: String?
    /// What happened and what to do.
    let error: String
    /// The stable name of the failure.
    let code: String
}
