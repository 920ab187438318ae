import Glibc

/// A system call that failed.
public struct SystemCallError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name of the call, such as `open`.
    public let call: String
    /// The value of `errno`.
    public let number: Int32

    /// Creates an error.
    public init(call: String, number: Int32) {
        self.call = call
        self.number = number
    }

    /// The error of the call that just returned on this thread.
    static func last(_ call: String) -> SystemCallError {
        SystemCallError(call: call, number: errno)
    }

    /// Whether it says that there is nothing at a path.
    var meansMissing: Bool { self.number == ENOENT || self.number == ENOTDIR }

    public var description: String {
        // `strerror_r` writes into our buffer or returns a static text; `strerror` is not thread-safe.
        var buffer = [CChar](repeating: 0, count: 128)
        let text = buffer.withUnsafeMutableBufferPointer { buffer -> String in
            guard let base = buffer.baseAddress, strerror_r(self.number, base, buffer.count) == 0 else {
                return "unknown error"
            }
            return String(cString: base)
        }
        return "\(self.call): \(text), errno \(self.number)"
    }
}
