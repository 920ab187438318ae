// SPDX-License-Identifier: Apache-2.0

/// The point of an image around which a part is kept or an image is placed: a side, a corner, or any point.
///
/// The part is centred on the point as far as the borders allow, so that the compass names are points like any other.
public struct Gravity: Sendable, Hashable {
    /// From 0, the left border, to 1, the right one.
    public let x: Double
    /// From 0, the top border, to 1, the bottom one.
    public let y: Double

    /// Returns the point at these distances from the left and the top, as shares of the sides.
    ///
    /// Values outside 0 to 1 are clamped; `nan` counts as the middle.
    ///
    /// ```swift
    /// request.transforms = [.crop(.aspectRatio(1, gravity: .focus(x: 0.3, y: 0.7)))]
    /// ```
    public static func focus(x: Double, y: Double) -> Gravity {
        func share(_ value: Double) -> Double { value.isNaN ? 0.5 : min(max(value, 0), 1) }
        return Gravity(x: share(x), y: share(y))
    }

    /// The middle.
    public static let center = Gravity(x: 0.5, y: 0.5)
    /// The middle of the top.
    public static let north = Gravity(x: 0.5, y: 0)
    /// The middle of the bottom.
    public static let south = Gravity(x: 0.5, y: 1)
    /// The middle of the right side.
    public static let east = Gravity(x: 1, y: 0.5)
    /// The middle of the left side.
    public static let west = Gravity(x: 0, y: 0.5)
    /// The top left corner.
    public static let northWest = Gravity(x: 0, y: 0)
    /// The top right corner.
    public static let northEast = Gravity(x: 1, y: 0)
    /// The bottom left corner.
    public static let southWest = Gravity(x: 0, y: 1)
    /// The bottom right corner.
    public static let southEast = Gravity(x: 1, y: 1)

    /// The named points, as in descriptions and on command lines.
    public static let named: [(name: String, gravity: Gravity)] = [
        ("center", .center), ("north", .north), ("south", .south), ("east", .east), ("west", .west),
        ("northwest", .northWest), ("northeast", .northEast), ("southwest", .southWest), ("southeast", .southEast),
    ]

    /// Returns the start of a part of `length` on a side of `total`; at least 0.
    func start(of length: Double, in total: Double, along axis: Axis) -> Double {
        let center = (axis == .horizontal ? self.x : self.y) * total
        return min(max(center - length / 2, 0), max(total - length, 0))
    }

    /// The two directions of an image.
    enum Axis {
        case horizontal, vertical
    }
}

extension Gravity: CustomStringConvertible, LosslessStringConvertible, Codable {
    /// The name, or the point as `x,y`.
    public var description: String {
        Self.named.first { $0.gravity == self }?.name ?? "\(self.x),\(self.y)"
    }

    /// Reads a compass name in any case, or a point as `x,y` from 0 to 1; returns `nil` for any other text.
    ///
    /// ```swift
    /// let side = Gravity("northWest")
    /// let point = Gravity("0.3,0.7")
    /// ```
    public init?(_ text: String) {
        if let known = Self.named.first(where: { $0.name == text.lowercased() }) {
            self = known.gravity
            return
        }
        let shares = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
        guard shares.count == 2, let x = shares[0], let y = shares[1], (0...1).contains(x), (0...1).contains(y) else {
            return nil
        }
        self.init(x: x, y: y)
    }

    /// Reads the text form.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let gravity = Gravity(text) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "\(text.prefix(40)) is not a gravity; write a name such as north, "
                    + "or a point such as 0.3,0.7 in shares of the sides."
            )
        }
        self = gravity
    }

    /// Writes the text form.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.description)
    }
}
