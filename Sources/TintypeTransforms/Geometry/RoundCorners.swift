// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

/// A line along the inside of an image's edge.
public struct Border: Sendable, Hashable, Codable {
    /// Its width in pixels, 0 or more.
    public var width: Double
    /// The colour; the image is visible through a colour that is not opaque.
    public var color: Color

    /// Creates a border with a width in pixels.
    ///
    /// ```swift
    /// let border = Border(width: 4, color: .white)
    /// let avatar = try Circle(border: border).transform(image)
    /// ```
    public init(width: Double, color: Color) {
        self.width = width
        self.color = color
    }

    fileprivate var key: String { "\(self.width),\(self.color)" }
}

/// Rounds the corners of an image, and can draw a border along its edge.
///
/// Pixels outside become transparent, and pixels on the edge partly transparent, by the area outside. If the radii
/// along a side add up to more than the side, all radii shrink by the same factor.
///
/// Source: CSS Backgrounds and Borders Level 3, section 5.5, "Overlapping Curves"; section 5.2, "Corner Shaping", for
/// the inner edge of the border.
public struct RoundCorners: ImageTransformer, Hashable {
    /// The radii of the four corners.
    public struct Radii: Sendable, Hashable {
        /// The radius of the top left corner, 0 or more.
        public var topLeft: Double
        /// The radius of the top right corner, 0 or more.
        public var topRight: Double
        /// The radius of the bottom right corner, 0 or more.
        public var bottomRight: Double
        /// The radius of the bottom left corner, 0 or more.
        public var bottomLeft: Double

        /// Creates radii; corners left out stay square.
        ///
        /// ```swift
        /// let top = RoundCorners.Radii(topLeft: 24, topRight: 24)
        /// ```
        public init(topLeft: Double = 0, topRight: Double = 0, bottomRight: Double = 0, bottomLeft: Double = 0) {
            self.topLeft = topLeft
            self.topRight = topRight
            self.bottomRight = bottomRight
            self.bottomLeft = bottomLeft
        }

        /// Creates the same radius for all corners.
        ///
        /// ```swift
        /// let radii = RoundCorners.Radii(24)
        /// ```
        public init(_ radius: Double) {
            self.init(topLeft: radius, topRight: radius, bottomRight: radius, bottomLeft: radius)
        }

        var all: [Double] { [self.topLeft, self.topRight, self.bottomRight, self.bottomLeft] }

        func map(_ change: (Double) -> Double) -> Radii {
            Radii(
                topLeft: change(self.topLeft),
                topRight: change(self.topRight),
                bottomRight: change(self.bottomRight),
                bottomLeft: change(self.bottomLeft)
            )
        }
    }

    /// The unit of radii.
    public enum Unit: String, Sendable, Hashable, Codable, CaseIterable {
        /// Pixels.
        case pixels
        /// Shares of the image's shorter side; 0.5 makes half circles of its ends.
        case shares
    }

    /// The radii.
    public var radii: Radii
    /// The unit of the radii.
    public var unit: Unit
    /// The line along the edge; `nil`, the default, draws none.
    public var border: Border?

    /// Creates round corners, by default in pixels and without a border.
    ///
    /// ```swift
    /// let tab = try RoundCorners(.init(topLeft: 24, topRight: 24)).transform(image)
    /// ```
    public init(_ radii: Radii, unit: Unit = .pixels, border: Border? = nil) {
        self.radii = radii
        self.unit = unit
        self.border = border
    }

    /// Creates round corners of the same radius, by default in pixels and without a border.
    ///
    /// ```swift
    /// let card = try RoundCorners(radius: 0.1, unit: .shares).transform(image)
    /// ```
    public init(radius: Double, unit: Unit = .pixels, border: Border? = nil) {
        self.init(Radii(radius), unit: unit, border: border)
    }

    public var key: String {
        let radii = self.radii.all.map { "\($0)" }.joined(separator: ",")
        return "roundCorners(\(radii),\(self.unit.rawValue)\(self.border.map { "," + $0.key } ?? ""))"
    }

