// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import TintypeImage

/// A lossless transform of one file, whose header has been read and is within the limits.
package struct JPEGTransformPlan: Sendable {
    private let transform: JPEGTransform
    private let data: Data
    private let limits: DecodingLimits
    private let header: JPEGHeader
    let geometry: JPEGGeometry

    /// Reads the header of `data`.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    package init(_ transform: JPEGTransform, of data: Data, limits: DecodingLimits) throws {
        try limits.check(data)
        if let format = ImageFormat(sniffing: data), format != .jpeg {
            throw CodingError(
                code: .unsupportedFormat,
                message:
                    "Only a JPEG is changed without loss, and this is \(format.name); decode it and encode it anew.",
                format: format
            )
        }
        self.transform = transform
        self.data = data
        self.limits = limits
        self.header = try JPEGHeader(data, work: DecodeWork(limits, format: .jpeg))
        try limits.check(self.header.imageHeader)
        self.geometry = try JPEGGeometry(transform, of: self.header)
    }

    /// The most memory in bytes that the transform takes, without the source file.
    package var byteCount: Int {
        let result = self.data.count.saturatingMultiplied(by: 2)
        guard self.isRecoded else {
            // A file that may have lost its end is decoded to check for damage.
            guard self.data.suffix(2) != Data([0xFF, 0xD9]), !self.transform.allowsTruncated else { return result }
            return result.saturatingAdded(
                to: EncodedJPEG(self.data, self.header, .standard)
                    .byteCount(for: .image, options: self.smallestDecode)
            )
        }
        return self.coefficientByteCount.saturatingMultiplied(by: self.geometry.movesBlocks ? 2 : 1)
            .saturatingAdded(to: result).saturatingAdded(to: self.header.width * 16)
    }

    private var coefficientByteCount: Int { self.blockCount.saturatingMultiplied(by: 128) }

    private var blockCount: Int { self.header.components.reduce(0) { $0 + self.header.blockCount(of: $1) } }

    /// Whether the coefficients are coded again.
    private var isRecoded: Bool {
        self.geometry.changesImage || self.transform.coding != .stored
            || self.transform.isGray && self.header.components.count > 1
    }

    /// Applies the transform.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    package func carryOut() throws -> JPEGTransform.Result {
        try Task.checkCancellation()
        let work = DecodeWork(self.limits, format: .jpeg)
        let outcome = try self.data.withUnsafeBytes { try self.carryOut($0, work) }
        return JPEGTransform.Result(
            data: outcome.data,
            width: self.geometry.width,
            height: self.geometry.height,
            crop: self.geometry.crop,
            trimmedColumns: self.geometry.trimmedColumns,
            trimmedRows: self.geometry.trimmedRows,
            damage: outcome.damage
        )
    }

    private func carryOut(_ source: UnsafeRawBufferPointer, _ work: DecodeWork) throws -> JPEGRecoding.Outcome {
        let parts = try JPEGParts(source, work: work)
        let metadata = JPEGMetadataEditing(
            self.transform,
            parts,
            self.header,
            self.geometry,
            isRecoded: self.isRecoded
        )
        let allowsTruncated = self.transform.allowsTruncated
        guard self.isRecoded else {
            if metadata.keepsAll { return JPEGRecoding.Outcome(data: self.data) }
            var outcome = JPEGRecoding.Outcome(data: try parts.assembled(with: metadata.segments()))
            // A file with an end marker is complete.
            if parts.endIsMissing { outcome.damage = allowsTruncated ? .missingData : try self.damageFoundByDecode() }
            outcome.data = try self.checked(outcome.data)
            return outcome
        }
        let coding = self.coding(of: parts)
        // The library fails in a truncated segment, but not in a truncated scan.
        var outcome =
            parts.endIsMissing && allowsTruncated
            ? try parts.assembled(with: parts.segments).withUnsafeBytes { try self.recoded($0, coding, work) }
            : try self.recoded(source, coding, work)
        if parts.endIsMissing, allowsTruncated { outcome.damage.insert(.missingData) }
        outcome.data = try self.checked(metadata.assembled(with: outcome.data))
        return outcome
    }

    /// Returns the damage that a decode to the smallest size finds.
    ///
    /// - Throws: `CodingError.Code.truncated` if image data is missing at the end of the file.
    private func damageFoundByDecode() throws -> ImageDamage {
        try EncodedJPEG(self.data, self.header, .standard).decode(options: self.smallestDecode).image.damage
    }

    private var smallestDecode: DecodeOptions {
        DecodeOptions(limits: self.limits, sufficientSize: PixelSize(width: 1, height: 1), color: .ignore)
    }

    private func recoded(
        _ source: UnsafeRawBufferPointer,
        _ coding: JPEGTransform.Coding,
        _ work: DecodeWork
    ) throws -> JPEGRecoding.Outcome {
        let units = try self.unitsOfReading(source, work)
        try work.require(units)
        let job = JPEGRecoding(
            source: source,
            header: self.header,
            geometry: self.geometry,
            coding: coding,
            isGray: self.transform.isGray,
            allowsTruncated: self.transform.allowsTruncated,
            maximumByteCount: self.limits.maximumEncodedBytes
        )
        return try job.throughTurboJPEG(units: units, work) ?? job.throughLibrary(work)
    }

    /// Returns the work of reading the coefficients.
    private func unitsOfReading(_ source: UnsafeRawBufferPointer, _ work: DecodeWork) throws -> Int {
        let bytes = source.count.saturatingMultiplied(by: DecodeWork.unitsPerByte)
        guard !self.header.hasScans else {
            return try JPEGScans(source, self.header, leavesOut: false, work: work).units.saturatingAdded(to: bytes)
        }
        let price = self.header.isArithmetic ? JPEGWork.unitsPerArithmeticBlock : JPEGWork.unitsPerBlock
        return self.blockCount.saturatingMultiplied(by: price).saturatingAdded(to: bytes)
    }

    private func coding(of parts: JPEGParts) -> JPEGTransform.Coding {
        guard self.transform.coding == .stored else { return self.transform.coding }
        if self.header.process == .progressive || self.header.process == .arithmeticProgressive { return .progressive }
        return parts.hasStandardTables && !self.header.isArithmetic ? .standardTables : .optimizedTables
    }

    private func checked(_ data: Data) throws(CodingError) -> Data {
        try self.limits.check(data)
        return data
    }
}

