// SPDX-License-Identifier: Apache-2.0

import CTintypeJPEG
import TintypeImage

/// One decoder of libjpeg, which is freed with the object.
///
/// Use it on one thread at a time. The caller lends it input. A call that returns `false` has used the input as far as
/// possible. Next the caller must lend the unread bytes, followed by new ones.
final class JPEGDecompressor {
    /// The most scans of a file, which is also the limit in TurboJPEG.
    ///
    /// More scans only cost time.
    static let maximumScanCount = 500
    /// The most rows to read at once.
    private static let rowsAtOnce = 64
    /// The rows of blocks to consume at once.
    private static let blockRowsAtOnce = 32

    private let handle: OpaquePointer
    private let work: ReportedWork
    private let color: JPEGColor
    /// The size and format of the rows; set by ``start(_:divisor:scan:)``.
    private(set) var layout: PixelLayout?
    /// Whether the image consists of several scans.
    private(set) var hasScans = false
    /// The rows of the present output that were returned.
    private(set) var rowCount = 0
    private var divisor = 1
    private var inks: [UInt8] = []

    /// Creates a decoder that converts samples to RGB with `color`.
    init(color: JPEGColor, work: DecodeWork) throws(CodingError) {
        let work = ReportedWork(work)
        // Safe: the callback's context is freed after `deinit`, so it outlives the handle.
        let context = Unmanaged.passUnretained(work).toOpaque()
        guard let handle = cjpeg_decoder_create(JPEGWork.prices, JPEGWork.count, context) else {
            throw .outOfMemory(.jpeg)
        }
        self.handle = handle
        self.work = work
        self.color = color
    }

    deinit {
        cjpeg_decoder_free(self.handle)
    }

    /// Lends the bytes that follow the used ones, which must stay in place until the next loan.
    ///
    /// `isComplete` says that no more bytes will follow.
    func lend(_ bytes: UnsafeRawBufferPointer, isComplete: Bool) {
        let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        cjpeg_decoder_lend(self.handle, start, bytes.count, isComplete)
    }

    /// Skips `scans` of the input.
    ///
    /// Call it before any input is read; the input must be complete.
    ///
    /// - Throws: `CodingError`.
    func leaveOut(_ scans: [Range<Int>]) throws(CodingError) {
        guard !scans.isEmpty else { return }
        let ranges = scans.map { cjpeg_range(start: $0.lowerBound, end: $0.upperBound) }
        guard cjpeg_decoder_leave_out(self.handle, ranges, ranges.count) else { throw .outOfMemory(.jpeg) }
    }

    /// Lets Tintype's entropy decoder read the Huffman codes if the input is complete and the scan has `smallest` bytes
    /// or more.
    func allowOwnEntropy(smallest: Int) {
        cjpeg_decoder_allow_own_entropy(self.handle, smallest)
    }

    /// Whether Tintype's own entropy decoder reads the Huffman codes.
    var usesOwnEntropy: Bool { cjpeg_decoder_has_own_entropy(self.handle) }
    /// The number of lent bytes that are not used yet.
    var unreadCount: Int { cjpeg_decoder_unread(self.handle) }
    /// The number of complete scans.
    var completedScanCount: Int { Int(cjpeg_decoder_completed_scans(self.handle)) }
    /// The offset from the start of the loan at which the last complete scan ended.
    var completedOffset: Int { cjpeg_decoder_completed_offset(self.handle) }
    /// Whether the input ended before the image did; for an image in one scan it is known at the last row.
    var endIsMissing: Bool { cjpeg_decoder_end_is_missing(self.handle) }
    /// The damage found so far.
    var damage: ImageDamage { ImageDamage(cjpegDamage: cjpeg_decoder_damage(self.handle)) }

    /// A part of a scan that begins behind a restart marker.
    struct RestartedScan {
        /// The bytes behind the marker, which must stay in place.
        let bytes: UnsafeRawBufferPointer
        /// The number of restart markers up to there.
        let restartCount: Int
    }

    /// Consumes input up to the end marker of an image in one scan.
    ///
    /// Returns `false` if the marker or a row is missing.
    func findEnd() -> Bool { cjpeg_decoder_find_end(self.handle) }

