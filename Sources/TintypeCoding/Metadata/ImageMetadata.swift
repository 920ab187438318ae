// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeImage

/// The metadata of a file: how its image was taken, and the metadata blocks as stored.
///
/// Files are untrusted: a broken part is missing here and never causes an error. ``ImageDecoder/metadata()`` returns
/// it, and ``EncodeOptions/Metadata`` copies it to another file.
public struct ImageMetadata: Sendable, Hashable {
    /// The EXIF block: a TIFF structure, without the prefix that JPEG adds.
    public let exif: Data?
    /// The XMP packet.
    ///
    /// If a JPEG splits it, the first part.
    public let xmp: Data?
    /// The IPTC records (IIM), from the resources that editors write into a JPEG.
    public let iptc: Data?

    /// The pixel density of the container (JFIF, `pHYs`), or otherwise of EXIF.
    public let density: PixelDensity?
    /// The turn that makes the stored pixels upright.
    public let orientation: Orientation
    /// The maker of the camera, such as `Canon`.
    public let cameraMake: String?
    /// The model of the camera, such as `Canon EOS 40D`; it often begins with the maker.
    public let cameraModel: String?
    /// The model of the lens.
    public let lensModel: String?
    /// When the image was taken or, if that is missing, digitised.
    public let dateTaken: CaptureDate?
    /// Where the image was taken.
    public let position: GeographicPosition?

    /// Reads the fields of the metadata blocks.
    ///
    /// ```swift
    /// let metadata = ImageMetadata(exif: data)
    /// print(metadata.cameraModel ?? "", metadata.orientation)
    /// ```
    ///
    /// - Parameters:
    ///   - exif: An EXIF block, with or without JPEG's prefix.
    ///   - xmp: An XMP packet, which is not parsed.
    ///   - iptc: IPTC records, which are not parsed.
    ///   - density: The container's density; `nil` takes EXIF's.
    ///   - orientation: The turn, if it is known; `nil` takes EXIF's.
    public init(
        exif: Data? = nil,
        xmp: Data? = nil,
        iptc: Data? = nil,
        density: PixelDensity? = nil,
        orientation: Orientation? = nil
    ) {
        let structure = exif.flatMap { TIFFStructure($0) }
        let fields = structure.map { EXIFFields($0) }
        // Copy the blocks, because a slice would keep the whole file in memory.
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

extension ImageMetadata {
    /// The number of pixels in a unit of length.
    public struct PixelDensity: Sendable, Hashable {
        /// The unit of length of a pixel density.
        public enum Unit: String, Sendable, Hashable {
            /// 25.4 millimetres.
            case inch
            /// 10 millimetres.
            case centimeter
            /// 1,000 millimetres.
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

        /// The pixels in a unit along a row.
        public let horizontal: Double
        /// The pixels in a unit along a column.
        public let vertical: Double
        /// The unit, as stored.
        public let unit: Unit

        /// Creates a density; `nil` unless both numbers are above 0 and finite.
        ///
        /// ```swift
        /// let density = ImageMetadata.PixelDensity(horizontal: 300, vertical: 300, unit: .inch)
        /// ```
        public init?(horizontal: Double, vertical: Double, unit: Unit) {
            guard horizontal > 0, vertical > 0, horizontal.isFinite, vertical.isFinite else { return nil }
            self.horizontal = horizontal
            self.vertical = vertical
            self.unit = unit
        }

        /// The pixels per inch, along a row and along a column.
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
        /// Metres above sea level; negative below it.
        public let altitude: Double?

        /// Creates a place; `nil` if the coordinates are out of range.
        ///
        /// An altitude that is not finite becomes `nil`.
        ///
        /// ```swift
        /// let place = ImageMetadata.GeographicPosition(latitude: 47.3769, longitude: 8.5417, altitude: 408)
        /// ```
        public init?(latitude: Double, longitude: Double, altitude: Double? = nil) {
            guard abs(latitude) <= 90, abs(longitude) <= 180 else { return nil }
            self.latitude = latitude
            self.longitude = longitude
            self.altitude = altitude.flatMap { $0.isFinite ? $0 : nil }
        }
    }

    /// The local time of a camera's clock when it took an image, with its offset from UTC if the camera recorded it.
    ///
    /// The description follows ISO 8601.
    public struct CaptureDate: Sendable, Hashable, CustomStringConvertible {
        /// The year, 1 to 9999.
        public let year: Int
        /// The month, 1 to 12.
        public let month: Int
        /// The day of the month, from 1 on.
        public let day: Int
        /// The hour, 0 to 23.
        public let hour: Int
        /// The minute, 0 to 59.
        public let minute: Int
        /// The second, 0 to 59.
        public let second: Int
        /// The fraction of a second, at least 0 and below 1.
        public let fraction: Double
        /// The seconds that the camera's clock was ahead of UTC; `nil` if the camera did not record them.
        public let secondsFromUTC: Int?

        /// The moment; `nil` if the camera did not record its clock's offset from UTC.
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

        /// Reads the three fields that EXIF has for a time; `nil` if the first one is not a valid time.
        ///
        /// - Parameters:
        ///   - text: A time such as `2024:05:06 07:08:09`. Cameras whose clock was never set write zeros or blanks.
        ///   - fraction: The digits after the decimal point of the seconds.
        ///   - offset: An offset such as `+02:00`.
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

        /// Returns the days since 1970, in the Gregorian calendar.
        private static func days(year: Int, month: Int, day: Int) -> Int {
            // Years begin in March, so that the leap day is the last day of a year.
            let year = month > 2 ? year : year - 1
            let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
            return year * 365 + year / 4 - year / 100 + year / 400 + dayOfYear - 719_468
        }
    }
}

extension Data {
    /// A copy of the bytes in memory of their own.
    var copied: Data { self.withUnsafeBytes { Data($0) } }
}
