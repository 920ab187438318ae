import Foundation

/// What is said beside the table, on standard error.
enum Console {
    /// Says `text` on a line of its own.
    static func note(_ text: String) {
        FileHandle.standardError.write(Data("  .. \(text)\n".utf8))
    }

    /// Prints `text` to standard output at once.
    static func show(_ text: String) {
        FileHandle.standardOutput.write(Data((text + "\n").utf8))
    }
}
