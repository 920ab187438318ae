// SPDX-License-Identifier: Apache-2.0

import CTintypeJPEG
import CTintypeTurboJPEG
import FoundationEssentials
import TintypeImage

/// Reads the coefficients of a JPEG and codes them again, perhaps in another order.
///
/// The result has only the markers that a decoder needs.
struct JPEGRecoding {
    let source: UnsafeRawBufferPointer
    let header: JPEGHeader
    let geometry: JPEGGeometry
    /// The coding, which is not ``JPEGTransform/Coding/stored``.
    let coding: JPEGTransform.Coding
    let isGray: Bool
    let allowsTruncated: Bool
    let maximumByteCount: Int

    /// The recoded file, and the damage found in the source.
    struct Outcome {
        var data: Data
        var damage: ImageDamage = []
    }

    // MARK: TurboJPEG

    /// The most work to give to TurboJPEG, about twenty milliseconds, because its single call cannot be interrupted.
    private static let maximumTurboUnits = 4 * DecodeWork.unitsBetweenLooks

    /// Recodes the image with TurboJPEG; reading the coefficients costs `units`.
    ///
    /// Returns `nil` if TurboJPEG does not support the change, would take long, or reports an error or warning. Then
    /// use ``throughLibrary(_:)``, which reports details.
    func throughTurboJPEG(units: Int, _ work: DecodeWork) throws -> Outcome? {
        guard self.coding != .optimizedTables, units <= Self.maximumTurboUnits,
            let start = self.source.baseAddress?.assumingMemoryBound(to: UInt8.self), let handle = tjInitTransform()
        else { return nil }
        defer { tjDestroy(handle) }
        try work.count(units)
        var transform = self.turboTransform
        var target: UnsafeMutablePointer<UInt8>?
        defer { tjFree(target) }
        var count: CUnsignedLong = 0
        let flags = TJFLAG_LIMITSCANS | TJFLAG_STOPONWARNING
        let status = tjTransform(handle, start, CUnsignedLong(self.source.count), 1, &target, &count, &transform, flags)
        try Task.checkCancellation()
        guard status == 0, let target, Int(count) <= self.maximumByteCount else { return nil }
        return Outcome(data: Data(bytes: target, count: Int(count)))
    }

    private var turboTransform: tjtransform {
        var transform = tjtransform()
        let turn = self.geometry.turn
        let operation =
            switch (turn.swapsSides, turn.reversesColumns, turn.reversesRows) {
            case (false, false, false): TJXOP_NONE
            case (false, true, false): TJXOP_HFLIP
            case (false, false, true): TJXOP_VFLIP
            case (false, true, true): TJXOP_ROT180
            case (true, false, false): TJXOP_TRANSPOSE
            case (true, true, false): TJXOP_ROT90
            case (true, false, true): TJXOP_ROT270
            case (true, true, true): TJXOP_TRANSVERSE
            }
        transform.op = CInt(operation.rawValue)
        transform.options = TJXOPT_COPYNONE
        if self.isGray { transform.options |= TJXOPT_GRAY }
        if self.coding == .progressive {
            transform.options |= TJXOPT_PROGRESSIVE
        } else {
            // Damaged data may contain coefficients without a code in the standard tables, which TurboJPEG does not
            // check.
            transform.customFilter = { coefficients, region, _, _, _, _ in
                guard let coefficients else { return -1 }
                return cjpeg_fit_standard_tables(coefficients, Int(region.w * region.h) / 64) ? 0 : -1
            }
        }
        if self.geometry.changesImage {
            transform.options |= TJXOPT_CROP
            transform.r = tjregion(
                x: CInt(self.geometry.left * self.geometry.unitWidth),
                y: CInt(self.geometry.top * self.geometry.unitHeight),
                w: CInt(self.geometry.width),
                h: CInt(self.geometry.height)
            )
        }
        return transform
    }

    // MARK: libjpeg

    /// Recodes the image with libjpeg and Tintype's own code.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func throughLibrary(_ work: DecodeWork) throws -> Outcome {
        try work.count(bytes: self.source.count)
        let transformer = try JPEGTransformer(work)
        return try transformer.transform(self)
    }

    fileprivate var settings: cjpeg_transform {
        cjpeg_transform(
            source_width: CInt(self.header.width),
            source_height: CInt(self.header.height),
            source_components: CInt(self.header.components.count),
            swaps_sides: self.geometry.turn.swapsSides,
            reverses_columns: self.geometry.turn.reversesColumns,
            reverses_rows: self.geometry.turn.reversesRows,
            left: CInt(self.geometry.left),
            top: CInt(self.geometry.top),
            width: CInt(self.geometry.width),
            height: CInt(self.geometry.height),
            is_gray: self.isGray,
            is_progressive: self.coding == .progressive,
            has_own_tables: self.coding == .optimizedTables,
            allows_truncated: self.allowsTruncated,
            maximum_scans: CInt(JPEGDecompressor.maximumScanCount),
            maximum_bytes: max(0, self.maximumByteCount)
        )
    }
}

/// A reader and writer of coefficients of libjpeg, which is freed with the object.
private final class JPEGTransformer {
    private let handle: OpaquePointer
    private let work: ReportedWork

    init(_ work: DecodeWork) throws(CodingError) {
        let work = ReportedWork(work)
        // Safe: the callback's context is freed after `deinit`, so it outlives the handle.
        let context = Unmanaged.passUnretained(work).toOpaque()
        guard let handle = cjpeg_transformer_create(JPEGWork.prices, JPEGWork.count, context) else {
            throw .outOfMemory(.jpeg)
        }
        self.handle = handle
        self.work = work
    }

    deinit {
        cjpeg_transformer_free(self.handle)
    }

    func transform(_ job: JPEGRecoding) throws -> JPEGRecoding.Outcome {
        var settings = job.settings
        let start = job.source.baseAddress?.assumingMemoryBound(to: UInt8.self)
        guard cjpeg_transformer_run(self.handle, start, job.source.count, &settings) == .done else {
            throw self.work.error ?? self.failure(job)
        }
        var count = 0
        guard let bytes = cjpeg_transformer_take(self.handle, &count) else { throw CodingError.outOfMemory(.jpeg) }
        return JPEGRecoding.Outcome(
            data: Data(bytesNoCopy: bytes, count: count, deallocator: .free),
            damage: ImageDamage(cjpegDamage: cjpeg_transformer_damage(self.handle))
        )
    }

    private func failure(_ job: JPEGRecoding) -> CodingError {
        let reason = String(cString: cjpeg_transformer_message(self.handle))
        switch cjpeg_transformer_failure(self.handle) {
        case .memory: return .outOfMemory(.jpeg)
        case .unsupported:
            return CodingError(
                code: .notLossless,
                message: "The JPEG cannot be changed without loss (\(reason)); decode it and encode it anew.",
                format: .jpeg
            )
        case .scans: return .corrupt(.jpeg, "it has more than \(JPEGDecompressor.maximumScanCount) scans")
        case .size:
            let what = "The result has more than \(job.maximumByteCount) bytes"
            return .overLimit(.tooManyBytes, .jpeg, what)
        // If the end is missing, the last data is cut and looks damaged.
        default:
            return cjpeg_transformer_end_is_missing(self.handle) ? .truncated(.jpeg) : .corrupt(.jpeg, reason)
        }
    }
}
