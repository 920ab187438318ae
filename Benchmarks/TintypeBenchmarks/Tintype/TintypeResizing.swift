// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCoding
import TintypeImage
import TintypeTransforms

/// Tintype's side of resizing: pixels in memory, on one decode lane.
enum TintypeResizing {
    /// Resizes the image in the file at `path`, which is decoded once beforehand.
    static func contestant(_ job: Resizing.Job, _ path: String) throws -> Contestant {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let image = try ImageDecoder(data, registry: CoderRegistry()).decode()
        try Check.size(image.width, image.height, is: Resizing.size)
        guard image.hasAlpha else { throw Unavailable("the image has no alpha") }
        let resize = Resize(.width(job.side), light: job.isLinear ? .linear : .sRGB)
        let lanes = DecodeLanes(count: 1)
        return Contestant(note: "one decode lane") { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let result = try await lanes.run { try image.resized(resize) }
                    try Check.size(result.width, result.height, is: job.result)
                }
            }
        }
    }
}
