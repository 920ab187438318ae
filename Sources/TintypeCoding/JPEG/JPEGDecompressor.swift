import CJPEG
import FoundationEssentials
import TintypeImage

/// One decoder of libjpeg; freed with the object.
///
/// Used by one thread at a time. Input is lent to it. A call that returns `false` has used the loan up as far as it could; what
/// it left, and what follows, is to be lent next.
final class JPEGDecompressor {
    /// More scans than this cost time for nothing; libjpeg-turbo's own limit in TurboJPEG.
    static let maximumScanCount = 500
    /// Rows that are asked for at once, at most.
    private static let rowsAtOnce = 64
    /// Rows of blocks that are taken in at once.
    private static let blockRowsAtOnce = 32

    private let handle: OpaquePointer
    private let work: ReportedWork
    private let color: JPEGColor
    /// The size and format of the rows; set by ``start(divisor:)``.
    private(set) var layout: PixelLayout?
    /// Whether the image is put together from several scans.
    private(set) var hasScans = false
    /// The rows that were given out, of the present output.
    private(set) var rowCount = 0
    private var divisor = 1
    private var inks: [UInt8] = []

    /// Creates a decoder of samples that become RGB as `color` says.
    init(color: JPEGColor, work: DecodeWork) throws(CodingError) {
        let work = ReportedWork(work)
        // The decoder calls back with the object, which lives longer: it goes away after `deinit`.
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

    /// Lends the bytes that follow the used ones; they must stay where they are until the next loan.
    ///
    /// Bytes that are complete end with the image, or too early.
    func lend(_ bytes: UnsafeRawBufferPointer, isComplete: Bool) {
        let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        cjpeg_decoder_lend(self.handle, start, bytes.count, isComplete)
    }

    /// Leaves `scans` of what was lent out, before any of it is read; it must be complete.
    ///
    /// - Throws: `CodingError`.
    func leaveOut(_ scans: [Range<Int>]) throws(CodingError) {
        guard !scans.isEmpty else { return }
        let ranges = scans.map { cjpeg_range(start: $0.lowerBound, end: $0.upperBound) }
        guard cjpeg_decoder_leave_out(self.handle, ranges, ranges.count) else { throw .outOfMemory(.jpeg) }
    }

    /// Lets the entropy decoder of our own read the Huffman codes of what was lent, if that is complete, and of `smallest`
    /// bytes or more from the first scan on.
    func allowOwnEntropy(smallest: Int) {
        cjpeg_decoder_allow_own_entropy(self.handle, smallest)
    }

    /// Whether the entropy decoder of our own reads the Huffman codes.
    var usesOwnEntropy: Bool { cjpeg_decoder_has_own_entropy(self.handle) }
    /// The lent bytes that are still to be used.
    var unreadCount: Int { cjpeg_decoder_unread(self.handle) }
    /// The scans that are there whole.
    var completedScanCount: Int { Int(cjpeg_decoder_completed_scans(self.handle)) }
    /// Where the last whole scan ended, from the start of the loan.
    var completedOffset: Int { cjpeg_decoder_completed_offset(self.handle) }
    /// Whether the input ended before the image did; of an image in one scan this is known at its last row.
    var endIsMissing: Bool { cjpeg_decoder_end_is_missing(self.handle) }
    /// The damage that was found so far.
    var damage: ImageDamage { ImageDamage(cjpegDamage: cjpeg_decoder_damage(self.handle)) }
    /// Whether all rows of the present output were given out.
    var isAtLastRow: Bool { self.rowCount == self.layout?.height }

    /// A part of a scan that begins behind a restart marker.
    struct RestartedScan {
        /// What follows the marker; they must stay where they are.
        let bytes: UnsafeRawBufferPointer
        /// The markers up to there.
        let restartCount: Int
    }

    /// Looks for the marker that ends an image in one scan, and uses up the loan until there; `false` while it, or a row, is
    /// missing.
    func findEnd() -> Bool { cjpeg_decoder_find_end(self.handle) }

    /// Reads up to the first scan and begins to decode to a `divisor`-th (1, 2, 4 or 8) of the size.
    ///
    /// - Parameters:
    ///   - header: What the header says.
    ///   - divisor: By how much both sides are divided.
    ///   - scan: What is decoded, where only the header was lent.
    /// - Returns: `false` where input is missing.
    /// - Throws: `CodingError`, also for an image of another size than the header said.
    func start(_ header: JPEGHeader, divisor: Int, scan: RestartedScan? = nil) throws -> Bool {
        var picture = cjpeg_picture()
        guard try self.check(cjpeg_decoder_read_header(self.handle, &picture)) else { return false }
        guard
            Int(picture.width) == header.width, Int(picture.height) == header.height,
            Int(picture.components) == header.components.count
        else { throw CodingError.corrupt(.jpeg, "it has more than one frame header") }
        self.hasScans = picture.is_multi_scan
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

    /// Takes in the scans of an image that has several, as far as there is input.
    ///
    /// - Returns: Whether the last scan is there.
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

    /// Begins to give out the rows of an image with scans, as far as they are known.
    func beginOutput() throws {
        self.rowCount = 0
        _ = try self.check(cjpeg_decoder_begin_output(self.handle))
    }

    /// Ends what ``beginOutput()`` began, so that scans can be taken in again.
    func endOutput() throws {
        _ = try self.check(cjpeg_decoder_end_output(self.handle))
    }

    /// Gives out up to `count` rows of ``layout`` to `rows`, fewer where input is missing.
    ///
    /// Their work counts as the decoder's own, or as `work`.
    ///
    /// - Returns: How many were given out.
    func readRows(into rows: UnsafeMutableRawBufferPointer, count: Int, work: DecodeWork? = nil) throws -> Int {
        guard let plane = self.layout?.planes.first else { return 0 }
        let start = self.rowCount
        let end = min(start + count, plane.height)
        guard start < end else { return 0 }
        precondition((end - start - 1) * plane.bytesPerRow + plane.usedBytesPerRow <= rows.count, "The rows don't fit.")
        let rowsAtOnce = min(Self.rowsAtOnce, DecodeWork.rowsAtOnce(ofWidth: plane.width * self.unitsPerPixel))
        while self.rowCount < end {
            let wanted = min(rowsAtOnce, end - self.rowCount)
            let here = UnsafeMutableRawBufferPointer(rebasing: rows[((self.rowCount - start) * plane.bytesPerRow)...])
            let given = try self.readFewRows(into: here, plane, count: wanted)
            self.rowCount += given
            // Afterwards: where input is missing, they are asked for again and again.
            let units = given * plane.width * self.unitsPerPixel
            try (work ?? self.work.work).count(units)
            if given < wanted { break }
        }
        return self.rowCount - start
    }

    /// The work of a pixel that is given out: of the samples that it is made from, and of the conversion of inks.
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

    /// Whether the call is done; `false` when it needs more input.
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
        // Where the end is missing, what comes last is cut, and looks like damage.
        default: return self.endIsMissing ? .truncated(.jpeg) : .corrupt(.jpeg, reason)
        }
    }
}