/// The mapping of source blocks to blocks of the result, in units of interleaved blocks (MCUs).
struct JPEGGeometry {
    let turn: JPEGTurn
    /// The size of the result in pixels.
    let width: Int
    let height: Int
    /// The first unit of the turned image that is kept.
    let left: Int
    let top: Int
    /// The size of a unit of the result, in pixels.
    let unitWidth: Int
    let unitHeight: Int
    let crop: PixelRectangle?
    let trimmedColumns: Int
    let trimmedRows: Int
    /// Whether the result shows other pixels than the source, or shows them in another order.
    let changesImage: Bool

    /// Whether the result has blocks at other places than the source.
    var movesBlocks: Bool { self.turn != JPEGTurn(.none) || self.left > 0 || self.top > 0 }

    init(_ transform: JPEGTransform, of header: JPEGHeader) throws(CodingError) {
        let upright = transform.turnsUpright ? header.orientation ?? .up : .up
        let turn = JPEGTurn(upright).followed(by: JPEGTurn(transform.turn))
        // A single component is not interleaved, whatever its sampling is (T.81, A.2.2).
        let isSingle = header.components.count == 1 || transform.isGray
        var unit = (
            width: 8 * (isSingle ? 1 : header.components.map(\.horizontal).max() ?? 1),
            height: 8 * (isSingle ? 1 : header.components.map(\.vertical).max() ?? 1)
        )
        var size = (width: header.width, height: header.height)
        if turn.swapsSides {
            unit = (unit.height, unit.width)
            size = (size.height, size.width)
        }
        self.trimmedColumns = turn.reversesColumns ? size.width % unit.width : 0
        self.trimmedRows = turn.reversesRows ? size.height % unit.height : 0
        try Self.checkTrim(transform, size, unit, columns: self.trimmedColumns, rows: self.trimmedRows)
        size = (size.width - self.trimmedColumns, size.height - self.trimmedRows)
        let crop = try transform.crop.map { crop throws(CodingError) in
            try Self.aligned(crop, within: size, unit, isPerfect: transform.isPerfect)
        }
        self.turn = turn
        self.crop = crop
        self.width = crop?.width ?? size.width
        self.height = crop?.height ?? size.height
        self.left = (crop?.x ?? 0) / unit.width
        self.top = (crop?.y ?? 0) / unit.height
        self.unitWidth = unit.width
        self.unitHeight = unit.height
        self.changesImage = turn != JPEGTurn(.none) || (self.width, self.height) != (header.width, header.height)
    }

    private static func checkTrim(
        _ transform: JPEGTransform,
        _ size: (width: Int, height: Int),
        _ unit: (width: Int, height: Int),
        columns: Int,
        rows: Int
    ) throws(CodingError) {
        guard columns > 0 || rows > 0 else { return }
        let isTooSmall = columns == size.width || rows == size.height
        guard isTooSmall || transform.isPerfect else { return }
        let reason =
            "an image of \(size.width)x\(size.height) after the turn is not of whole blocks of \(unit.width)x\(unit.height)"
        let remedy =
            isTooSmall
            ? "decode it and encode it anew" : "do without a perfect turn, which then trims what is cut of a block"
        throw Self.notLossless("It cannot be turned like that without loss (\(reason)); \(remedy).")
    }

    /// Returns the crop, extended up and to the left to the next unit.
    private static func aligned(
        _ crop: PixelRectangle,
        within size: (width: Int, height: Int),
        _ unit: (width: Int, height: Int),
        isPerfect: Bool
    ) throws(CodingError) -> PixelRectangle {
        guard crop.x >= 0, crop.y >= 0, crop.width > 0, crop.height > 0, crop.x < size.width, crop.y < size.height,
            crop.width <= size.width - crop.x, crop.height <= size.height - crop.y
        else {
            throw CodingError(
                code: .invalidOptions,
                message:
                    "The crop is not within the image, which is \(size.width)x\(size.height) when it is cropped.",
                format: .jpeg
            )
        }
        let (columns, rows) = (crop.x % unit.width, crop.y % unit.height)
        guard columns == 0 && rows == 0 || !isPerfect else {
            let what = "It cannot be cropped from \(crop.x),\(crop.y) on without loss"
            throw Self.notLossless("\(what); begin at multiples of \(unit.width),\(unit.height), or let the crop grow.")
        }
        return PixelRectangle(
            x: crop.x - columns,
            y: crop.y - rows,
            width: crop.width + columns,
            height: crop.height + rows
        )
    }

    private static func notLossless(_ message: String) -> CodingError {
        CodingError(code: .notLossless, message: message, format: .jpeg)
    }
}