    /// Returns the frame for an image of this size, or `nil` if it would neither cut nor draw anything.
    private func frame(width: Int, height: Int) throws(TransformError) -> ImageFrame? {
        guard self.radii.all.allSatisfy({ $0.isFinite && $0 >= 0 }) else {
            throw .invalidParameter("Corners cannot have radii of \(self.radii.all); give numbers of 0 or more.")
        }
        let scale = self.unit == .pixels ? 1 : Double(min(width, height))
        let whole = PixelRectangle(x: 0, y: 0, width: width, height: height)
        return try ImageFrame(part: whole, radii: self.radii.map { $0 * scale }, border: self.border)
    }

    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        try self.frame(width: source.width, height: source.height).footprint(for: source)
    }

    public func transform(_ image: Image) throws -> Image {
        let image = try image.upright()
        return try self.frame(width: image.width, height: image.height).applied(to: image)
    }
}

/// Cuts the largest circle out of the middle of an image, and can draw a border along its edge.
///
/// The result is a square with alpha, transparent outside the circle.
public struct Circle: ImageTransformer, Hashable, Codable {
    /// The line along the edge; `nil`, the default, draws none.
    public var border: Border?

    /// Creates a circle.
    ///
    /// ```swift
    /// let avatar = try Circle().transform(image)  // 800 x 600 becomes 600 x 600
    /// ```
    public init(border: Border? = nil) {
        self.border = border
    }

    public var key: String { "circle(\(self.border?.key ?? ""))" }

    private func frame(width: Int, height: Int) throws(TransformError) -> ImageFrame? {
        let side = min(width, height)
        return try ImageFrame(
            part: Gravity.center.part(side, side, ofWidth: width, height: height),
            radii: RoundCorners.Radii(Double(side) / 2),
            border: self.border
        )
    }

    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        try self.frame(width: source.width, height: source.height).footprint(for: source)
    }

    public func transform(_ image: Image) throws -> Image {
        let image = try image.upright()
        return try self.frame(width: image.width, height: image.height).applied(to: image)
    }
}

extension ImageFrame? {
    fileprivate func footprint(for source: PixelLayout) throws -> TransformFootprint {
        try self?.footprint(for: source) ?? TransformFootprint(result: source)
    }

    /// Returns an upright image in the frame, or the image itself without a frame.
    fileprivate func applied(to image: Image) throws -> Image {
        guard let self else { return image }
        return image.replacingPixels(try self.paint(image.pixels), orientation: .up)
    }
}

extension RoundCorners.Radii: Codable {
    private enum CodingKeys: String, CodingKey {
        case topLeft, topRight, bottomRight, bottomLeft
    }

    /// Reads one number for all corners, or an object with the radii of the round corners.
    public init(from decoder: any Decoder) throws {
        if let radius = try? decoder.singleValueContainer().decode(Double.self) {
            self.init(radius)
            return
        }
        let container = try decoder.container(onlyOf: CodingKeys.self)
        self.init(
            topLeft: try container.decodeIfPresent(Double.self, forKey: .topLeft) ?? 0,
            topRight: try container.decodeIfPresent(Double.self, forKey: .topRight) ?? 0,
            bottomRight: try container.decodeIfPresent(Double.self, forKey: .bottomRight) ?? 0,
            bottomLeft: try container.decodeIfPresent(Double.self, forKey: .bottomLeft) ?? 0
        )
    }
}

extension RoundCorners: Codable {
    private enum CodingKeys: String, CodingKey {
        case radii = "radius"
        case unit, border
    }

    /// Reads the parameters, such as `{"radius": 20}`; all except the radius have defaults.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(onlyOf: CodingKeys.self)
        self.init(
            try container.decode(Radii.self, forKey: .radii),
            unit: try container.decodeIfPresent(Unit.self, forKey: .unit) ?? .pixels,
            border: try container.decodeIfPresent(Border.self, forKey: .border)
        )
    }
}
