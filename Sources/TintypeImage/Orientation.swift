// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels

/// How stored pixels must be turned to be upright: the EXIF tag 0x0112.
///
/// Source: Exif 2.32, section 4.6.4, "Orientation".
public enum Orientation: UInt8, Sendable, Hashable, CaseIterable {
    /// As stored.
    case up = 1
    /// Mirrored left to right.
    case upMirrored = 2
    /// Turned by 180 degrees.
    case down = 3
    /// Mirrored top to bottom.
    case downMirrored = 4
    /// Mirrored along the diagonal from top left to bottom right.
    case leftMirrored = 5
    /// To be turned clockwise by 90 degrees.
    case right = 6
    /// Mirrored along the diagonal from top right to bottom left.
    case rightMirrored = 7
    /// To be turned counterclockwise by 90 degrees.
    case left = 8

    /// Whether width and height change places when the image is turned upright.
    public var swapsSides: Bool { self.rawValue >= 5 }

    /// The size of the upright image, of one that is stored as `width` by `height`.
    ///
    /// ```swift
    /// let size = image.orientation.uprightSize(width: image.width, height: image.height)
    /// ```
    public func uprightSize(width: Int, height: Int) -> (width: Int, height: Int) {
        self.swapsSides ? (height, width) : (width, height)
    }

    /// The turn that undoes this one.
    package var inverse: Orientation {
        switch self {
        case .right: .left
        case .left: .right
        default: self
        }
    }

    /// Each as a mirroring left to right or none, after which so many quarter turns clockwise follow.
    private static let turns: [[Orientation]] = [
        [.up, .right, .down, .left], [.upMirrored, .rightMirrored, .downMirrored, .leftMirrored],
    ]

    private var parts: (mirrorings: Int, turns: Int) {
        for (mirrorings, row) in Self.turns.enumerated() {
            if let turns = row.firstIndex(of: self) { return (mirrorings, turns) }
        }
        return (0, 0)
    }

    /// This one and then another, as one.
    ///
    /// ```swift
    /// let turn = Orientation.right.followed(by: .right)  // .down
    /// ```
    public func followed(by next: Orientation) -> Orientation {
        let (first, second) = (self.parts, next.parts)
        // A mirroring after a turn is the mirroring before the turn in the other direction.
        let turns = second.turns + (second.mirrorings == 0 ? first.turns : 4 - first.turns)
        return Self.turns[(first.mirrorings + second.mirrorings) % 2][turns % 4]
    }
}

extension Image {
    /// The image turned upright: the orientation is applied, once, to the pixels.
    ///
    /// Returns the image itself when it is upright already.
    ///
    /// ```swift
    /// let upright = try image.upright()
    /// ```
    ///
    /// - Throws: `ImageError.Code.outOfMemory`, `CancellationError`.
    public func upright() throws -> Image {
        guard self.orientation != .up else { return self }
        return self.replacingPixels(try self.pixels.turned(self.orientation), orientation: .up)
    }
}

extension PixelBuffer {
    /// The pixels turned as `orientation` says.
    func turned(_ orientation: Orientation) throws -> PixelBuffer {
        let size = orientation.uprightSize(width: self.width, height: self.height)
        let target = try PixelLayout(format: self.format, width: size.width, height: size.height)
        return try PixelBuffer(
            target,
            fillingUnsafely: { destination in
                try self.withUnsafeBytes { source in
                    guard let source = source.baseAddress, let destination = destination.baseAddress else { return }
                    for (from, to) in zip(self.layout.planes, target.planes) {
                        try PlaneTurn(from: from, to: to, orientation: orientation).copy(
                            source.assumingMemoryBound(to: UInt8.self) + from.offset,
                            destination.assumingMemoryBound(to: UInt8.self) + to.offset
                        )
                    }
                }
            }
        )
    }
}

/// How the pixels of one plane move.
private struct PlaneTurn {
    /// The pixels that are moved between two looks at the cancellation: some milliseconds.
    private static let pixelsBetweenLooks = 1 << 19

    let from: PixelLayout.Plane
    let to: PixelLayout.Plane
    let orientation: Orientation

    /// Whether the rows of the source are walked from the last one on.
    private var startsAtLastRow: Bool {
        [.down, .downMirrored, .right, .rightMirrored].contains(self.orientation)
    }

    /// Whether its columns are.
    private var startsAtLastColumn: Bool {
        [.upMirrored, .down, .rightMirrored, .left].contains(self.orientation)
    }

    /// Moves the pixels from the first byte of one plane to that of another.
    func copy(_ source: UnsafePointer<UInt8>, _ target: UnsafeMutablePointer<UInt8>) throws {
        let size = self.from.usedBytesPerRow / self.from.width
        let rowsAtOnce = max(16, Self.pixelsBetweenLooks / self.to.width / 16 * 16)
        let lastRow = source + (self.from.height - 1) * self.from.bytesPerRow
        for row in stride(from: 0, to: self.to.height, by: rowsAtOnce) {
            try Task.checkCancellation()
            let count = min(rowsAtOnce, self.to.height - row)
            let line = target + row * self.to.bytesPerRow
            guard self.orientation.swapsSides else {
                let first = self.startsAtLastRow ? lastRow : source
                let step = self.startsAtLastRow ? -self.from.bytesPerRow : self.from.bytesPerRow
                for index in 0..<count {
                    let (from, to) = (first + (row + index) * step, line + index * self.to.bytesPerRow)
                    if self.startsAtLastColumn {
                        cpixels_mirror(from, to, size, self.to.width)
                    } else {
                        to.update(from: from, count: self.to.usedBytesPerRow)
                    }
                }
                continue
            }
            // A column of the source is a row of the target; from the last one on, the target's rows are written so.
            let column = self.startsAtLastColumn ? self.from.width - row - count : row
            cpixels_transpose(
                (self.startsAtLastRow ? lastRow : source) + column * size,
                self.startsAtLastRow ? -self.from.bytesPerRow : self.from.bytesPerRow,
                self.startsAtLastColumn ? line + (count - 1) * self.to.bytesPerRow : line,
                self.startsAtLastColumn ? -self.to.bytesPerRow : self.to.bytesPerRow,
                size,
                self.to.width,
                count
            )
        }
    }
}
