// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeImage

@Suite struct ColorTests {
    @Test(arguments: [
        ("#fff", Color.white), ("000", .black), ("#0000", .clear),
        ("#12345678", Color(red: 18, green: 52, blue: 86, alpha: 120)),
        ("FF8000", Color(red: 255, green: 128, blue: 0)), ("#f80c", Color(red: 255, green: 136, blue: 0, alpha: 204)),
    ])
    func `reads the hexadecimal notations of CSS`(text: String, color: Color) {
        #expect(Color(hex: text) == color)
        #expect(Color(hex: color.hex) == color)
    }

    @Test(arguments: ["", "#", "12", "#12345", "#1234567", "red", "#ggg", "##fff", "#123456789", "＃fff", "#-12"])
    func `refuses other texts`(text: String) {
        #expect(Color(hex: text) == nil)
    }

    @Test func `is written in descriptions as its digits`() throws {
        let color = Color(red: 1, green: 2, blue: 3, alpha: 4)
        let text = String(decoding: try JSONEncoder().encode([color]), as: UTF8.self)
        #expect(text == ##"["#01020304"]"##)
        #expect(try JSONDecoder().decode([Color].self, from: Data(text.utf8)) == [color])
        #expect(throws: DecodingError.self) { try JSONDecoder().decode([Color].self, from: Data(#"["blue"]"#.utf8)) }
    }
}
