/// Why a part that tests need could not be had; says what to install or check.
public struct TestSupportError: Error, CustomStringConvertible {
    public let description: String

    /// Creates an error.
    public init(_ description: String) {
        self.description = description
    }
}
