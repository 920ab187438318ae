import Glibc

/// An argument of the command as it was given: bytes, which may be the name of a file.
///
/// Linux names files by bytes, and not all of them are UTF-8.
struct Argument: Sendable, Hashable {
    let bytes: [UInt8]

    init(bytes: some Sequence<UInt8>) {
        self.bytes = Array(bytes)
    }

    init(_ text: String) {
        self.bytes = Array(text.utf8)
    }

    /// The argument as text; what is not UTF-8 is replaced.
    var text: String { String(decoding: self.bytes, as: UTF8.self) }

    /// The argument as text, or `nil` where it is not UTF-8.
    var exactText: String? { String(validating: self.bytes, as: UTF8.self) }

    /// Calls `body` with the argument as a path for the system.
    func withPath<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
        (self.bytes.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer { path in
            // The array has at least its end.
            path.baseAddress.map { body($0) } ?? body("")
        }
    }

    /// The arguments of the process, without its name.
    static var all: [Argument] {
        (1..<max(1, Int(CommandLine.argc))).compactMap { index in
            CommandLine.unsafeArgv[index].map { start in
                Argument(bytes: UnsafeRawBufferPointer(start: start, count: strlen(start)))
            }
        }
    }
}
