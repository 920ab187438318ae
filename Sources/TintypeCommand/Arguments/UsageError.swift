/// The command was called wrongly.
struct UsageError: Error {
    /// What is wrong, without a capital or a full stop: it follows the command's name.
    let message: String

    init(_ message: String) {
        self.message = message
    }
}
