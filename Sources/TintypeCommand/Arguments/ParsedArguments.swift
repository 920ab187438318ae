import Tintype

/// Arguments sorted into options and the rest.
///
/// Options start with `-`; a value follows as the next argument or after `=`. After `--` all
/// are operands, and `-` alone is one.
struct ParsedArguments {
    private(set) var operands: [String] = []
    private var flags: Set<String> = []
    private var values: [String: String] = [:]

    init(_ arguments: some Sequence<String>, flags: Set<String>, values: Set<String>) throws(UsageError) {
        var rest = arguments.makeIterator()
        while let argument = rest.next() {
            if argument == "--" {
                while let operand = rest.next() { self.operands.append(operand) }
            } else if !argument.hasPrefix("-") || argument == "-" {
                self.operands.append(argument)
            } else if flags.contains(argument) {
                self.flags.insert(argument)
            } else {
                try self.readValue(argument, from: &rest, flags: flags, known: values)
            }
        }
    }

    private mutating func readValue(
        _ argument: String,
        from rest: inout some IteratorProtocol<String>,
        flags: Set<String>,
        known: Set<String>
    ) throws(UsageError) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard !flags.contains(parts[0]) else { throw UsageError("\(parts[0]) takes no value") }
        guard known.contains(parts[0]) else { throw UsageError("there is no option \(parts[0]); see --help") }
        guard let value = parts.count == 2 ? parts[1] : rest.next(), !value.isEmpty else {
            throw UsageError("\(parts[0]) needs a value")
        }
        self.values[parts[0]] = value
    }

    /// Whether a flag was given.
    func has(_ flag: String) -> Bool {
        self.flags.contains(flag)
    }

    /// The value of an option, or `nil`.
    func value(_ option: String) -> String? {
        self.values[option]
    }

    /// The value of an option as a number within a range, or `nil`.
    func number(_ option: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
        guard let text = self.values[option] else { return nil }
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
        guard let text = self.values[option] else { return nil }
        guard names.contains(text) else {
            throw UsageError("\(option) takes one of \(names.joined(separator: ", ")), and not \(text)")
        }
        return text
    }

    /// The operands, of which there must be at least one.
    func requireOperands(_ what: String) throws(UsageError) -> [String] {
        guard !self.operands.isEmpty else { throw UsageError("\(what) is missing; see --help") }
        return self.operands
    }

    /// The only operand.
    func requireOperand(_ what: String) throws(UsageError) -> String {
        guard self.operands.count == 1, let operand = self.operands.first else {
            throw UsageError("exactly one \(what) is needed; see --help")
        }
        return operand
    }
}
