// SPDX-License-Identifier: Apache-2.0

/// The answers of a terminal about its abilities, separated from keys.
///
/// The input is not trusted: answers are short, and longer or unknown ones are skipped.
struct TerminalAnswers: Sendable {
    /// The most bytes of one answer that are looked at.
    private static let maximumLength = 256
    /// Sides of cells and windows beyond are nonsense.
    private static let sides = 1...100_000

    private enum State {
        case ground
        case escape
        /// After `ESC [`.
        case control
        /// A string of any kind: it ends with `ESC \`, or a bell.
        case string(isGraphics: Bool)
        /// After an escape in a string.
        case stringEscape(isGraphics: Bool)
    }

    /// Whether it knows Kitty's graphics protocol.
    private(set) var knowsKitty = false
    /// Whether it knows Sixel.
    private(set) var knowsSixel = false
    /// The pixels of a cell.
    private(set) var cell: (width: Int, height: Int)?
    /// The pixels of all cells together.
    private(set) var window: (width: Int, height: Int)?
    /// Whether it has answered the last question, which every terminal answers: what it is.
    private(set) var isComplete = false
    /// Whether anything came that is no answer.
    private(set) var hasKey = false

    private var state = State.ground
    private var pending: [UInt8] = []

    /// The questions; the last is answered by every terminal.
    static func query(graphics: Bool, size: Bool) -> String {
        (graphics ? KittyEncoder.query : "") + (size ? "\u{1B}[16t\u{1B}[14t" : "") + "\u{1B}[c"
    }

    /// Reads what came at once; an escape at its end is the key.
    mutating func read(_ bytes: some Sequence<UInt8>) {
        for byte in bytes { self.read(byte) }
        if case .escape = self.state { self.endWithKey() }
    }

    private mutating func read(_ byte: UInt8) {
        switch (self.state, byte) {
        case (.ground, 0x1B): self.state = .escape
        case (.ground, _): self.hasKey = true
        case (.escape, UInt8(ascii: "[")): self.begin(.control)
        case (.escape, UInt8(ascii: "_")): self.begin(.string(isGraphics: true))
        case (.escape, UInt8(ascii: "P")), (.escape, UInt8(ascii: "]")), (.escape, UInt8(ascii: "^")):
            self.begin(.string(isGraphics: false))
        case (.escape, _): self.endWithKey()
        case (.control, 0x40...0x7E):
            self.state = .ground
            self.takeControl(final: byte)
        case (.control, 0x20...0x3F): self.keep(byte)
        case (.control, _): self.endWithKey()
        case (.string(let isGraphics), 0x1B): self.state = .stringEscape(isGraphics: isGraphics)
        case (.string(let isGraphics), 0x07), (.stringEscape(let isGraphics), UInt8(ascii: "\\")):
            self.state = .ground
            if isGraphics { self.takeGraphics() }
        case (.string, _): self.keep(byte)
        // The string was broken off.
        case (.stringEscape, _):
            self.state = .escape
            self.read(byte)
        }
    }

    private mutating func begin(_ state: State) {
        self.state = state
        self.pending = []
    }

    private mutating func keep(_ byte: UInt8) {
        if self.pending.count < Self.maximumLength { self.pending.append(byte) }
    }

    private mutating func endWithKey() {
        self.state = .ground
        self.hasKey = true
    }

    /// `CSI ? 62;4;... c` is what the terminal is; `CSI 6;HEIGHT;WIDTH t` and `CSI 4;... t` are sizes.
    private mutating func takeControl(final: UInt8) {
        let text = String(decoding: self.pending, as: UTF8.self)
        let isPrivate = text.hasPrefix("?")
        let numbers = text.drop { $0 == "?" }.split(separator: ";", omittingEmptySubsequences: false).map { Int($0) }
        switch final {
        case UInt8(ascii: "c") where isPrivate:
            // The first says of which class it is, the others what it can do; 4 is Sixel.
            self.knowsSixel = numbers.dropFirst().contains(4)
            self.isComplete = true
        case UInt8(ascii: "t"):
            guard numbers.count == 3, let height = numbers[1], let width = numbers[2],
                Self.sides.contains(height), Self.sides.contains(width)
            else { return }
            if numbers[0] == 6 { self.cell = (width, height) }
            if numbers[0] == 4 { self.window = (width, height) }
        default:
            // Arrow keys and their like; an unasked answer does not count.
            if !isPrivate { self.hasKey = true }
        }
    }

    /// `APC G i=31;OK ST` says that the protocol is known.
    private mutating func takeGraphics() {
        let text = String(decoding: self.pending, as: UTF8.self)
        guard text.hasPrefix("G") else { return }
        let parts = text.dropFirst().split(separator: ";", maxSplits: 1)
        guard parts.count == 2, parts[0].split(separator: ",").contains("i=31") else { return }
        self.knowsKitty = parts[1] == "OK"
    }
}
