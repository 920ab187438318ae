// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCoding
import TintypeImage
import TintypeRendering

/// Tintype's side of animations: a frame source without a cache, on one decode lane.
enum TintypeAnimations {
    /// Opens the file at `path`, which is read once beforehand, and requests every frame in turn.
    static func contestant(_ job: Animations.Job, _ path: String) throws -> Contestant {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let lanes = DecodeLanes(count: 1)
        let registry = CoderRegistry()
        return Contestant(note: "FrameSource, one decode lane") { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let decoder = try ImageDecoder(data, registry: registry)
                    let source = FrameSource(decoder, lanes: lanes, pool: FramePool(byteLimit: 0))
                    try Check.equal("the number of frames", source.frameCount, job.frames)
                    for index in 0..<source.frameCount {
                        let image = try await source.frame(at: index)
                        try Check.size(image.width, image.height, is: (job.width, job.height))
                    }
                }
            }
        }
    }
}
