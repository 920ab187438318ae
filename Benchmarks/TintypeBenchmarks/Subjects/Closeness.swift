// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Measures how close each side's thumbnail is to the best possible one of the original.
///
/// The best one is Pillow's full decode, resized with its Lanczos3 in floating point without rounding. `peer.py`
/// computes two measures: SSIM of the luma (11-tap Gaussian window), and SSIMULACRA2 of the colours, compared with the
/// best one rounded to bytes.
struct Closeness {
    private let job: Thumbnails.Job
    private let original: String
    private let session: Session

    init(_ job: Thumbnails.Job, _ original: String, _ session: Session) {
        self.job = job
        self.original = original
        self.session = session
    }

    /// A row for each peer and measure.
    func rows(named name: String, _ what: String) async throws -> [Row] {
        let ours = await self.result { try await TintypeThumbnails.write(self.job, self.original, to: $0) }
        var rows: [Row] = []
        for (peer, job) in [(Thumbnails.rival, "vips-thumbnail"), ("Pillow", "pillow-thumbnail")] {
            let theirs = await self.result { try await self.write(job, to: $0) }
            let notes = ["\(Contest.ours): \(ours.note)", "\(peer): \(theirs.note)"]
            for (measure, figure) in [("SSIM", \Result.similarity), ("SSIMULACRA2", \Result.score)] {
                let bar = peer == Thumbnails.rival && measure == "SSIM" ? theirs[keyPath: figure] : nil
                rows.append(
                    Row(
                        name: name,
                        metric: .plain(what, measure, lowerIsBetter: false),
                        peer: peer,
                        ours: ours[keyPath: figure],
                        theirs: theirs[keyPath: figure],
                        bars: bar.map { [.atLeast($0.median)] } ?? [],
                        notes: notes
                    )
                )
            }
        }
        return rows
    }

    /// The quality of one side's thumbnail.
    private struct Result {
        /// SSIM, or `nil` if there is no thumbnail.
        var similarity: Summary?
        /// SSIMULACRA2, or `nil` if there is no thumbnail or the measure is not installed.
        var score: Summary?
        var note: String
    }

    private func write(_ job: String, to path: String) async throws {
        let worker = try await self.session.python()
        _ = try await worker.ask(PythonWorker.Request(do: "load", path: self.original))
        _ = try await worker.ask(
            PythonWorker.Request(do: "write", job: job, path: self.original, options: self.job.options, output: path)
        )
    }

    /// Has `write` make the file and compares it.
    private func result(_ write: (_ path: String) async throws -> Void) async -> Result {
        let path = self.session.folders.temporary.appendingPathComponent("thumbnail-\(UUID()).\(self.job.format)").path
        do {
            try await write(path)
            let answer = try await self.session.python().ask(
                PythonWorker.Request(do: "compare", original: self.original, candidate: path)
            )
            guard let ssim = answer.ssim, let width = answer.width, let height = answer.height else {
                throw Unavailable("nothing was compared")
            }
            try Check.size(width, height, is: self.job.result)
            let bytes = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
            let note = "\(self.job.format), \(bytes) bytes, PSNR \(Figure.text(answer.psnr ?? 0)) dB"
            return Result(similarity: Summary([ssim]), score: answer.score.map { Summary([$0]) }, note: note)
        } catch {
            return Result(note: "\(error)")
        }
    }
}
