// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Arguments sorted into options and the rest.
///
/// Options start with `-`; a value follows as the next argument or after `=`. After `--` all
/// are operands, and `-` alone is one.
struct ParsedArguments {
    private(set) var operands: [Argument] = []
    private var flags: Set<String> = []
    private var values: [String: Argument] = [:]
    /// The options as they were given, each with its value: the order of some says what is done first.
    private(set) var order: [(option: String, value: Argument?)] = []

    init(_ arguments: some Sequence<Argument>, flags: Set<String>, values: Set<String>) throws(UsageError) {
        var rest = arguments.makeIterator()
        while let argument = rest.next() {
            let text = argument.text
            if text == "--" {
                while let operand = rest.next() { self.operands.append(operand) }
            } else if !text.hasPrefix("-") || text == "-" {
                self.operands.append(argument)
            } else if flags.contains(text) {
                self.flags.insert(text)
                self.order.append((text, nil))
            } else {
                try self.readValue(argument, from: &rest, flags: flags, known: values)
            }
        }
    }

    private mutating func readValue(
        _ argument: Argument,
        from rest: inout some IteratorProtocol<Argument>,
        flags: Set<String>,
        known: Set<String>
    ) throws(UsageError) {
        let parts = argument.bytes.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        let option = String(decoding: parts[0], as: UTF8.self)
        guard !flags.contains(option) else { throw UsageError("\(option) takes no value") }
        guard known.contains(option) else { throw UsageError("there is no option \(option); see --help") }
        let given = parts.count == 2 ? Argument(bytes: parts[1]) : rest.next()
        guard let given, !given.bytes.isEmpty else { throw UsageError("\(option) needs a value") }
        self.values[option] = given
        self.order.append((option, given))
    }

    /// Whether a flag was given.
    func has(_ flag: String) -> Bool {
        self.flags.contains(flag)
    }

    /// The value of an option that names a file, or `nil`.
    func file(_ option: String) -> Argument? {
        self.values[option]
    }

    /// The value of an option, or `nil`.
    func value(_ option: String) -> String? {
        self.values[option]?.text
    }

    /// The value of an option as a number within a range, or `nil`.
    func number(_ option: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
        guard let text = self.value(option) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            let bounds =
                range.upperBound == .max
                ? "\(range.lowerBound) or more" : "\(range.lowerBound) to \(range.upperBound)"
            throw UsageError("\(option) takes a number, \(bounds), and not \(text)")
        }
        return number
    }

    /// The value of an option as one of a list of names, or `nil`.
    func choice(_ option: String, of names: [String]) throws(UsageError) -> String? {
        guard let text = self.value(option) else { return nil }
        guard names.contains(text) else {
            throw UsageError("\(option) takes one of \(names.joined(separator: ", ")), and not \(text)")
        }
        return text
    }

    /// The operands as inputs, of which there must be at least one.
    func requireInputs() throws(UsageError) -> [Input] {
        guard !self.operands.isEmpty else { throw UsageError("a URL or a path is missing; see --help") }
        return try self.operands.map { argument throws(UsageError) in try Input(argument: argument) }
    }

    /// The only operand.
    func requireOperand(_ what: String) throws(UsageError) -> Argument {
        guard self.operands.count == 1, let operand = self.operands.first else {
            throw UsageError("exactly one \(what) is needed; see --help")
        }
        return operand
    }
}

/// The command was called wrongly.
struct UsageError: Error {
    /// The mistake, without a capital or a full stop: it follows the command's name.
    let message: String

    init(_ message: String) {
        self.message = message
    }
}

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

    /// The argument as text, or `nil` if it is not UTF-8.
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
