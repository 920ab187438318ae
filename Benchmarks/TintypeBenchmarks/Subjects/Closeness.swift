import Foundation

/// How close a thumbnail of each side is to the best that can be made of the original.
///
/// The best is Pillow's full decode and its Lanczos3 in floating point, never rounded; the
/// measure is SSIM of the luma (11-tap Gaussian window), computed in `peer.py`. The notes have the score of SSIMULACRA2
/// as well, of the colours, against the same rounded to bytes.
struct Closeness {
    private let job: Thumbnails.Job
    private let original: String
    private let session: Session

    init(_ job: Thumbnails.Job, _ original: String, _ session: Session) {
        self.job = job
        self.original = original
        self.session = session
    }

    /// A row for each peer.
    func rows(named name: String, _ what: String) async throws -> [Row] {
        let metric = Metric.plain(what, "SSIM", lowerIsBetter: false)
        let ours = await self.result { try await TintypeThumbnails.write(self.job, self.original, to: $0) }
        var rows: [Row] = []
        for (peer, job) in [(Thumbnails.rival, "vips-thumbnail"), ("Pillow", "pillow-thumbnail")] {
            let theirs = await self.result { try await self.write(job, to: $0) }
            rows.append(
                Row(
                    name: name,
                    metric: metric,
                    peer: peer,
                    ours: ours.figure,
                    theirs: theirs.figure,
                    bars: peer == Thumbnails.rival ? theirs.figure.map { [.atLeast($0.median)] } ?? [] : [],
                    notes: ["\(Contest.ours): \(ours.note)", "\(peer): \(theirs.note)"]
                )
            )
        }
        return rows
    }

    private func write(_ job: String, to path: String) async throws {
        let worker = try await self.session.python()
        _ = try await worker.ask(PythonWorker.Request(do: "load", path: self.original))
        _ = try await worker.ask(
            PythonWorker.Request(do: "write", job: job, path: self.original, options: self.job.options, output: path)
        )
    }

    /// Has `write` make the file and compares it.
    private func result(_ write: (_ path: String) async throws -> Void) async -> (figure: Summary?, note: String) {
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
            let score = answer.score.map { ", SSIMULACRA2 \(Figure.text($0))" } ?? ""
            let psnr = "PSNR \(Figure.text(answer.psnr ?? 0)) dB"
            return (Summary([ssim]), "\(self.job.format), \(bytes) bytes, \(psnr)\(score)")
        } catch {
            return (nil, "\(error)")
        }
    }
}
