// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCoding
import TintypeImage
import TintypeRendering

/// Tintype's preview decoder, fed as a network would.
enum TintypePreviews {
    /// Decodes the file at `path` in so many pieces of equal size, with a preview wherever there is something new.
    static func contestant(_ image: SubjectImage, _ path: String, pieces: Int) throws -> Contestant {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let lanes = DecodeLanes(count: 1)
        let registry = CoderRegistry()
        return Contestant(counts: 1...1_000, note: "\(pieces) pieces") { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let decoder = PreviewDecoder(registry: registry, lanes: lanes)
                    var last: Image?
                    for piece in 0..<pieces {
                        let range = data.count * piece / pieces..<data.count * (piece + 1) / pieces
                        if let preview = await decoder.append(data.subdata(in: range)) { last = preview }
                    }
                    try Check.size(last?.width ?? 0, last?.height ?? 0, is: (image.width, image.height))
                }
            }
        }
    }
}
