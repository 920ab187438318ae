// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

/// Mirrors an image without loss.
public struct Flip: ImageTransformer, Hashable, Codable {
    /// The sides that change places.
    public enum Direction: String, Sendable, Hashable, Codable, CaseIterable {
        /// Left and right.
        case horizontal
        /// Top and bottom.
        case vertical
        /// Both: a half turn.
        case both
    }

    /// The sides that change places.
    public var direction: Direction

    /// Creates a flip.
    ///
    /// ```swift
    /// let mirrored = try Flip(.horizontal).transform(image)
    /// ```
    public init(_ direction: Direction) {
        self.direction = direction
    }

    /// Mirrors left and right.
    public static let horizontal = Flip(.horizontal)
    /// Mirrors top and bottom.
    public static let vertical = Flip(.vertical)

    public var key: String { "flip(\(self.direction.rawValue))" }

    /// The orientation with the same effect, for joining with other turns.
    package var orientation: Orientation {
        switch self.direction {
        case .horizontal: .upMirrored
        case .vertical: .downMirrored
        case .both: .down
        }
    }

    public func transform(_ image: Image) throws -> Image {
        try image.turned(self.orientation)
    }
}

extension Image {
    /// Returns the upright image turned by `orientation`, with one move of the pixels.
    ///
    /// - Throws: `ImageError.Code.outOfMemory`, `CancellationError`.
    func turned(_ orientation: Orientation) throws -> Image {
        try self.replacingPixels(self.pixels, orientation: self.orientation.followed(by: orientation)).upright()
    }
}

extension Flip: GeometricTransformer {
    package func add(to geometry: inout TransformGeometry) -> Bool {
        geometry.turn(self.orientation)
        return true
    }
}