/// How the four samples of a CMYK or YCCK image become RGB.
///
/// They say how much light is left, as Adobe's programs store them, whether or not there is an Adobe marker:
/// so libvips, Pillow and browsers take them.
struct JPEGColor {
    private let converter: ColorTransform?

    /// The conversion for an image: by its profile where it has one and the options want it.
    init(_ header: JPEGHeader, _ handling: ColorHandling) {
        guard header.components.count == 4, case .convert(let intent) = handling, let profile = header.colorProfile
        else {
            self.converter = nil
            return
        }
        self.converter = ColorConverter.shared.transform(of: .inks, profile, intent: intent)
    }

    /// The work of a pixel: by a profile it is interpolated between the points of a grid of four dimensions.
    var unitsPerPixel: Int { self.converter == nil ? 1 : 8 }

    /// Converts a row of `inks` to the start of `pixels`.
    func convert(_ inks: UnsafeRawBufferPointer, to pixels: UnsafeMutableRawBufferPointer) {
        let count = inks.count / 4
        precondition(pixels.count >= count * 3, "The row does not fit.")
        if let converter = self.converter {
            converter.convert(inks, to: pixels, count: count)
            return
        }
        // Without a profile inks are taken as filters: each lets through its share of the light.
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
    /// The damage that `cjpeg_damage` names.
    init(cjpegDamage: CUnsignedInt) {
        self.init(rawValue: UInt8(truncatingIfNeeded: cjpegDamage))
    }
}

/// What libjpeg's work costs.
///
/// A scan goes over all coefficients, but leaves most of them alone: a quarter of a pixel each; arithmetic coding
/// decides on each of them. A restart looks for a marker and begins the tables anew.
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

    /// What the library calls, with a ``ReportedWork`` as its context.
    static let count: cjpeg_count = { context, units in
        Unmanaged<ReportedWork>.fromOpaque(context).takeUnretainedValue().count(Int(units))
    }
}

// MARK: Scale

extension JPEGHeader {
    /// The largest of 1, 2, 4 and 8 that leaves at least the sufficient size when the sides are divided by it.
    ///
    /// The steps between them exist too, but only these have SIMD code.
    func divisor(for sufficientSize: PixelSize?) -> Int {
        guard let size = sufficientSize, size.width > 0, size.height > 0 else { return 1 }
        let shrink = min(self.width / size.width, self.height / size.height)
        return [8, 4, 2].first { $0 <= shrink } ?? 1
    }

    /// Pixels decoded to a `divisor`-th, with what is known about them.
    func decodedImage(_ pixels: PixelBuffer, divisor: Int, damage: ImageDamage = []) -> DecodedImage {
        DecodedImage(
            Image(pixels: pixels, orientation: self.orientation ?? .up, sourceFormat: .jpeg, damage: damage),
            coveredWidth: Double(self.width) / Double(divisor),
            coveredHeight: Double(self.height) / Double(divisor)
        )
    }
}
