// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCoding

/// Tintype's side of transforms without loss: on one decode lane.
enum TintypeLossless {
    static func contestant(_ job: Lossless.Job, _ path: String) throws -> Contestant {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let lanes = DecodeLanes(count: 1)
        return Contestant(note: "one decode lane") { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let bytes = try await lanes.run { try job.transform.apply(to: data).data.count }
                    guard bytes > 0 else { throw Unavailable("nothing was transformed") }
                }
            }
        }
    }

    /// Returns the size of the result in bytes, without metadata.
    static func size(_ job: Lossless.Job, _ path: String) throws -> Int {
        var transform = job.transform
        transform.metadata = .none
        transform.keepsColorProfile = false
        return try transform.apply(to: Data(contentsOf: URL(fileURLWithPath: path))).data.count
    }
}
