// SPDX-License-Identifier: Apache-2.0

/// A colour in sRGB with straight alpha, eight bits a sample.
public struct Color: Sendable, Hashable {
    /// Red, 0 to 255.
    public var red: UInt8
    /// Green, 0 to 255.
    public var green: UInt8
    /// Blue, 0 to 255.
    public var blue: UInt8
    /// From 0, invisible, to 255, opaque.
    public var alpha: UInt8

    /// Creates a colour, by default an opaque one.
    ///
    /// ```swift
    /// let veil = Color(red: 0, green: 0, blue: 0, alpha: 128)
    /// ```
    public init(red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8 = 255) {
        self.red = red
        self.green = green
        self.blue = blue
        self.alpha = alpha
    }

    /// Reads a colour as CSS writes it in hexadecimal digits: `#rgb`, `#rgba`, `#rrggbb` or `#rrggbbaa`; the `#` may be
    /// missing.
    ///
    /// Source: CSS Color Module Level 4, section 5.2, "The RGB Hexadecimal Notations".
    ///
    /// ```swift
    /// let orange = Color(hex: "#ff8800")
    /// ```
    ///
    /// - Returns: `nil` for any other text.
    public init?(hex text: some StringProtocol) {
        let digits = text.hasPrefix("#") ? text.dropFirst() : text[...]
        let values = digits.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }.map { UInt8($0) }
        guard values.count == digits.utf8.count else { return nil }
        switch values.count {
        case 3, 4:
            let samples = values.map { $0 * 17 }
            self.init(
                red: samples[0],
                green: samples[1],
                blue: samples[2],
                alpha: samples.count == 4 ? samples[3] : 255
            )
        case 6, 8:
            let samples = stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
            self.init(
                red: samples[0],
                green: samples[1],
                blue: samples[2],
                alpha: samples.count == 4 ? samples[3] : 255
            )
        default: return nil
        }
    }

    /// White.
    public static let white = Color(red: 255, green: 255, blue: 255)
    /// Black.
    public static let black = Color(red: 0, green: 0, blue: 0)
    /// Black that cannot be seen.
    public static let clear = Color(red: 0, green: 0, blue: 0, alpha: 0)

    /// The colour in hexadecimal digits: `#rrggbb`, or `#rrggbbaa` if it is not opaque.
    public var hex: String {
        let samples = [self.red, self.green, self.blue] + (self.alpha == 255 ? [] : [self.alpha])
        return "#"
            + samples.map { sample in
                let digits = String(sample, radix: 16)
                return digits.utf8.count == 1 ? "0" + digits : digits
            }.joined()
    }
}

extension Color: Codable, CustomStringConvertible {
    public var description: String { self.hex }

    /// Reads ``hex``.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let color = Color(hex: text) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "\(text.prefix(40)) is not a colour; write #rgb, #rgba, #rrggbb or #rrggbbaa."
            )
        }
        self = color
    }

    /// Writes ``hex``.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.hex)
    }
}
