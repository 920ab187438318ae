// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeImage
import TintypeTransforms

/// Pixels moved within memory: cut, mirrored, turned, on one thread.
enum Geometry {
    /// One operation on an image of 12 megapixels.
    struct Job: Sendable {
        let name: String
        let transformer: any ImageTransformer
        /// The operation's name in the Python worker.
        let operation: String
        /// Whether the image has alpha, which increases from clear at the top to opaque at the bottom.
        let hasAlpha: Bool
        /// The size of the result.
        ///
        /// The peers' sizes may differ by a pixel if the angle is not a quarter turn.
        let size: (width: Int, height: Int)

        var options: PythonWorker.JobOptions {
            PythonWorker.JobOptions(operation: self.operation, hasAlpha: self.hasAlpha)
        }
    }

    private static let image = SubjectImage.camera
    private static let turned = (width: 4919, height: 3973)

    private static let jobs = [false, true].flatMap { hasAlpha in
        let (width, height) = (image.width, image.height)
        // Without alpha, the area outside the image is black, as in Pillow.
        func turn(_ interpolation: Rotate.Interpolation) -> Rotate {
            Rotate(degrees: 17, background: hasAlpha ? .clear : .black, interpolation: interpolation)
        }
        let operations: [(String, any ImageTransformer, (Int, Int))] = [
            ("crop", Crop.rectangle(x: 501, y: 301, width: 3001, height: 2001), (3001, 2001)),
            ("flip-horizontal", Flip.horizontal, (width, height)),
            ("flip-vertical", Flip.vertical, (width, height)),
            ("rotate-90", Rotate(degrees: 90), (height, width)),
            ("rotate-17-nearest", turn(.nearest), turned),
            ("rotate-17-bilinear", turn(.bilinear), turned),
            ("rotate-17-bicubic", turn(.bicubic), turned),
        ]
        return operations.map { name, transformer, size in
            Job(
                name: "\(name)-\(hasAlpha ? "rgba" : "rgb")-12MP",
                transformer: transformer,
                operation: name,
                hasAlpha: hasAlpha,
                size: size
            )
        }
    }

    static let benchmarks = jobs.map { job in
        Benchmark(name: job.name, summary: "\(job.operation) of a decoded image, against Pillow and pyvips") {
            session in
            try await run(job, session)
        }
    }

    private static func run(_ job: Job, _ session: Session) async throws -> [Row] {
        let path = try await self.image.path(session)
        return try await Contest.ofOperation(
            job.name,
            peers: [.init("Pillow", "pillow-geometry", job.options), .init("pyvips", "vips-geometry", job.options)],
            path: path,
            bar: 1,
            session,
            check: { width, height in
                guard abs(width - job.size.width) < 3, abs(height - job.size.height) < 3 else {
                    throw Unavailable("the result has \(width)x\(height) pixels")
                }
            },
            ours: { try TintypeGeometry.contestant(job, path) }
        )
    }
}
