public import FoundationEssentials
public import TintypeImage

/// What a file says of its image besides the pixels: how it was taken, and the blocks of metadata as stored.
///
/// Read from files of strangers: what is broken is missing here, never an error. ``ImageDecoder/metadata()`` gives it,
/// and ``EncodeOptions/Metadata`` takes it over into another file.
public struct ImageMetadata: Sendable, Hashable {
    /// The EXIF block: a TIFF structure, without the prefix that JPEG gives it.
    public let exif: Data?
    /// The XMP packet; of one that JPEG splits, the first part.
    public let xmp: Data?
    /// The IPTC records (IIM), from the resources that editors write into a JPEG.
    public let iptc: Data?

    /// The pixels of a unit of length: those of the container (JFIF, `pHYs`), or else of EXIF.
    public let density: PixelDensity?
    /// The turn that makes the stored pixels upright.
    public let orientation: Orientation
    /// The maker of the camera, such as `Canon`.
    public let cameraMake: String?
    /// The model of the camera, such as `Canon EOS 40D`; it often begins with the maker.
    public let cameraModel: String?
    /// The model of the lens.
    public let lensModel: String?
    /// When the image was taken, or else digitised.
    public let dateTaken: CaptureDate?
    /// Where the image was taken.
    public let position: GeographicPosition?

    /// Reads what the blocks say.
    ///
    /// - Parameters:
    ///   - exif: An EXIF block, with or without JPEG's prefix.
    ///   - xmp: An XMP packet, which is not looked into.
    ///   - iptc: IPTC records, which are not looked into.
    ///   - density: What the container says of the density; `nil` takes EXIF's.
    ///   - orientation: The turn, where it is known; `nil` takes EXIF's.
    public init(
        exif: Data? = nil,
        xmp: Data? = nil,
        iptc: Data? = nil,
        density: PixelDensity? = nil,
        orientation: Orientation? = nil
    ) {
        let structure = exif.flatMap { TIFFStructure($0) }
        let fields = structure.map { EXIFFields($0) }
        // Copies: a slice would keep the whole file that it was cut from.
        self.exif = (structure?.bytes ?? exif)?.copied
        self.xmp = xmp?.copied
        self.iptc = iptc?.copied
        self.density = density ?? fields?.density
        self.orientation = orientation ?? exif.flatMap { EXIF.orientation(in: $0) } ?? .up
        self.cameraMake = fields?.cameraMake
        self.cameraModel = fields?.cameraModel
        self.lensModel = fields?.lensModel
        self.dateTaken = fields?.dateTaken
        self.position = fields?.position
    }
}

/// The pixels of a unit of length.
public struct PixelDensity: Sendable, Hashable {
    /// What the pixels are counted in.
    public enum Unit: String, Sendable, Hashable {
        case inch
        case centimeter
        case meter

        /// The unit's length in inches.
        fileprivate var inches: Double {
            switch self {
            case .inch: 1
            case .centimeter: 1 / 2.54
            case .meter: 100 / 2.54
            }
        }
    }

    /// The pixels of a unit along a row.
    public let horizontal: Double
    /// The pixels of a unit along a column.
    public let vertical: Double
    /// The unit, as stored.
    public let unit: Unit

    /// A density; `nil` unless both numbers are above 0 and finite.
    public init?(horizontal: Double, vertical: Double, unit: Unit) {
        guard horizontal > 0, vertical > 0, horizontal.isFinite, vertical.isFinite else { return nil }
        self.horizontal = horizontal
        self.vertical = vertical
        self.unit = unit
    }

    /// The pixels of an inch, along a row and along a column.
    public var pixelsPerInch: (horizontal: Double, vertical: Double) {
        (self.horizontal / self.unit.inches, self.vertical / self.unit.inches)
    }
}

/// A place on the earth (WGS 84).
public struct GeographicPosition: Sendable, Hashable {
    /// Degrees to the north, -90 to 90.
    public let latitude: Double
    /// Degrees to the east, -180 to 180.
    public let longitude: Double
    /// Metres above the level of the sea, or below it where it is negative.
    public let altitude: Double?

    /// A place; `nil` for one that is not on the earth.
    public init?(latitude: Double, longitude: Double, altitude: Double? = nil) {
        guard abs(latitude) <= 90, abs(longitude) <= 180 else { return nil }
        self.latitude = latitude
        self.longitude = longitude
        self.altitude = altitude.flatMap { $0.isFinite ? $0 : nil }
    }
}

