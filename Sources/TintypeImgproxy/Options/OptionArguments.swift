// SPDX-License-Identifier: Apache-2.0

/// The arguments of an option.
///
/// The methods return `nil` if an argument is missing, so that the option keeps its earlier value. An empty argument is
/// a wrong value, except for the methods that skip it.
struct OptionArguments {
    private let texts: ArraySlice<String>

    init(_ texts: ArraySlice<String>) {
        self.texts = texts
    }

    var count: Int { self.texts.count }

    /// Returns the arguments without the first `count`.
    func dropFirst(_ count: Int) -> OptionArguments { OptionArguments(self.texts.dropFirst(count)) }

    /// The texts of all arguments.
    var all: ArraySlice<String> { self.texts }

    func text(_ index: Int) -> String? {
        index < self.texts.count ? self.texts[self.texts.startIndex + index] : nil
    }

    /// Whether an argument is missing or empty.
    func isSkipped(_ index: Int) -> Bool { self.text(index)?.isEmpty ?? true }

    /// Returns a truth value.
    ///
    /// Every text that does not mean true means false, as in imgproxy.
    func bool(_ index: Int) -> Bool? {
        switch self.text(index) {
        case "1", "t", "T", "true", "True", "TRUE": true
        case nil: nil
        default: false
        }
    }

    func integer(_ index: Int, in range: ClosedRange<Int>) throws(OptionError) -> Int? {
        guard let text = self.text(index) else { return nil }
        guard let number = DecimalText.integer(text.utf8, in: range) else {
            throw .value(text, isNot: "a whole number \(Self.description(of: range))")
        }
        return number
    }

    func number(_ index: Int, in range: ClosedRange<Double>) throws(OptionError) -> Double? {
        guard let text = self.text(index) else { return nil }
        guard let number = DecimalText.number(text, in: range) else {
            throw .value(text, isNot: "a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// Returns a value by its name in URLs.
    func name<Value: RawRepresentable<String> & CaseIterable>(
        _ index: Int,
        of type: Value.Type
    ) throws(OptionError) -> Value? {
        guard let text = self.text(index) else { return nil }
        guard let value = Value(rawValue: text) else {
            throw .value(text, isNot: "one of \(Value.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return value
    }

    /// Returns a format.
    func format(_ index: Int) throws(OptionError) -> FormatName? {
        guard let text = self.text(index) else { return nil }
        return try Self.format(text)
    }

    /// Returns the format with a name in URLs.
    static func format(_ text: String) throws(OptionError) -> FormatName {
        if let format = FormatName(urlName: text) { return format }
        if FormatName.proNames.contains(text) { throw .pro(text, kind: "a format") }
        throw .value(text, isNot: "the name of a format in lower case, such as jpg, png or webp")
    }

    /// Returns a colour from three or six hexadecimal digits.
    func color(_ index: Int) throws(OptionError) -> ColorOption? {
        guard let text = self.text(index) else { return nil }
        let digits = text.utf8.count == 3 ? text.utf8.flatMap { [$0, $0] } : Array(text.utf8)
        guard digits.count == 6, let bytes = Hexadecimal.bytes(digits) else {
            throw .value(text, isNot: "a colour of three or six hexadecimal digits")
        }
        return ColorOption(red: bytes[0], green: bytes[1], blue: bytes[2])
    }

    /// Returns `old` with the kind and the offsets from `index` on.
    ///
    /// Empty offsets are skipped.
    func gravity(
        _ index: Int,
        changing old: GravityOption,
        kinds: Set<GravityOption.Kind>
    ) throws(OptionError) -> GravityOption? {
        guard let text = self.text(index) else { return nil }
        guard let kind = GravityOption.Kind(rawValue: text), kinds.contains(kind) else {
            if GravityOption.proNames.contains(text) { throw .pro(text, kind: "a gravity") }
            throw .value(text, isNot: "one of \(kinds.map(\.rawValue).sorted().joined(separator: ", "))")
        }
        var gravity = old
        gravity.kind = kind
        switch kind {
        case .smart:
            guard self.count == index + 1 else { throw OptionError(message: "The gravity sm takes no offsets.") }
        case .focusPoint:
            guard let x = try self.number(index + 1, in: 0...1), let y = try self.number(index + 2, in: 0...1) else {
                throw OptionError(message: "The gravity fp needs two numbers from 0 to 1.")
            }
            (gravity.x, gravity.y) = (x, y)
        default:
            if !self.isSkipped(index + 1), let x = try self.number(index + 1, in: Self.offsets) { gravity.x = x }
            if !self.isSkipped(index + 2), let y = try self.number(index + 2, in: Self.offsets) { gravity.y = y }
        }
        return gravity
    }

    private static let offsets = -1_000_000.0...1_000_000

    private static func description(of range: ClosedRange<Int>) -> String {
        range.upperBound == .max ? "of at least \(range.lowerBound)" : "from \(range.lowerBound) to \(range.upperBound)"
    }
}

/// Texts of clients in messages.
enum Quotation {
    /// Returns the start of `text` between quotation marks.
    static func of(_ text: String) -> String {
        // A character can have any number of scalars.
        let start = String(text.unicodeScalars.prefix(80))
        return "\"\(start)\(start.utf8.count == text.utf8.count ? "" : "...")\""
    }
}

/// The refusal of an option.
struct OptionError: Error {
    /// A sentence that does not name the option.
    let message: String

    static func value(_ text: String, isNot expectation: String) -> OptionError {
        OptionError(message: "\(Quotation.of(text)) is not \(expectation).")
    }

    static func pro(_ text: String, kind: String) -> OptionError {
        OptionError(message: "\(Quotation.of(text)) is \(kind) of imgproxy Pro, which Tintype does not have.")
    }
}
