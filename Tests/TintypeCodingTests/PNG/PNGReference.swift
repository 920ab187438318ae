// SPDX-License-Identifier: Apache-2.0

import CTintypeSPNG
import FoundationEssentials
import TintypeCodingSamples
import TintypeImage

/// The pixels that libspng, an independent decoder, reads from a file.
enum PNGReference {
    /// Returns the pixels as `rgba8` without padding, or `nil` for an error.
    ///
    /// Samples of 16 bits are reduced to their high byte.
    static func samples(of data: Data) -> [UInt8]? {
        data.withUnsafeBytes { bytes in
            guard let context = spng_ctx_new(0) else { return nil }
            defer { spng_ctx_free(context) }
            spng_set_crc_action(context, CInt(SPNG_CRC_ERROR.rawValue), CInt(SPNG_CRC_DISCARD.rawValue))
            spng_set_png_buffer(context, bytes.baseAddress, bytes.count)
            var header = spng_ihdr()
            guard spng_get_ihdr(context, &header) == 0 else { return nil }
            // The specification ignores bits above the depth, but libspng compares them (libspng issue 48).
            var color = spng_trns()
            if header.bit_depth < 16, spng_get_trns(context, &color) == 0 {
                let mask = UInt16(1) << UInt16(header.bit_depth) - 1
                color.gray &= mask
                color.red &= mask
                color.green &= mask
                color.blue &= mask
                spng_set_trns(context, &color)
            }
            let format = CInt(SPNG_FMT_RGBA8.rawValue)
            var count = 0
            guard spng_decoded_image_size(context, format, &count) == 0 else { return nil }
            var samples = [UInt8](repeating: 0, count: count)
            let flags = CInt(SPNG_DECODE_TRNS.rawValue)
            return spng_decode_image(context, &samples, count, format, flags) == 0 ? samples : nil
        }
    }

    /// Returns the file without the chunks of its animation.
    static func still(_ data: Data) -> Data {
        var file = PNGFile(data)
        file.chunks.removeAll { ["acTL", "fcTL", "fdAT"].contains($0.type) }
        return file.data
    }

    /// Returns all samples row by row without padding, fast enough for large images in tests.
    static func samples(of pixels: PixelBuffer) -> [UInt8] {
        let plane = pixels.layout.planes[0]
        var samples: [UInt8] = []
        samples.reserveCapacity(plane.usedBytesPerRow * plane.height)
        pixels.withUnsafeBytes { bytes in
            for row in 0..<plane.height {
                let start = row * plane.bytesPerRow
                samples.append(contentsOf: bytes[start..<start + plane.usedBytesPerRow])
            }
        }
        return samples
    }

    /// Returns the pixels as `rgba8` without padding.
    static func expanded(_ pixels: PixelBuffer) -> [UInt8] {
        let samples = self.samples(of: pixels)
        let channels = pixels.format.channelCount
        guard channels < 4 else { return samples }
        var result = [UInt8](repeating: 255, count: pixels.width * pixels.height * 4)
        samples.withUnsafeBufferPointer { source in
            result.withUnsafeMutableBufferPointer { target in
                for index in 0..<pixels.width * pixels.height {
                    for channel in 0..<3 {
                        target[index * 4 + channel] = source[index * channels + (channels == 1 ? 0 : channel)]
                    }
                }
            }
        }
        return result
    }
}
