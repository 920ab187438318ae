// SPDX-License-Identifier: Apache-2.0

/// Decimal numbers.
enum DecimalText {
    /// Returns the number that `text` stands for, or `nil` if it is not a whole number within `range`.
    static func integer(_ text: some Collection<UInt8>, in range: ClosedRange<Int>) -> Int? {
        guard text.count <= 20, let number = Int(String(decoding: text, as: UTF8.self)), range.contains(number)
        else { return nil }
        return number
    }

    /// Returns the number that `text` stands for, or `nil` if it is not a decimal number within `range`.
    ///
    /// Names such as `nan`, hexadecimal numbers and very long texts are not numbers.
    static func number(_ text: String, in range: ClosedRange<Double>) -> Double? {
        guard text.utf8.count <= 32, text.utf8.allSatisfy(self.isNumberByte), let number = Double(text),
            range.contains(number)
        else { return nil }
        // Turn -0 into 0.
        return number == 0 ? 0 : number
    }

    private static func isNumberByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }
}
