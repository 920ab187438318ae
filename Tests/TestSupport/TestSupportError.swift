/// Why a part that tests need could not be had; says what to install or check.
public struct TestSupportError: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