/// The time that a camera wrote into an image: that of its own clock, and how far that is from UTC where it said so.
///
/// Its description is as in ISO 8601.
public struct CaptureDate: Sendable, Hashable, CustomStringConvertible {
    public let year: Int
    public let month: Int
    public let day: Int
    public let hour: Int
    public let minute: Int
    public let second: Int
    /// The part of a second, at least 0 and below 1.
    public let fraction: Double
    /// The seconds that the camera's clock was ahead of UTC; `nil` where it did not say.
    public let secondsFromUTC: Int?

    /// The moment; `nil` where the camera did not say how far its clock was from UTC.
    public var date: Date? {
        guard let secondsFromUTC else { return nil }
        let days = Self.days(year: self.year, month: self.month, day: self.day)
        let seconds = ((days * 24 + self.hour) * 60 + self.minute) * 60 + self.second - secondsFromUTC
        return Date(timeIntervalSince1970: Double(seconds) + self.fraction)
    }

    public var description: String {
        func digits(_ number: Int, _ count: Int = 2) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        var text = "\(digits(self.year, 4))-\(digits(self.month))-\(digits(self.day))"
        text += "T\(digits(self.hour)):\(digits(self.minute)):\(digits(self.second))"
        if self.fraction > 0 { text += ".\(digits(min(999, Int((self.fraction * 1_000).rounded())), 3))" }
        guard let offset = self.secondsFromUTC else { return text }
        let minutes = abs(offset) / 60
        return text + (offset < 0 ? "-" : "+") + "\(digits(minutes / 60)):\(digits(minutes % 60))"
    }

    /// Reads the three fields that EXIF has for a time.
    ///
    /// - Parameters:
    ///   - text: Such as `2024:05:06 07:08:09`; cameras whose clock was never set write zeros or blanks.
    ///   - fraction: The digits behind the second's point.
    ///   - offset: Such as `+02:00`.
    init?(_ text: String, fraction: String?, offset: String?) {
        let parts = text.utf8.split(maxSplits: 6) { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        let numbers = parts.compactMap { $0.count <= 4 ? Int(String(decoding: $0, as: UTF8.self)) : nil }
        guard numbers.count == 6, parts.count == 6, (1...9_999).contains(numbers[0]), (1...12).contains(numbers[1]),
            (1...Self.dayCount(year: numbers[0], month: numbers[1])).contains(numbers[2]),
            numbers[3] < 24, numbers[4] < 60, numbers[5] < 60
        else { return nil }
        self.year = numbers[0]
        self.month = numbers[1]
        self.day = numbers[2]
        self.hour = numbers[3]
        self.minute = numbers[4]
        self.second = numbers[5]
        self.fraction = fraction.flatMap { Self.fraction($0) } ?? 0
        self.secondsFromUTC = offset.flatMap { Self.offset($0) }
    }

    private static func fraction(_ text: String) -> Double? {
        guard !text.isEmpty, text.utf8.count <= 9, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Double("0.\(text)")
    }

    private static func offset(_ text: String) -> Int? {
        if text == "Z" { return 0 }
        let bytes = Array(text.utf8)
        guard bytes.count == 6, bytes[3] == UInt8(ascii: ":"),
            [UInt8(ascii: "+"), UInt8(ascii: "-")].contains(bytes[0]),
            let hours = Int(String(decoding: bytes[1..<3], as: UTF8.self)), (0...23).contains(hours),
            let minutes = Int(String(decoding: bytes[4..<6], as: UTF8.self)), (0...59).contains(minutes)
        else { return nil }
        return (bytes[0] == UInt8(ascii: "-") ? -1 : 1) * (hours * 60 + minutes) * 60
    }

    private static func dayCount(year: Int, month: Int) -> Int {
        if month == 2 { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28 }
        return [4, 6, 9, 11].contains(month) ? 30 : 31
    }

    /// The days from 1970 on, in the calendar of Gregory.
    private static func days(year: Int, month: Int, day: Int) -> Int {
        // Years begin in March, so that the day of a leap year is their last one.
        let year = month > 2 ? year : year - 1
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return year * 365 + year / 4 - year / 100 + year / 400 + dayOfYear - 719_468
    }
}

extension Data {
    /// The same bytes in memory of their own.
    var copied: Data { self.withUnsafeBytes { Data($0) } }
}