    /// Reads up to the first scan and begins to decode to a `divisor`-th of the size.
    ///
    /// - Parameters:
    ///   - header: The parsed header of the file.
    ///   - divisor: The divisor of both sides: 1, 2, 4 or 8.
    ///   - scan: The part of the scan to decode if the caller lent only the header; `nil` by default.
    /// - Returns: `false` if input is missing.
    /// - Throws: `CodingError`, also if the image has another size than the header declared.
    func start(_ header: JPEGHeader, divisor: Int, scan: RestartedScan? = nil) throws -> Bool {
        var image = cjpeg_image()
        guard try self.check(cjpeg_decoder_read_header(self.handle, &image)) else { return false }
        guard
            Int(image.width) == header.width, Int(image.height) == header.height,
            Int(image.components) == header.components.count
        else { throw CodingError.corrupt(.jpeg, "it has more than one frame header") }
        self.hasScans = image.is_multi_scan
        if let scan {
            cjpeg_decoder_pass_restarts(self.handle, CInt(scan.restartCount))
            self.lend(scan.bytes, isComplete: true)
        }
        var size = (width: CInt(0), height: CInt(0), channels: CInt(0))
        let limit = CInt(Self.maximumScanCount)
        let status = cjpeg_decoder_start(
            self.handle,
            CInt(divisor),
            limit,
            &size.width,
            &size.height,
            &size.channels
        )
        guard try self.check(status) else { return false }
        let layout = try PixelLayout(
            format: size.channels == 1 ? .gray8 : .rgb8,
            width: Int(size.width),
            height: Int(size.height)
        )
        self.divisor = divisor
        if size.channels == 4 { self.inks = [UInt8](repeating: 0, count: layout.width * 4 * Self.rowsAtOnce) }
        self.layout = layout
        return true
    }

    /// Consumes the scans of an image that has several, as far as input is available.
    ///
    /// - Returns: Whether the last scan is complete.
    func readScans() throws -> Bool {
        while true {
            switch cjpeg_decoder_consume(self.handle, CInt(Self.blockRowsAtOnce)) {
            case .done: return true
            case .suspended: return false
            case .failed: throw self.work.error ?? self.failure
            default: continue
            }
        }
    }

    /// Begins to output the rows of an image with scans, as far as they are decoded.
    func beginOutput() throws {
        self.rowCount = 0
        _ = try self.check(cjpeg_decoder_begin_output(self.handle))
    }

    /// Ends the output that ``beginOutput()`` began, so that more scans can be consumed.
    func endOutput() throws {
        _ = try self.check(cjpeg_decoder_end_output(self.handle))
    }

    /// Reads up to `count` rows of ``layout`` into `rows`, fewer if input is missing.
    ///
    /// The method counts the work on `work`, by default on the decoder's own counter.
    ///
    /// - Returns: The number of rows read.
    func readRows(into rows: UnsafeMutableRawBufferPointer, count: Int, work: DecodeWork? = nil) throws -> Int {
        guard let plane = self.layout?.planes.first else { return 0 }
        let start = self.rowCount
        let end = min(start + count, plane.height)
        guard start < end else { return 0 }
        precondition((end - start - 1) * plane.bytesPerRow + plane.usedBytesPerRow <= rows.count, "The rows do not fit")
        let rowsAtOnce = min(Self.rowsAtOnce, DecodeWork.rowsAtOnce(ofWidth: plane.width * self.unitsPerPixel))
        while self.rowCount < end {
            let wanted = min(rowsAtOnce, end - self.rowCount)
            let here = UnsafeMutableRawBufferPointer(rebasing: rows[((self.rowCount - start) * plane.bytesPerRow)...])
            let given = try self.readFewRows(into: here, plane, count: wanted)
            self.rowCount += given
            // Count afterwards: if input is missing, the same rows are requested again later.
            let units = given * plane.width * self.unitsPerPixel
            try (work ?? self.work.work).count(units)
            if given < wanted { break }
        }
        return self.rowCount - start
    }

    /// The work of an output pixel: the samples that it is made from, and the conversion of inks.
    var unitsPerPixel: Int {
        (self.divisor == 1 ? 1 : self.divisor * self.divisor / 4) + (self.inks.isEmpty ? 0 : self.color.unitsPerPixel)
    }

    private func readFewRows(
        into rows: UnsafeMutableRawBufferPointer,
        _ plane: PixelLayout.Plane,
        count: Int
    ) throws -> Int {
        guard !self.inks.isEmpty else { return try self.readStoredRows(into: rows, plane.bytesPerRow, count) }
        let bytesPerRow = plane.width * 4
        return try self.inks.withUnsafeMutableBytes { inks in
            let given = try self.readStoredRows(into: inks, bytesPerRow, count)
            for row in 0..<given {
                self.color.convert(
                    UnsafeRawBufferPointer(rebasing: inks[row * bytesPerRow..<(row + 1) * bytesPerRow]),
                    to: UnsafeMutableRawBufferPointer(rebasing: rows[(row * plane.bytesPerRow)...])
                )
            }
            return given
        }
    }

