public import TintypeImage

/// Mirrors an image; exact.
public struct Flip: ImageTransformer, Hashable, Codable {
    /// What changes places.
    public enum Direction: String, Sendable, Hashable, Codable, CaseIterable {
        /// Left and right.
        case horizontal
        /// Top and bottom.
        case vertical
        /// Both: a half turn.
        case both
    }

    /// What changes places.
    public var direction: Direction

    /// Describes a mirroring.
    public init(_ direction: Direction) {
        self.direction = direction
    }

    /// Left and right change places.
    public static let horizontal = Flip(.horizontal)
    /// Top and bottom change places.
    public static let vertical = Flip(.vertical)

    public var key: String { "flip(\(self.direction.rawValue))" }

    /// The same as an orientation, to be joined with others.
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
    /// The upright image, turned as `orientation` says: one move of the pixels.
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
