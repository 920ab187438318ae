// SPDX-License-Identifier: Apache-2.0

import Foundation

/// libjpeg-turbo's own benchmark: decodes one JPEG again and again in one process.
enum TurboBench {
    static let name = "tjbench"

    /// Decodes the file at `path` for about `seconds`.
    ///
    /// The program reports the wall time of an image.
    ///
    /// It decodes one image beforehand, because the first decode is slower: later ones find their memory pages in
    /// place. The processor time is the wall time, multiplied by the whole process's ratio of processor time to wall
    /// time.
    static func contestant(_ image: SubjectImage, _ path: String, seconds: Double) async throws -> Contestant {
        let tool = "/usr/bin/tjbench"
        guard FileManager.default.isExecutableFile(atPath: tool) else {
            throw Unavailable("there is no \(tool) (apt install libjpeg-turbo-progs)")
        }
        let command = [tool, path, "-rgb", "-nowrite", "-warmup", "0.01", "-benchtime", "\(seconds)"]
        return Contestant(counts: 1...1, note: "its own count of megapixels; the pixels' memory is used again") { _ in
            let wall = Stopwatch(.monotonic)
            let (exit, output) = try await ChildProcess.run(command)
            let share = exit.cpuSeconds / wall.seconds
            try Check.equal("tjbench's exit status", exit.status, 0)
            guard
                let match = output.firstMatch(of: /Throughput:\s+([0-9.]+) Megapixels/),
                let rate = Double(match.1), rate > 0
            else { throw Unavailable("tjbench named no throughput") }
            guard output.contains("Image size: \(image.width) x \(image.height)") else {
                throw Unavailable("tjbench decoded another size")
            }
            let seconds = image.megapixels / rate
            return Measurement(wallSeconds: seconds, cpuSeconds: seconds * min(1, share), operations: 1)
        }
    }
}