    private func readStoredRows(
        into rows: UnsafeMutableRawBufferPointer,
        _ bytesPerRow: Int,
        _ count: Int
    ) throws -> Int {
        guard let base = rows.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return 0 }
        var written: CInt = 0
        _ = try self.check(cjpeg_decoder_read_rows(self.handle, base, bytesPerRow, CInt(count), &written))
        return Int(written)
    }

    /// Returns whether the call is done; `false` if it needs more input.
    private func check(_ status: cjpeg_status) throws -> Bool {
        switch status {
        case .done, .paused: return true
        case .suspended: return false
        default: throw self.work.error ?? self.failure
        }
    }

    private var failure: CodingError {
        let reason = String(cString: cjpeg_decoder_message(self.handle))
        switch cjpeg_decoder_failure(self.handle) {
        case .memory: return .outOfMemory(.jpeg)
        case .unsupported: return JPEGHeader.unsupported("something that libjpeg lacks (\(reason))")
        case .scans: return .corrupt(.jpeg, "it has more than \(Self.maximumScanCount) scans")
        // If the end is missing, the last data is cut and looks damaged.
        default: return self.endIsMissing ? .truncated(.jpeg) : .corrupt(.jpeg, reason)
        }
    }
}

/// Converts the four samples of a CMYK or YCCK image to RGB.
///
/// The samples say how much light is left, as Adobe's programs store them, whether or not there is an Adobe marker.
/// libvips, Pillow and browsers read them in the same way.
struct JPEGColor {
    private let converter: ColorTransform?

    /// Creates the conversion for an image: by its profile if it has one and the options want it.
    init(_ header: JPEGHeader, _ handling: ColorHandling) {
        guard header.components.count == 4, case .convert(let intent) = handling, let profile = header.colorProfile
        else {
            self.converter = nil
            return
        }
        self.converter = ColorConverter.shared.transform(of: .inks, profile, intent: intent)
    }

    /// The work of a pixel: a profile interpolates between the points of a grid of four dimensions.
    var unitsPerPixel: Int { self.converter == nil ? 1 : 8 }

    /// Converts a row of `inks` to the start of `pixels`.
    func convert(_ inks: UnsafeRawBufferPointer, to pixels: UnsafeMutableRawBufferPointer) {
        let count = inks.count / 4
        precondition(pixels.count >= count * 3, "The row does not fit.")
        if let converter = self.converter {
            converter.convert(inks, to: pixels, count: count)
            return
        }
        // Without a profile, treat each ink as a filter that lets through its share of the light.
        for column in 0..<count {
            let key = UInt32(inks[column * 4 + 3])
            for channel in 0..<3 {
                let light = UInt32(inks[column * 4 + channel])
                pixels[column * 3 + channel] = UInt8(truncatingIfNeeded: (light * key + 127) / 255)
            }
        }
    }
}

extension ImageDamage {
    /// Creates the damage that `cjpeg_damage` flags name.
    init(cjpegDamage: CUnsignedInt) {
        self.init(rawValue: UInt8(truncatingIfNeeded: cjpegDamage))
    }
}

/// The work of libjpeg's operations.
///
/// A scan visits all coefficients but leaves most of them unchanged, so each counts a quarter of a pixel. Arithmetic
/// coding decides on each of them. A restart finds a marker and resets the tables.
enum JPEGWork {
    static let unitsPerBlock = 16
    static let unitsPerArithmeticBlock = 64
    static let unitsPerRestart = 16

    static let prices = cjpeg_prices(
        byte: CInt(DecodeWork.unitsPerByte),
        block: CInt(JPEGWork.unitsPerBlock),
        arithmetic_block: CInt(JPEGWork.unitsPerArithmeticBlock),
        restart: CInt(JPEGWork.unitsPerRestart)
    )

    /// The callback of the library, whose context is a ``ReportedWork``.
    static let count: cjpeg_count = { context, units in
        Unmanaged<ReportedWork>.fromOpaque(context).takeUnretainedValue().count(Int(units))
    }
}

// MARK: Scale

extension JPEGHeader {
    /// Returns the largest of 1, 2, 4 and 8 by which the sides can be divided and still have the sufficient size.
    ///
    /// libjpeg has steps between them, but no SIMD code for these.
    func divisor(for sufficientSize: PixelSize?) -> Int {
        guard let size = sufficientSize, size.width > 0, size.height > 0 else { return 1 }
        let shrink = min(self.width / size.width, self.height / size.height)
        return [8, 4, 2].first { $0 <= shrink } ?? 1
    }

    /// Returns an image of pixels decoded to a `divisor`-th, with its orientation and exact size.
    func decodedImage(_ pixels: PixelBuffer, divisor: Int, damage: ImageDamage = []) -> DecodedImage {
        DecodedImage(
            Image(pixels: pixels, orientation: self.orientation ?? .up, sourceFormat: .jpeg, damage: damage),
            coveredWidth: Double(self.width) / Double(divisor),
            coveredHeight: Double(self.height) / Double(divisor)
        )
    }
}
