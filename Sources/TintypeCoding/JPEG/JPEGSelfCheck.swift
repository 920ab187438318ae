// SPDX-License-Identifier: Apache-2.0

import CTintypeJPEG
import Glibc

/// Checks in this process that Tintype's entropy decoder agrees with the library's.
///
/// The linked library may be another version than the one that Tintype was built and tested with. The library encodes
/// two small images with restarts, optimised tables, long codes and long runs. Both decoders then decode them at
/// several sizes. The check runs once and takes some milliseconds.
enum JPEGSelfCheck {
    /// Decodes a file to a `divisor`-th of its size; `nil` if it fails, or uses the wrong decoder.
    typealias Decode = (_ file: [UInt8], _ divisor: Int, _ usesOwnEntropy: Bool) -> [UInt8]?

    /// The result to assume instead of running the check, for tests.
    @TaskLocal static var assumedVerdict: Bool?

    /// Whether the decoder may be used.
    static var hasPassed: Bool { Self.assumedVerdict ?? Self.verdict }

    private static let verdict = Self.passes(Self.decode)

    /// Returns whether `decode` gives the same pixels with and without Tintype's entropy decoder.
    static func passes(_ decode: Decode) -> Bool {
        let settings = [
            Self.settings(quality: 93, vertical: 2, restartInterval: 5),
            Self.settings(quality: 60, vertical: 1, hasOwnTables: true),
        ]
        return settings.allSatisfy { settings in
            guard let file = Self.encode(settings) else { return false }
            return [1, 4, 8].allSatisfy { divisor in
                guard let expected = decode(file, divisor, false) else { return false }
                return decode(file, divisor, true) == expected
            }
        }
    }

    private static func settings(
        quality: CInt,
        vertical: CInt,
        hasOwnTables: Bool = false,
        restartInterval: CInt = 0
    ) -> cjpeg_settings {
        cjpeg_settings(
            width: 115,
            height: 83,
            components: 3,
            quality: quality,
            is_progressive: false,
            has_own_tables: hasOwnTables,
            restart_interval: restartInterval,
            horizontal_subsampling: 2,
            vertical_subsampling: vertical,
            maximum_bytes: 1 << 20
        )
    }

    /// Encodes an image that is smooth on the left and noisy on the right, so that blocks end early or are full.
    private static func encode(_ settings: cjpeg_settings) -> [UInt8]? {
        guard let encoder = cjpeg_encoder_create({ false }) else { return nil }
        defer { cjpeg_encoder_free(encoder) }
        var settings = settings
        let (width, height) = (Int(settings.width), Int(settings.height))
        var state: UInt32 = 1
        let samples = (0..<width * height * 3).map { index in
            let (column, row) = (index / 3 % width, index / 3 / width)
            state = state &* 1_664_525 &+ 1_013_904_223
            let noise = Int(state >> 24) * max(0, column - width / 3) / width
            return UInt8(truncatingIfNeeded: min(255, (column + row * (1 + index % 3)) / 2 + noise))
        }
        guard
            cjpeg_encoder_start(encoder, &settings) == .done,
            cjpeg_encoder_write_rows(encoder, samples, width * 3, CInt(height)) == .done,
            cjpeg_encoder_finish(encoder) == .done
        else { return nil }
        var count = 0
        guard let bytes = cjpeg_encoder_take(encoder, &count) else { return nil }
        defer { free(bytes) }
        return Array(UnsafeBufferPointer(start: bytes, count: count))
    }

    static func decode(_ file: [UInt8], divisor: Int, usesOwnEntropy: Bool) -> [UInt8]? {
        // The check costs nothing of an image's budget, and a task's cancellation does not end it.
        let prices = cjpeg_prices(byte: 0, block: 0, arithmetic_block: 0, restart: 0)
        return file.withUnsafeBufferPointer { bytes -> [UInt8]? in
            guard
                let start = bytes.baseAddress,
                let decoder = cjpeg_decoder_create(prices, { _, _ in true }, UnsafeMutableRawPointer(mutating: start))
            else { return nil }
            defer { cjpeg_decoder_free(decoder) }
            cjpeg_decoder_lend(decoder, start, bytes.count, true)
            if usesOwnEntropy { cjpeg_decoder_allow_own_entropy(decoder, 0) }
            var image = cjpeg_image()
            var size = (width: CInt(0), height: CInt(0), channels: CInt(0))
            guard
                cjpeg_decoder_read_header(decoder, &image) == .done,
                cjpeg_decoder_start(decoder, CInt(divisor), 1, &size.width, &size.height, &size.channels) == .done,
                cjpeg_decoder_has_own_entropy(decoder) == usesOwnEntropy
            else { return nil }
            let stride = Int(size.width * size.channels)
            var samples = [UInt8](repeating: 0, count: stride * Int(size.height))
            var written: CInt = 0
            guard cjpeg_decoder_read_rows(decoder, &samples, stride, size.height, &written) == .done else { return nil }
            return samples
        }
    }
}
