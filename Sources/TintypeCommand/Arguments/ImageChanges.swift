// SPDX-License-Identifier: Apache-2.0

import Tintype

/// The changes that `--rotate`, `--flip` and `--crop` ask for, with or without decoding.
struct ImageChanges: Sendable {
    /// The rotation and then the flip, of an upright image.
    let turn: JPEGTransform.Turn
    /// The part that is kept of the turned image.
    let crop: PixelRectangle?
    /// The options that were given.
    let options: [String]

    init(_ arguments: ParsedArguments) throws(UsageError) {
        let rotations: [String: JPEGTransform.Turn] = [
            "upright": .none, "90": .rotate90, "180": .rotate180, "270": .rotate270,
        ]
        let flips: [String: JPEGTransform.Turn] = ["horizontal": .flipHorizontal, "vertical": .flipVertical]
        let rotation = try arguments.choice("--rotate", of: ["upright", "90", "180", "270"])
        let flip = try arguments.choice("--flip", of: ["horizontal", "vertical"])
        let first = rotation.flatMap { rotations[$0] } ?? .none
        self.turn = first.followed(by: flip.flatMap { flips[$0] } ?? .none)
        self.crop = try Self.crop(arguments.value("--crop"))
        self.options = ["--rotate", "--flip", "--crop"].filter { arguments.value($0) != nil }
    }

    /// `WxH+X+Y`, as X11 writes geometry; without an offset from the top left on.
    private static func crop(_ text: String?) throws(UsageError) -> PixelRectangle? {
        guard let text else { return nil }
        let parts = text.split(separator: "+", omittingEmptySubsequences: false)
        let sides = parts[0].split(separator: "x", omittingEmptySubsequences: false)
        let numbers = (sides + parts.dropFirst()).map { Int($0) }
        guard sides.count == 2, parts.count == 1 || parts.count == 3,
            let width = numbers[0], let height = numbers[1], width > 0, height > 0
        else { throw Self.notACrop(text) }
        guard numbers.count == 4 else { return PixelRectangle(x: 0, y: 0, width: width, height: height) }
        guard let x = numbers[2], let y = numbers[3], x >= 0, y >= 0 else { throw Self.notACrop(text) }
        return PixelRectangle(x: x, y: y, width: width, height: height)
    }

    private static func notACrop(_ text: String) -> UsageError {
        UsageError("--crop takes a rectangle such as 400x300+16+32, and not \(text)")
    }
}
