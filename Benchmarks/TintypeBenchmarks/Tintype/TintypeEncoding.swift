// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCoding
import TintypeImage

/// Tintype's side of encoding: the coder of the registry, on one decode lane.
enum TintypeEncoding {
    /// Encodes the image in the file at `path`, which is decoded once beforehand.
    static func contestant(_ job: Encoding.Job, _ path: String) throws -> Contestant {
        let image = try self.image(path)
        let format = self.format(job)
        let options = self.options
        let coder = try CoderRegistry().coder(encoding: format)
        let lanes = DecodeLanes(count: 1)
        return Contestant(note: "one decode lane") { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let bytes = try await lanes.run { try coder.encode(image, as: format, options: options).count }
                    guard bytes > 0 else { throw Unavailable("nothing was encoded") }
                }
            }
        }
    }

    /// How many bytes ``contestant(_:_:)`` makes.
    static func size(_ job: Encoding.Job, _ path: String) async throws -> Int {
        let format = self.format(job)
        return try CoderRegistry().coder(encoding: format)
            .encode(self.image(path), as: format, options: self.options).count
    }

    /// Encodes the image at `path` as PNG for each line of standard input, at the level that the line names, and prints the
    /// processor time, the bytes and the pixels: one side of `peers/png_curve.py`.
    static func encodeLevels(_ path: String) throws {
        let image = try self.image(path)
        while let line = readLine() {
            guard let level = Int(line) else { throw Unavailable("\(line) is no level") }
            let time = Stopwatch(.process)
            let count = try PNGCoder().encode(image, as: .png, options: EncodeOptions(pngLevel: level)).count
            Console.show("\(time.seconds) \(count) \(image.pixels.width * image.pixels.height)")
        }
    }

    private static var options: EncodeOptions {
        EncodeOptions(quality: Encoding.Job.quality, chromaSubsampling: .quarter, pngLevel: Encoding.Job.level)
    }

    private static func image(_ path: String) throws -> Image {
        try ImageDecoder(Data(contentsOf: URL(fileURLWithPath: path)), registry: CoderRegistry()).decode()
    }

    private static func format(_ job: Encoding.Job) -> ImageFormat {
        switch job.format {
        case "jpeg": .jpeg
        case "webp": .webp
        default: .png
        }
    }
}
