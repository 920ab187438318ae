// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeImage

/// A lossless change of a JPEG, made to its coefficients or markers without decoding pixels.
///
/// An image is turned first, then cropped; crops are in pixels of the turned image. If only markers change, the
/// entropy-coded data is copied as it is. Lossless coding moves whole blocks (MCUs) of 8 or 16 pixels a side,
/// therefore:
///
/// - A block that is cut by the right or the lower edge cannot become the first of its row or column. A turn or flip
///   that would need that trims the block, as `jpegtran -trim` does, or fails if the transform is perfect (`-perfect`).
///   Transposing never needs it.
/// - A crop begins at a block. Any other crop is extended up and to the left to the next block, or fails if the
///   transform is perfect.
///
/// ``Result`` reports both. Coding the coefficients again turns arithmetic coding into Huffman coding, and drops
/// restart markers. Each changed file loses the data behind the end of the image, and the directory of that data (MPF).
///
/// The transform is `Codable`; a missing key means the default.
public struct JPEGTransform: Sendable, Hashable, Codable {
    /// A turn of the image; angles are clockwise.
    public enum Turn: String, Sendable, Hashable, Codable, CaseIterable {
        /// No turn.
        case none
        /// A quarter turn to the right.
        case rotate90
        /// Half a turn.
        case rotate180
        /// A quarter turn to the left.
        case rotate270
        /// Left and right swapped.
        case flipHorizontal
        /// Top and bottom swapped.
        case flipVertical
        /// Mirrored along the diagonal from top left to bottom right.
        case transpose
        /// Mirrored along the diagonal from top right to bottom left.
        case transverse

        /// Returns this turn followed by `other`, as one turn.
        ///
        /// ```swift
        /// let turn = JPEGTransform.Turn.rotate90.followed(by: .rotate90)  // .rotate180
        /// ```
        public func followed(by other: Turn) -> Turn {
            let turn = JPEGTurn(self).followed(by: JPEGTurn(other))
            return Self.allCases.first { JPEGTurn($0) == turn } ?? .none
        }
    }

    /// How the coefficients are coded.
    public enum Coding: String, Sendable, Hashable, Codable, CaseIterable {
        /// As stored.
        ///
        /// If they must be coded again, progressive images stay progressive, standard tables stay, and other tables are
        /// computed for the image.
        case stored
        /// One scan with the standard tables: the fastest to write, and the largest.
        case standardTables
        /// One scan with tables computed for the image.
        case optimizedTables
        /// Scans from coarse to fine, with tables computed for each: usually the smallest.
        case progressive
    }

    /// Which metadata the new file has.
    ///
    /// Each case keeps the colour profile unless ``JPEGTransform/keepsColorProfile`` is `false`. Each case keeps the
    /// orientation if the image is not turned upright. Both affect how the image looks.
    public enum Metadata: String, Sendable, Hashable, Codable, CaseIterable {
        /// All metadata: EXIF, XMP, IPTC, comments and any other segments.
        ///
        /// If the image is turned or cropped, its thumbnails are removed, and sizes are updated.
        case all
        /// EXIF and XMP as ``EncodeOptions/Metadata/init(carryingOver:keepsPosition:)`` copies them.
        case carriedOver
        /// No metadata.
        case none
    }

    /// Whether to turn the image upright first and reset its EXIF orientation; `false` by default.
    public var turnsUpright: Bool
    /// The turn to apply after that; none by default.
    ///
    /// If ``turnsUpright`` is `false`, it applies to the stored image.
    public var turn: Turn
    /// The part of the turned image to keep; `nil`, the default, keeps all.
    public var crop: PixelRectangle?
    /// Whether a turn that would trim blocks, or a crop that does not begin at a block, fails; `false` by default.
    public var isPerfect: Bool
    /// Whether only the brightness is kept; `false` by default.
    public var isGray: Bool
    /// How the coefficients are coded; as stored by default.
    public var coding: Coding
    /// Which metadata the new file has; all by default.
    public var metadata: Metadata
    /// Whether ``Metadata/carriedOver`` copies the position too; `false` by default.
    public var keepsPosition: Bool
    /// Whether the colour profile is kept; `true` by default.
    public var keepsColorProfile: Bool
    /// Whether an image with a missing end is written as far as possible; `false` by default.
    public var allowsTruncated: Bool

    /// Creates a transform, which does nothing by default.
    ///
    /// ```swift
    /// let transform = JPEGTransform(turnsUpright: true, coding: .progressive, metadata: .carriedOver)
    /// ```
    public init(
        turnsUpright: Bool = false,
        turn: Turn = .none,
        crop: PixelRectangle? = nil,
        isPerfect: Bool = false,
        isGray: Bool = false,
        coding: Coding = .stored,
        metadata: Metadata = .all,
        keepsPosition: Bool = false,
        keepsColorProfile: Bool = true,
        allowsTruncated: Bool = false
    ) {
        self.turnsUpright = turnsUpright
        self.turn = turn
        self.crop = crop
        self.isPerfect = isPerfect
        self.isGray = isGray
        self.coding = coding
        self.metadata = metadata
        self.keepsPosition = keepsPosition
        self.keepsColorProfile = keepsColorProfile
        self.allowsTruncated = allowsTruncated
    }

