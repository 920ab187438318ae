public import FoundationEssentials
public import TintypeImage

/// A change of a JPEG without loss: it is made to the coefficients or to the markers, and no pixel is decoded.
///
/// An image is turned first, then cropped; crops are counted in the turned image. Where only markers change, the
/// entropy-coded data is copied as it is. Lossless coding moves whole blocks (MCUs) of 8 or 16 pixels a side, so:
///
/// * A block that is cut by the right or the lower edge can't become the first of its row or column. Turns and flips that
///   would need that leave it out, as `jpegtran -trim` does, or fail where the transform is perfect (`-perfect`). Transposing
///   needs it never.
/// * A crop begins at a block. One that does not is moved up and to the left to the next block, and grows by that; where the
///   transform is perfect, it fails.
///
/// ``Result`` says what became of both. Arithmetic coding becomes Huffman coding. Restart markers, what stands behind the end
/// of the image, and the directory of it (MPF) are left out of what is changed.
///
/// As a value it can be kept in a file; what is missing there has its default.
public struct JPEGTransform: Sendable, Hashable, Codable {
    /// How the image is turned; angles are clockwise.
    public enum Turn: String, Sendable, Hashable, Codable, CaseIterable {
        /// As it is.
        case none
        /// A quarter turn to the right.
        case rotate90
        /// Half a turn.
        case rotate180
        /// A quarter turn to the left.
        case rotate270
        /// Left and right change places.
        case flipHorizontal
        /// Top and bottom change places.
        case flipVertical
        /// Mirrored along the diagonal from top left to bottom right.
        case transpose
        /// Mirrored along the diagonal from top right to bottom left.
        case transverse

        /// Both turns, one after the other, as one.
        public func followed(by other: Turn) -> Turn {
            let turn = JPEGTurn(self).followed(by: JPEGTurn(other))
            return Self.allCases.first { JPEGTurn($0) == turn } ?? .none
        }
    }

    /// How the coefficients are coded.
    public enum Coding: String, Sendable, Hashable, Codable, CaseIterable {
        /// As they are. Where they have to be coded anew, progressive images stay progressive, the tables of the standard
        /// stay, and other tables are made anew for the image.
        case stored
        /// In one scan, with the tables of the standard: the fastest to write, and the largest.
        case standardTables
        /// In one scan, with tables made for the image.
        case optimizedTables
        /// In scans from coarse to fine, with tables made for each: mostly the smallest.
        case progressive
    }

    /// What becomes of what says more than the pixels do.
    ///
    /// The colour profile is kept in each case, unless ``JPEGTransform/keepsColorProfile`` is false; so is the orientation where
    /// the image is not turned upright. Both say how it looks.
    public enum Metadata: String, Sendable, Hashable, Codable, CaseIterable {
        /// All is kept: EXIF, XMP, IPTC, comments and what else there is.
        ///
        /// Where the image is turned or cropped, small copies of it are left out, and sizes say what they now are.
        case all
        /// EXIF and XMP are taken over as ``EncodeOptions/Metadata/init(carryingOver:keepsPosition:)`` does.
        case carriedOver
        /// Nothing is kept.
        case none
    }

    /// Whether the image is first turned as its EXIF orientation says, and that set to upright; default false.
    public var turnsUpright: Bool
    /// How it is turned then; default not at all.
    ///
    /// Without ``turnsUpright`` it is the stored image that is turned.
    public var turn: Turn
    /// What of the turned image is kept; default all.
    public var crop: PixelRectangle?
    /// Whether a turn that would leave out blocks, or a crop that does not begin at one, fails; default false.
    public var isPerfect: Bool
    /// Whether only the brightness is kept; default false.
    public var isGray: Bool
    /// How the coefficients are coded; default as they are.
    public var coding: Coding
    /// What becomes of metadata; default all is kept.
    public var metadata: Metadata
    /// Whether ``Metadata/carriedOver`` takes the position over as well; default false.
    public var keepsPosition: Bool
    /// Whether the colour profile is kept; default true.
    public var keepsColorProfile: Bool
    /// Whether an image whose end is missing is written as far as it is there; default false.
    public var allowsTruncated: Bool

    /// A transform, which by default does nothing.
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

    /// What came of a transform.
    public struct Result: Sendable {
        /// The new file; the old one where there was nothing to do.
        public let data: Data
        /// The stored width.
        public let width: Int
        /// The stored height.
        public let height: Int
        /// What of the turned image was kept, where a crop was asked for: the crop, moved and grown to blocks.
        public let crop: PixelRectangle?
        /// The columns at the edge that the turn left out, 0 to 31.
        public let trimmedColumns: Int
        /// The rows at the edge that the turn left out, 0 to 31.
        public let trimmedRows: Int
        /// The damage in the data of the source, which the new file has as well; empty for an intact file.
        ///
        /// If only markers change, the data is not read: it is copied without a look at it.
        public let damage: ImageDamage
    }

    /// Changes a JPEG.
    ///
    /// Works on the caller's thread, for tens of milliseconds where the image is large: ``DecodeLanes``, and a loader's
    /// `transform(_:by:)`, have threads for that. Looks at the cancellation of the task now and then. The memory is that of the
    /// coefficients, two bytes for each sample, twice where they are moved, and the result; it is checked against the limits
    /// before.
    ///
    /// - Parameters:
    ///   - data: The bytes of a JPEG.
    ///   - limits: What it may cost; the result may not have more bytes than the source may.
    /// - Returns: The new file, and what it shows.
    /// - Throws: `CodingError`: `.notLossless` for what can't be done so, `.invalidOptions` for a crop that is not within the
    ///   image, and what a decode throws. `CancellationError`.
    public func apply(to data: Data, limits: DecodingLimits = DecodingLimits()) throws -> Result {
        try JPEGTransformPlan(self, of: data, limits: limits).carryOut()
    }
}

/// One of the eight ways to turn an image: its rows and columns change places, then they are reversed.
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

    /// The turn that makes an image of an orientation upright.
    init(_ orientation: Orientation) {
        self.swapsSides = orientation.swapsSides
        self.reversesColumns = [.upMirrored, .down, .right, .rightMirrored].contains(orientation)
        self.reversesRows = [.down, .downMirrored, .rightMirrored, .left].contains(orientation)
    }

    /// Both turns, one after the other, as one.
    func followed(by other: JPEGTurn) -> JPEGTurn {
        var turn = self
        if other.swapsSides { (turn.reversesColumns, turn.reversesRows) = (self.reversesRows, self.reversesColumns) }
        turn.swapsSides = self.swapsSides != other.swapsSides
        turn.reversesColumns = turn.reversesColumns != other.reversesColumns
        turn.reversesRows = turn.reversesRows != other.reversesRows
        return turn
    }
}
