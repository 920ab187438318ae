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

    /// Whether width and height change places when the picture is turned upright.
    public var swapsSides: Bool { self.rawValue >= 5 }

    /// The size of the upright picture, of one that is stored as `width` by `height`.
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
    public func followed(by next: Orientation) -> Orientation {
        let (first, second) = (self.parts, next.parts)
        // A mirroring after a turn is the mirroring before the turn in the other direction.
        let turns = second.turns + (second.mirrorings == 0 ? first.turns : 4 - first.turns)
        return Self.turns[(first.mirrorings + second.mirrorings) % 2][turns % 4]
    }
}

extension Image {
    /// The picture turned upright: the orientation is applied, once, to the pixels.
    ///
    /// Returns the picture itself when it is upright already.
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
                    for (from, to) in zip(self.layout.planes, target.planes) {
                        let turn = PlaneTurn(from: from, to: to, orientation: orientation)
                        switch from.usedBytesPerRow / from.width {
                        case 1: try turn.copy(UInt8.self, from: source, to: destination)
                        case 3: try turn.copy(Triple.self, from: source, to: destination)
                        default: try turn.copy(UInt32.self, from: source, to: destination)
                        }
                    }
                }
            }
        )
    }
}

/// Three bytes that are moved together.
private struct Triple: BitwiseCopyable {
    var first: UInt8
    var second: UInt8
    var third: UInt8
}

/// How the pixels of one plane move.
private struct PlaneTurn {
    /// The pixels that are moved between two looks at the cancellation: some milliseconds.
    private static let pixelsBetweenLooks = 1 << 19

    let from: PixelLayout.Plane
    let to: PixelLayout.Plane
    let orientation: Orientation

    /// The first source pixel of an upright row, and the step to the next one, in bytes.
    private func walk(row: Int, size: Int) -> (start: Int, step: Int) {
        let lastColumn = self.from.width - 1
        let lastRow = self.from.height - 1
        func at(_ column: Int, _ row: Int) -> Int { self.from.offset + row * self.from.bytesPerRow + column * size }
        return switch self.orientation {
        case .up: (at(0, row), size)
        case .upMirrored: (at(lastColumn, row), -size)
        case .down: (at(lastColumn, lastRow - row), -size)
        case .downMirrored: (at(0, lastRow - row), size)
        case .leftMirrored: (at(row, 0), self.from.bytesPerRow)
        case .right: (at(row, lastRow), -self.from.bytesPerRow)
        case .rightMirrored: (at(lastColumn - row, lastRow), -self.from.bytesPerRow)
        case .left: (at(lastColumn - row, 0), self.from.bytesPerRow)
        }
    }

    /// Moves the pixels in tiles, so that turning by 90 degrees stays within the CPU cache.
    func copy<Pixel: BitwiseCopyable>(
        _: Pixel.Type,
        from source: UnsafeRawBufferPointer,
        to destination: UnsafeMutableRawBufferPointer
    ) throws {
        guard let source = source.baseAddress, let destination = destination.baseAddress else { return }
        // Not `stride`: a pixel of three bytes takes three.
        let size = MemoryLayout<Pixel>.size
        let tile = self.orientation.swapsSides ? 32 : self.to.width
        for left in stride(from: 0, to: self.to.width, by: tile) {
            let right = min(left + tile, self.to.width)
            let rowsBetweenLooks = max(1, Self.pixelsBetweenLooks / (right - left))
            for row in 0..<self.to.height {
                if row % rowsBetweenLooks == 0 { try Task.checkCancellation() }
                let (start, step) = self.walk(row: row, size: size)
                var from = source + (start + left * step)
                var to = destination + (self.to.offset + row * self.to.bytesPerRow + left * size)
                for _ in left..<right {
                    to.storeBytes(of: from.loadUnaligned(as: Pixel.self), as: Pixel.self)
                    from += step
                    to += size
                }
            }
        }
    }
}
