import Foundation
import TintypeCoding
import TintypeImage
import TintypeTransforms

/// Tintype's side of thumbnails: scaled decode, resize and encode, on one decode lane.
enum TintypeThumbnails {
    /// Makes the thumbnail of the file at `path`, which is read once, before.
    static func contestant(_ job: Thumbnails.Job, _ path: String) throws -> Contestant {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let lanes = DecodeLanes(count: 1)
        let registry = CoderRegistry()
        return Contestant(note: "one decode lane") { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let image = try await lanes.run {
                        let image = try self.thumbnail(data, registry)
                        _ = try self.encode(image, job, registry)
                        return image
                    }
                    try Check.size(image.width, image.height, is: job.result)
                }
            }
        }
    }

    /// Writes what ``contestant(_:_:)`` makes to a file.
    static func write(_ job: Thumbnails.Job, _ original: String, to path: String) throws {
        let registry = CoderRegistry()
        let image = try self.thumbnail(Data(contentsOf: URL(fileURLWithPath: original)), registry)
        try self.encode(image, job, registry).write(to: URL(fileURLWithPath: path))
    }

    private static func encode(_ image: Image, _ job: Thumbnails.Job, _ registry: CoderRegistry) throws -> Data {
        let format: ImageFormat =
            switch job.format {
            case "jpeg": .jpeg
            case "webp": .webp
            default: .png
            }
        let options = EncodeOptions(quality: Thumbnails.Job.quality)
        return try registry.coder(encoding: format).encode(image, as: format, options: options)
    }

    private static func thumbnail(_ data: Data, _ registry: CoderRegistry) throws -> Image {
        let decoder = try ImageDecoder(data, registry: registry)
        let header = decoder.header
        let box = Resize.fit(width: Thumbnails.Job.side, height: Thumbnails.Job.side)
        let geometry = try ResizeGeometry(box, width: header.pixelWidth, height: header.pixelHeight)
        let sufficient = PixelSize(width: 2 * geometry.width, height: 2 * geometry.height)
        let decoded = try decoder.decodeStored(options: DecodeOptions(sufficientSize: sufficient))
        let scaled = geometry.scaled(
            byWidth: decoded.coveredWidth / Double(header.pixelWidth),
            height: decoded.coveredHeight / Double(header.pixelHeight)
        )
        return try decoded.image.resized(scaled, filter: box.filter).upright()
    }
}