    /// Decodes a transform, and uses the default for each missing key.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        func value<Value: Decodable>(_ key: CodingKeys, or preset: Value) throws -> Value {
            try values.decodeIfPresent(Value.self, forKey: key) ?? preset
        }
        let preset = JPEGTransform()
        self.init(
            turnsUpright: try value(.turnsUpright, or: preset.turnsUpright),
            turn: try value(.turn, or: preset.turn),
            crop: try values.decodeIfPresent(PixelRectangle.self, forKey: .crop),
            isPerfect: try value(.isPerfect, or: preset.isPerfect),
            isGray: try value(.isGray, or: preset.isGray),
            coding: try value(.coding, or: preset.coding),
            metadata: try value(.metadata, or: preset.metadata),
            keepsPosition: try value(.keepsPosition, or: preset.keepsPosition),
            keepsColorProfile: try value(.keepsColorProfile, or: preset.keepsColorProfile),
            allowsTruncated: try value(.allowsTruncated, or: preset.allowsTruncated)
        )
    }

    /// The result of a transform.
    public struct Result: Sendable {
        /// The new file, or the old one if there was nothing to change.
        public let data: Data
        /// The stored width in pixels.
        public let width: Int
        /// The stored height in pixels.
        public let height: Int
        /// The part of the turned image that was kept: the crop, extended to blocks.
        ///
        /// `nil` if no crop was requested.
        public let crop: PixelRectangle?
        /// The columns at the edge that the turn trimmed, 0 to 31.
        public let trimmedColumns: Int
        /// The rows at the edge that the turn trimmed, 0 to 31.
        public let trimmedRows: Int
        /// The damage in the data of the source, which the new file has as well; empty for an intact file.
        ///
        /// If only markers change, the data is copied without being checked.
        public let damage: ImageDamage
    }

    /// Changes a JPEG.
    ///
    /// It blocks the caller's thread, for tens of milliseconds if the image is large. Decode lanes and a loader's
    /// `transform(_:by:)` have threads for that. It checks for cancellation of the task from time to time. Its memory
    /// is the result and the coefficients: two bytes for each sample, twice that if blocks are moved. The limits bound
    /// the size of the image, and so this memory.
    ///
    /// ```swift
    /// let upright = try JPEGTransform(turnsUpright: true).apply(to: data)
    /// print(upright.width, upright.height, upright.data.count)
    /// ```
    ///
    /// - Parameters:
    ///   - data: The bytes of a JPEG.
    ///   - limits: The most that the transform may cost. The limit on encoded bytes also applies to the result.
    /// - Returns: The new file and its properties.
    /// - Throws: `CodingError`: `.notLossless` for a change that is not possible without loss, `.invalidOptions` for a
    ///   crop that is not within the image, and the errors of a decode. `CancellationError`.
    public func apply(to data: Data, limits: DecodingLimits = DecodingLimits()) throws -> Result {
        try JPEGTransformPlan(self, of: data, limits: limits).carryOut()
    }
}

/// One of the eight turns of an image: its rows and columns are swapped or not, then each reversed or not.
struct JPEGTurn: Hashable {
    var swapsSides = false
    var reversesColumns = false
    var reversesRows = false

    init(_ turn: JPEGTransform.Turn) {
        switch turn {
        case .none: self.init(.up)
        case .rotate90: self.init(.right)
        case .rotate180: self.init(.down)
        case .rotate270: self.init(.left)
        case .flipHorizontal: self.init(.upMirrored)
        case .flipVertical: self.init(.downMirrored)
        case .transpose: self.init(.leftMirrored)
        case .transverse: self.init(.rightMirrored)
        }
    }

    /// Creates the turn that makes an image with an orientation upright.
    init(_ orientation: Orientation) {
        self.swapsSides = orientation.swapsSides
        self.reversesColumns = [.upMirrored, .down, .right, .rightMirrored].contains(orientation)
        self.reversesRows = [.down, .downMirrored, .rightMirrored, .left].contains(orientation)
    }

    /// Returns this turn followed by `other`, as one turn.
    func followed(by other: JPEGTurn) -> JPEGTurn {
        var turn = self
        if other.swapsSides { (turn.reversesColumns, turn.reversesRows) = (self.reversesRows, self.reversesColumns) }
        turn.swapsSides = self.swapsSides != other.swapsSides
        turn.reversesColumns = turn.reversesColumns != other.reversesColumns
        turn.reversesRows = turn.reversesRows != other.reversesRows
        return turn
    }
}
