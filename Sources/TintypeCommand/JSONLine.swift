import FoundationEssentials
import Tintype
import TintypeConcurrency

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

/// An error as the command reports it: in one line, with its stable code.
struct ErrorText {
    /// The stable name, such as `tooManyPixels`.
    let code: String
    /// What happened and what to do, on one line.
    let line: String

    /// The line for an input that failed.
    func line(for input: String) -> String {
        "tintype: \(input.abbreviated): \(self.line)"
    }

    init(_ error: any Error) {
        let (code, message): (String, String) =
            switch error {
            case let error as LoadError: (error.code.description, error.message)
            case let error as CodingError: (error.code.description, error.message)
            case let error as DownloadError: (error.code.description, error.message)
            case let error as CacheError: (error.code.description, error.message)
            case let error as OutputError: ("outputFailed", error.message)
            case let error as ThreadError: (error.code.description, error.message)
            case let error as ListError: ("listUnreadable", error.message)
            case is CancellationError: ("cancelled", "The load was cancelled.")
            default: ("unexpected", "\(error)")
            }
        self.code = code
        self.line = message.printable
    }
}
