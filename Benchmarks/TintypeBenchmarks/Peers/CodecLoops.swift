// SPDX-License-Identifier: Apache-2.0

import CTintypeCodecLoops
import Foundation
import TintypeCoding
import TintypeConcurrency
import TintypeImage

/// The C libraries that Tintype is built on, called directly from C, on a thread of the harness.
enum CodecLoops {
    /// The peer's name in the table.
    static func name(_ format: String) -> String { format == "jpeg" ? "libjpeg in C" : "libwebp in C" }

    /// Decodes the JPEG at `path` to a `divisor`-th into the same memory again and again.
    static func decoder(_ image: SubjectImage, _ path: String, divisor: Int = 1) throws -> Contestant {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        // Allocated and touched outside of the measurement, because the first use of a page causes a fault.
        let memory = Locked([UInt8](repeating: 0, count: image.width * image.height * 3))
        return Contestant(note: "the same library; the pixels' memory is used again") { count in
            try await Measurement.of(operations: count) {
                try await BlockingLane.shared.run {
                    try memory.withLock { pixels in
                        for _ in 0..<count { try self.decode(data, into: &pixels, image, divisor) }
                    }
                }
            }
        }
    }

    private static func decode(_ data: Data, into pixels: inout [UInt8], _ image: SubjectImage, _ divisor: Int) throws {
        var (width, height): (CInt, CInt) = (0, 0)
        let result = data.withUnsafeBytes { bytes in
            pixels.withUnsafeMutableBytes { pixels in
                guard
                    let from = bytes.assumingMemoryBound(to: UInt8.self).baseAddress,
                    let to = pixels.assumingMemoryBound(to: UInt8.self).baseAddress
                else { return CInt(-1) }
                return codec_loop_decode_jpeg(from, bytes.count, CInt(divisor), to, pixels.count, &width, &height)
            }
        }
        try Check.equal("libjpeg's result", result, 0)
        try Check.size(Int(width), Int(height), is: image.size(dividedBy: divisor))
    }

    /// Turns the JPEG at `path` through TurboJPEG, or only recodes it.
    static func transformer(turns: Bool, isProgressive: Bool, _ path: String) throws -> Contestant {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        return Contestant(note: "one call of tjTransform, with all metadata") { count in
            try await Measurement.of(operations: count) {
                try await BlockingLane.shared.run {
                    for _ in 0..<count {
                        let size = data.withUnsafeBytes { bytes in
                            bytes.assumingMemoryBound(to: UInt8.self).baseAddress.map {
                                codec_loop_transform_jpeg($0, bytes.count, turns ? 1 : 0, isProgressive ? 1 : 0)
                            }
                        }
                        guard let size, size > 0 else { throw Unavailable("nothing was transformed") }
                    }
                }
            }
        }
    }

    /// Encodes the image in the file at `path`, which is decoded once beforehand.
    static func encoder(_ job: Encoding.Job, _ path: String) throws -> Contestant {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let pixels = try ImageDecoder(data, registry: CoderRegistry()).decode().pixels
        let plane = pixels.layout.planes[0]
        guard pixels.layout.format == .rgb8 else { throw Unavailable("the image is not RGB") }
        let (width, height) = (CInt(pixels.layout.width), CInt(pixels.layout.height))
        let quality = CInt(Encoding.Job.quality)
        let isJPEG = job.format == "jpeg"
        return Contestant(note: "the same library") { count in
            try await Measurement.of(operations: count) {
                try await BlockingLane.shared.run {
                    for _ in 0..<count {
                        let bytes = pixels.withUnsafeBytes { rows in
                            guard let from = rows.assumingMemoryBound(to: UInt8.self).baseAddress else { return 0 }
                            return isJPEG
                                ? codec_loop_encode_jpeg(from, width, height, plane.bytesPerRow, quality)
                                : codec_loop_encode_webp(from, width, height, plane.bytesPerRow, quality)
                        }
                        guard bytes > 0 else { throw Unavailable("nothing was encoded") }
                    }
                }
            }
        }
    }
}
