// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCoding
import TintypeImage

/// Tintype's side of decoding: sniffing, limits, header and pixels, on one decode lane.
enum TintypeDecoding {
    /// Decodes the file at `path` to 1/`divisor` of its size.
    ///
    /// The file is read once beforehand. With `shortcuts`, a JPEG coder with these shortcuts is the only coder.
    static func contestant(
        _ picture: SubjectImage,
        _ path: String,
        divisor: Int = 1,
        shortcuts: JPEGCoder.Shortcuts? = nil
    ) throws -> Contestant {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let lanes = DecodeLanes(count: 1)
        let registry = shortcuts.map { CoderRegistry(coders: [JPEGCoder(shortcuts: $0)]) } ?? CoderRegistry()
        var options = DecodeOptions()
        if divisor > 1 {
            options.sufficientSize = PixelSize(width: picture.width / divisor, height: picture.height / divisor)
        }
        return Contestant(note: "one decode lane") { [options] count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let image = try await lanes.run {
                        try ImageDecoder(data, registry: registry).decodeStored(options: options).image
                    }
                    try Check.size(image.width, image.height, is: picture.size(dividedBy: divisor))
                }
            }
        }
    }
}
