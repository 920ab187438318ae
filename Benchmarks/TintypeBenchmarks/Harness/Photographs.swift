// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Real images to work on, from the first place that has them.
struct Photographs: Sendable {
    private let folders: Folders
    private let corpus: URL?

    init(folders: Folders) {
        self.folders = folders
        let checkout = folders.benchmarks.deletingLastPathComponent()
        let named = ProcessInfo.processInfo.environment["TINTYPE_CORPUS"].map { URL(fileURLWithPath: $0) }
        let corpus = named ?? checkout.deletingLastPathComponent().appendingPathComponent("shared/corpus")
        let manifest = corpus.appendingPathComponent("manifest.tsv").path
        self.corpus = FileManager.default.fileExists(atPath: manifest) ? corpus : nil
    }

    /// The place that the images come from, for the report.
    var origin: String { self.corpus?.path ?? "generated: there is no corpus" }

    /// The folder of recorded cache requests, if there is one.
    var traces: URL? {
        guard let folder = self.corpus?.appendingPathComponent("traces"),
            FileManager.default.fileExists(atPath: folder.appendingPathComponent("index.tsv").path)
        else { return nil }
        return folder
    }

    /// The corpus' file `name`, or a generated stand-in of the same format and size.
    func path(_ name: String, width: Int, height: Int, _ session: Session) async throws -> String {
        if let corpus {
            let path = corpus.appendingPathComponent(name).path
            if FileManager.default.fileExists(atPath: path) { return path }
        }
        let suffix = URL(fileURLWithPath: name).pathExtension
        let path = self.folders.results.appendingPathComponent("generated-\(width)x\(height).\(suffix)").path
        return try await self.made(path, session) {
            PythonWorker.Request(do: "make-photograph", path: path, width: width, height: height)
        }
    }

    /// The file `name` without profile and other metadata, so that no side converts colours or turns it.
    func plain(_ name: String, width: Int, height: Int, _ session: Session) async throws -> String {
        let path = self.folders.results.appendingPathComponent("plain-\(URL(fileURLWithPath: name).lastPathComponent)")
            .path
        return try await self.made(path, session) {
            let original = try await self.path(name, width: width, height: height, session)
            return PythonWorker.Request(do: "make-plain", path: path, original: original)
        }
    }

    /// A photograph of about 50 kB, 800 pixels wide.
    func small(_ session: Session) async throws -> String {
        let path = self.folders.results.appendingPathComponent("photograph-50kB.jpg").path
        return try await self.made(path, session) {
            let original = try await self.path("photos/Canon_EOS_450D.jpg", width: 4272, height: 2848, session)
            return PythonWorker.Request(do: "make-near", path: path, original: original, bytes: 50_000)
        }
    }

    /// A photograph whose longer side has 2,040 pixels, in the format of `suffix`.
    func source(_ image: SubjectImage, _ suffix: String, _ session: Session) async throws -> String {
        let stem = URL(fileURLWithPath: image.file).deletingPathExtension().lastPathComponent
        let path = self.folders.results.appendingPathComponent("source-\(stem).\(suffix)").path
        return try await self.made(path, session) {
            let original = try await self.path(image.file, width: image.width, height: image.height, session)
            return PythonWorker.Request(do: "make-source", path: path, original: original, width: 2_040)
        }
    }

    /// A baseline JPEG of 36 megapixels, tiled from a photograph.
    func vast(_ session: Session) async throws -> String {
        let path = self.folders.results.appendingPathComponent("photograph-7360x4912.jpg").path
        return try await self.made(path, session) {
            let original = try await self.path("photos/Canon_PowerShot_A85.jpg", width: 1704, height: 2272, session)
            return PythonWorker.Request(do: "make-large", path: path, original: original, width: 7_360, height: 4_912)
        }
    }

    /// The camera's 12 MP as a progressive JPEG, 4:2:0.
    func progressive(_ session: Session) async throws -> String {
        let path = self.folders.results.appendingPathComponent("photograph-4272x2848-progressive.jpg").path
        return try await self.made(path, session) {
            let original = try await self.path("photos/Canon_EOS_450D.jpg", width: 4272, height: 2848, session)
            return PythonWorker.Request(
                do: "make-large",
                path: path,
                original: original,
                width: 4272,
                height: 2848,
                progressive: true
            )
        }
    }

