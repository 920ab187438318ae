// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCoding
import TintypeCodingSamples
import TintypeImage

/// The ways to decode one file.
enum PNGWays {
    /// The result: pixels, or an error code.
    enum Result: Equatable {
        case pixels(width: Int, height: Int, samples: [UInt8])
        case failed(String)
    }

    static func whole(_ data: Data, _ options: DecodeOptions) -> Result {
        self.result {
            try ImageDecoder(data, registry: SampleFiles.registry, limits: options.limits)
                .decodeStored(options: options).image.pixels
        }
    }

    /// Returns `nil` for an image that cannot provide rows.
    static func rows(_ data: Data, _ options: DecodeOptions) -> Result? {
        var isLent = true
        let result = self.result {
            let decoder = try ImageDecoder(data, registry: SampleFiles.registry, limits: options.limits)
            let pixels = try decoder.encoded.withRows(options: options) { source, _, _ in
                let bytesPerRow = source.layout.planes[0].bytesPerRow
                return try PixelBuffer(
                    source.layout,
                    fillingUnsafely: { target in
                        for row in 0..<source.layout.height {
                            let start = row * bytesPerRow
                            try source.readRow(
                                into: UnsafeMutableRawBufferPointer(rebasing: target[start..<start + bytesPerRow])
                            )
                        }
                    }
                )
            }
            isLent = pixels != nil
            return pixels
        }
        return isLent ? result : nil
    }

    static func pieces(_ data: Data, _ options: DecodeOptions, size: Int) -> Result {
        self.result {
            guard let decoder = try PNGCoder().makeIncrementalDecoder(for: .png, options: options) else { return nil }
            for start in stride(from: 0, to: data.count, by: size) {
                try decoder.append(data[start..<min(start + size, data.count)])
                if start / size % 50 == 0 { _ = try decoder.preview() }
            }
            return try decoder.finish().image.pixels
        }
    }

    private static func result(_ body: () throws -> PixelBuffer?) -> Result {
        do {
            guard let pixels = try body() else { return .failed("nothing") }
            return .pixels(width: pixels.width, height: pixels.height, samples: PNGReference.samples(of: pixels))
        } catch let error as CodingError {
            return .failed(error.code.description)
        } catch {
            return .failed("\(error)")
        }
    }
}
