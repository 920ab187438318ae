// SPDX-License-Identifier: Apache-2.0

import Glibc
import Tintype

/// An image drawn with half blocks, two pixels per character, in 24-bit colour.
///
/// If the output is not a terminal, the image is drawn in shades of ASCII, without control codes.
struct TerminalImage {
    private static let shades = Array(" .:-=+*#%@")
    private let image: Image
    private let isColored: Bool

    init(_ image: Image, columns: Int, isColored: Bool = isatty(STDOUT_FILENO) == 1) {
        self.image = (try? image.resized(.fit(width: columns, height: columns))) ?? image
        self.isColored = isColored
    }

    var text: String {
        self.image.pixels.withBytes { bytes in
            var text = ""
            for row in stride(from: 0, to: self.image.height - 1, by: 2) {
                for column in 0..<self.image.width {
                    let upper = self.color(bytes, column, row)
                    let lower = self.color(bytes, column, row + 1)
                    text += self.isColored ? Self.block(upper, lower) : Self.shade(upper, lower)
                }
                text += self.isColored ? "\u{1B}[0m\n" : "\n"
            }
            return text
        }
    }

    private typealias Color = (red: Int, green: Int, blue: Int)

    private func color(_ bytes: RawSpan, _ column: Int, _ row: Int) -> Color {
        let pixels = self.image.pixels
        let channels = pixels.format.channelCount
        let offset = row * pixels.layout.planes[0].bytesPerRow + column * channels
        func sample(_ index: Int) -> Int {
            Int(bytes.unsafeLoad(fromByteOffset: offset + (channels == 1 ? 0 : index), as: UInt8.self))
        }
        return (sample(0), sample(1), sample(2))
    }

    private static func block(_ upper: Color, _ lower: Color) -> String {
        "\u{1B}[38;2;\(upper.red);\(upper.green);\(upper.blue)m"
            + "\u{1B}[48;2;\(lower.red);\(lower.green);\(lower.blue)m\u{2580}"
    }

    private static func shade(_ upper: Color, _ lower: Color) -> String {
        let light = [upper, lower].reduce(0) { $0 + $1.red * 3 + $1.green * 6 + $1.blue }
        return String(Self.shades[light * (Self.shades.count - 1) / (2 * 2_550)])
    }
}
