// SPDX-License-Identifier: Apache-2.0

/// Writes images as half blocks: each cell shows two pixels, one above the other, as its two colours.
enum BlockEncoder {
    /// The colours that a terminal has.
    enum Colors: Sendable {
        /// Red, green and blue of 8 bits each.
        case direct
        /// The 240 fixed ones of xterm's palette of 256.
        case palette
    }

    /// Returns one line of text for each two rows of pixels, without line breaks; each leaves the terminal's colours
    /// unchanged.
    ///
    /// Draws nothing for pixels that are hardly opaque.
    static func lines(_ pixels: TerminalPixels, colors: Colors) -> [[UInt8]] {
        let values = pixels.masked.map { $0 == 0 ? nil : Self.value(of: $0, in: colors) }
        return stride(from: 0, to: pixels.height, by: 2).map { row in
            var line = Line(colors: colors)
            for column in 0..<pixels.width {
                let upper = values[row * pixels.width + column]
                let lower = row + 1 < pixels.height ? values[(row + 1) * pixels.width + column] : nil
                line.append(upper: upper, lower: lower)
            }
            return line.finished
        }
    }

    /// The colour as the terminal gets it: red in the lowest byte, or the index in the palette.
    private static func value(of pixel: UInt32, in colors: Colors) -> UInt32 {
        switch colors {
        case .direct: pixel & 0xFF_FFFF
        case .palette: Self.index(red: Int(pixel & 255), green: Int(pixel >> 8 & 255), blue: Int(pixel >> 16 & 255))
        }
    }

    /// The nearest colour of the palette's cube of six levels a channel, or of its 24 grays.
    private static func index(red: Int, green: Int, blue: Int) -> UInt32 {
        let levels = [0, 95, 135, 175, 215, 255]
        let nearest = [red, green, blue].map { sample in
            levels.indices.min { abs(levels[$0] - sample) < abs(levels[$1] - sample) } ?? 0
        }
        let gray = min(23, max(0, ((red + green + blue) / 3 - 3) / 10))
        let distance = { (color: [Int]) in
            zip(color, [red, green, blue]).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) }
        }
        let grayLevel = 8 + 10 * gray
        let isGrayNearer = distance([grayLevel, grayLevel, grayLevel]) < distance(nearest.map { levels[$0] })
        return UInt32(isGrayNearer ? 232 + gray : 16 + 36 * nearest[0] + 6 * nearest[1] + nearest[2])
    }

    /// A line that says only what changes.
    private struct Line {
        let colors: Colors
        private var bytes: [UInt8] = []
        private var foreground: UInt32?
        private var background: UInt32?

        init(colors: Colors) {
            self.colors = colors
        }

        mutating func append(upper: UInt32?, lower: UInt32?) {
            switch (upper, lower) {
            case (nil, nil): self.append(" ", foreground: self.foreground, background: nil)
            case (let upper?, nil): self.append("\u{2580}", foreground: upper, background: nil)
            case (nil, let lower?): self.append("\u{2584}", foreground: lower, background: nil)
            case (let upper?, let lower?) where upper == lower:
                self.append(" ", foreground: self.foreground, background: upper)
            case (let upper?, let lower?): self.append("\u{2580}", foreground: upper, background: lower)
            }
        }

        /// The line, with the terminal's own colours at its end.
        var finished: [UInt8] {
            let isPlain = self.foreground == nil && self.background == nil
            return self.bytes + (isPlain ? "" : "\u{1B}[0m").utf8
        }

        private mutating func append(_ character: String, foreground: UInt32?, background: UInt32?) {
            var parameters: [String] = []
            if foreground != self.foreground, let foreground { parameters.append("38;\(self.parameters(foreground))") }
            if background != self.background {
                parameters.append(background.map { "48;\(self.parameters($0))" } ?? "49")
            }
            (self.foreground, self.background) = (foreground, background)
            if !parameters.isEmpty { self.bytes += "\u{1B}[\(parameters.joined(separator: ";"))m".utf8 }
            self.bytes += character.utf8
        }

        private func parameters(_ value: UInt32) -> String {
            switch self.colors {
            case .direct: "2;\(value & 255);\(value >> 8 & 255);\(value >> 16)"
            case .palette: "5;\(value)"
            }
        }
    }
}