    /// A baseline JPEG with a restart marker behind each row of blocks, and without metadata.
    func restarting(_ image: SubjectImage, _ session: Session) async throws -> String {
        let original = try await self.path(image.file, width: image.width, height: image.height, session)
        let name = "restarting-" + URL(fileURLWithPath: original).lastPathComponent
        let path = self.folders.results.appendingPathComponent(name).path
        if !FileManager.default.fileExists(atPath: path) {
            try await JPEGTran.write(["-restart", "1", "-copy", "none"], original, to: path)
        }
        return path
    }

    /// A baseline JPEG of exactly 100 megapixels, tiled from a photograph.
    func enormous(_ session: Session) async throws -> String {
        let path = self.folders.results.appendingPathComponent("photograph-12500x8000.jpg").path
        return try await self.made(path, session) {
            // Full of detail, so that the file has the usual weight: about 20 MB.
            let original = try await self.path("photos/Canon_PowerShot_A85.jpg", width: 1704, height: 2272, session)
            return PythonWorker.Request(do: "make-large", path: path, original: original, width: 12_500, height: 8_000)
        }
    }

    /// Returns the path of the same image as a progressive JPEG.
    func enormousProgressive(_ session: Session) async throws -> String {
        let path = self.folders.results.appendingPathComponent("photograph-12500x8000-progressive.jpg").path
        return try await self.made(path, session) {
            let original = try await self.path("photos/Canon_PowerShot_A85.jpg", width: 1704, height: 2272, session)
            return PythonWorker.Request(
                do: "make-large",
                path: path,
                original: original,
                width: 12_500,
                height: 8_000,
                progressive: true
            )
        }
    }

    /// A 24-bit PNG of 96 megapixels, tiled from a diagram so that the file stays small.
    func enormousPNG(_ session: Session) async throws -> String {
        let path = self.folders.results.appendingPathComponent("diagram-12000x8000.png").path
        return try await self.made(path, session) {
            let name = "photos/Exoplanet_Phase_Curve__Diagram_.png"
            let original = try await self.path(name, width: 3840, height: 2160, session)
            return PythonWorker.Request(do: "make-large", path: path, original: original, width: 12_000, height: 8_000)
        }
    }

    /// A PNG of 4,000 by 3,000 pixels of a photograph that becomes transparent from its middle outwards.
    func translucent(_ session: Session) async throws -> String {
        let path = self.folders.results.appendingPathComponent("photograph-rgba-4000x3000.png").path
        return try await self.made(path, session) {
            let original = try await self.path("photos/Canon_EOS_450D.jpg", width: 4272, height: 2848, session)
            return PythonWorker.Request(
                do: "make-translucent",
                path: path,
                original: original,
                width: 4_000,
                height: 3_000
            )
        }
    }

    /// A GIF of 24 frames of 640x480 that differ all over.
    func animation(_ session: Session) async throws -> String {
        let path = self.folders.results.appendingPathComponent("animation-640x480.gif").path
        return try await self.made(path, session) {
            let original = try await self.path("photos/Canon_EOS_450D.jpg", width: 4272, height: 2848, session)
            return PythonWorker.Request(
                do: "make-animation",
                path: path,
                count: 24,
                original: original,
                width: 640,
                height: 480
            )
        }
    }

    /// Returns the path of the corpus's file `name`, which has no substitute.
    func exactly(_ name: String) throws -> String {
        guard let path = self.corpus?.appendingPathComponent(name).path, FileManager.default.fileExists(atPath: path)
        else { throw Unavailable("the corpus has no \(name)") }
        return path
    }

    /// Has the Python worker make `path` unless an earlier run did.
    private func made(
        _ path: String,
        _ session: Session,
        _ request: () async throws -> PythonWorker.Request
    ) async throws -> String {
        if FileManager.default.fileExists(atPath: path) { return path }
        let request = try await request()
        Console.note("making \(URL(fileURLWithPath: path).lastPathComponent) (once)")
        _ = try await session.python().ask(request)
        return path
    }
}
