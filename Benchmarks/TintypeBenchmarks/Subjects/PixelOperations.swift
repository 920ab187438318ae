// SPDX-License-Identifier: Apache-2.0

import TintypeImage
import TintypeTransforms

/// Filters, adjustments and compositing of a decoded image of 12 megapixels, on one thread.
///
/// libvips ignores alpha when it blurs. It sharpens the lightness of an image, which it converts to CIELAB and back.
/// Pillow approximates a Gaussian by three boxes. All sides use the saturation of CSS, except Pillow, which has other
/// weights.
enum PixelOperations {
    /// One operation.
    struct Job: Sendable {
        let name: String
        /// The operation's name in the Python worker.
        let operation: String
        /// Whether the image has alpha, which increases from clear at the top to opaque at the bottom.
        let hasAlpha: Bool
        /// Makes the transformer for an image.
        let transformer: @Sendable (Image) throws -> any ImageTransformer
        /// The required speed in processor time, as a multiple of the faster peer's speed.
        let bar: Double

        static let image = SubjectImage.camera

        var options: PythonWorker.JobOptions {
            PythonWorker.JobOptions(operation: self.operation, hasAlpha: self.hasAlpha)
        }
    }

    private static let jobs = [false, true].flatMap { hasAlpha in
        let operations: [(String, Double, @Sendable (Image) throws -> any ImageTransformer)] = [
            ("blur-3", 2, { _ in Blur.gaussian(sigma: 3) }),
            ("blur-15", 2, { _ in Blur.gaussian(sigma: 15) }),
            ("sharpen", 1, { _ in Sharpen(sigma: 2, channels: .all) }),
            ("brightness", 1, { _ in ColorAdjustment.brightness(1.2) }),
            ("saturation", 1, { _ in ColorAdjustment.saturation(1.2) }),
            ("composite", 1, { Overlay(try TintypePixelOperations.drawn(on: $0)) }),
        ]
        return operations.map { operation, bar, transformer in
            Job(
                name: "\(operation)-\(hasAlpha ? "rgba" : "rgb")-12MP",
                operation: operation,
                hasAlpha: hasAlpha,
                transformer: transformer,
                bar: bar
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
        let path = try await Job.image.path(session)
        // Without premultiplied alpha, the colours of invisible pixels bleed into visible ones.
        let premultiplied = job.hasAlpha && job.operation.hasPrefix("blur") ? "\(job.operation)-premultiplied" : nil
        return try await Contest.ofOperation(
            job.name,
            peers: [.init("Pillow", "pillow-pixels", job.options), .init("pyvips", "vips-pixels", job.options)]
                + (premultiplied.map {
                    let options = PythonWorker.JobOptions(operation: $0, hasAlpha: job.hasAlpha)
                    return [.init("pyvips premultiplied", "vips-pixels", options)]
                } ?? []),
            path: path,
            bar: job.bar,
            session,
            check: { try Check.size($0, $1, is: (Job.image.width, Job.image.height)) },
            ours: { try TintypePixelOperations.contestant(job, path) }
        )
    }
}
