import Foundation
import TintypeCoding
import TintypeImage

/// Tintype's side of decoding: sniffing, limits, header and pixels, on one decode lane.
enum TintypeDecoding {
    /// Decodes the file at `path`, which is read once, before.
    static func contestant(_ picture: Picture, _ path: String) throws -> Contestant {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let lanes = DecodeLanes(count: 1)
        let registry = CoderRegistry()
        return Contestant(note: "one decode lane") { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let image = try await lanes.run { try ImageDecoder(data, registry: registry).decode() }
                    try Check.size(image.width, image.height, is: (picture.width, picture.height))
                }
            }
        }
    }
}
