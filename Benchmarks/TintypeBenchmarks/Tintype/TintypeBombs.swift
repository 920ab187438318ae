// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCoding
import TintypeImage

/// Tintype's side of bombs: the decoder with its default limits, in a child process.
enum TintypeBombs {
    /// The file that contains a valid image of one pixel besides data that expands.
    ///
    /// The decoder may decode it.
    private static let harmless = "png_decompression_dos.png"

    /// Meets the file at `path`.
    static func contestant(_ path: String) throws -> Contestant {
        let isHarmless = URL(fileURLWithPath: path).lastPathComponent == Self.harmless
        let note = isHarmless ? "refused, or decoded to its one pixel" : "the error is checked; reading is included"
        return try ChildJob.ours(["bomb", path], note: note) { answer in
            let isRefused = answer.width == 0 && answer.height == 0
            let isDecoded = isHarmless && answer.width == 1 && answer.height == 1
            guard isRefused || isDecoded else { throw Unavailable("the bomb was decoded") }
        }
    }

    /// Performs the child's job, whose size of 0x0 means that the decoder rejected the file.
    static func meet(_ path: String) async throws {
        try await ChildJob.measure(isTimed: true) {
            let data = try Data(contentsOf: URL(fileURLWithPath: path))
            do {
                let image = try ImageDecoder(data, registry: CoderRegistry()).decode()
                return (image.width, image.height)
            } catch is CodingError {
                return (0, 0)
            }
        }
    }
}
