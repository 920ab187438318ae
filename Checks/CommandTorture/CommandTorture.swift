// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCoding
import TintypeImage
import TintypeTestSupport

/// Runs the command under every limit of descriptors, memory and threads that it may encounter.
///
/// Each run must end by itself, with 0, or with 1 and one line that gives the reason. Exits with 1 if a run does not.
/// Arguments choose from `descriptors`, `memory` (in kB), `threads` and `encodes` (of 100 megapixels, in kB).
@main
enum CommandTorture {
    static func main() {
        do {
            exit(try Sweep().run() ? 0 : 1)
        } catch {
            print("failed: \(error)")
            exit(1)
        }
    }
}

/// All runs.
struct Sweep {
    /// A limit, and the shell command that sets it before `exec "$@"`.
    struct Limit {
        let kind: String
        let value: Int
        let prelude: String
    }

    private let folder: TemporaryDirectory
    private let origin: NginxOrigin
    private let command: String
    private let subjects: [[String]]
    /// Encodes of 100 megapixels, for limits of their own.
    private let largeSubjects: [[String]]

    init() throws {
        let folder = try TemporaryDirectory(prefix: "tintype-limits")
        let image = try Fixtures.data("flower.jpg")
        let origin = try NginxOrigin(files: ["a.jpg": image])
        try folder.write(image, to: "file.jpg")
        try folder.write("\(origin.url("/a.jpg"))\n\(origin.url("/missing"))\n".utf8, to: "list")
        self.folder = folder
        self.origin = origin
        self.command =
            URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "tintype").path
        guard access(self.command, X_OK) == 0 else {
            throw TestSupportError("\(self.command) is missing; build it first.")
        }
        self.subjects = [
            ["load", origin.url("/a.jpg").absoluteString, "--reload", "-o", "out.png"],
            ["load", "file.jpg", "--resize", "300x300", "-o", "out.webp"],
            ["decode", "file.jpg", "--raw", "out.raw"],
            ["prefetch", "list"],
            ["cache", "stats"],
        ]
        // 12 kB, 10,000 x 10,000 pixels of one bit.
        try folder.write(Self.bits(side: 10_000), to: "bits.png")
        self.largeSubjects = ["out.gif", "out.png", "out.webp", "out.jpg"].map { ["load", "bits.png", "-o", $0] }
        chmod(folder.path, 0o777)
    }

    /// A PNG of white pixels of one bit.
    private static func bits(side: Int) throws -> Data {
        let pixels = try PixelBuffer(PixelLayout(format: .gray8, width: side, height: side)) { bytes in
            for offset in 0..<bytes.byteCount { bytes.storeBytes(of: 255, toByteOffset: offset, as: UInt8.self) }
        }
        return try PNGCoder().encode(Image(pixels: pixels), as: .png, options: EncodeOptions(pngLevel: 9))
    }

    func run() throws -> Bool {
        var limits = (4...40).map { Limit(kind: "descriptors", value: $0, prelude: "ulimit -n \($0)") }
        limits += stride(from: 40_000, through: 440_000, by: 5_000).map {
            Limit(kind: "memory", value: $0, prelude: "ulimit -v \($0)")
        }
        if geteuid() == 0, access("/usr/bin/setpriv", X_OK) == 0 {
            // Root may start any number of threads, so these runs use otherwise idle users.
            limits += (1...40).map { count in
                let user = 700_000_000 + Int(getpid()) * 100 + count
                let become = "setpriv --reuid=\(user) --regid=\(user) --clear-groups prlimit --nproc=\(count)"
                return Limit(kind: "threads", value: count, prelude: "rm -rf cache out.*; set -- \(become) \"$@\"")
            }
        } else {
            print("The limit of threads is left out: it takes root and setpriv.")
        }
        let kinds = CommandLine.arguments.dropFirst()
        if !kinds.isEmpty { limits.removeAll { !kinds.contains($0.kind) } }
        var counts: [String: (good: Int, told: Int, unlinked: Int, bad: Int)] = [:]
        let runs = limits.flatMap { limit in self.subjects.map { (limit, $0) } }
        let largeRuns = [300_000, 500_000, 1_000_000, 2_000_000, 4_000_000].flatMap { size in
            self.largeSubjects.map { (Limit(kind: "encodes", value: size, prelude: "ulimit -v \(size)"), $0) }
        }
        for (limit, subject) in runs + largeRuns.filter({ kinds.isEmpty || kinds.contains($0.0.kind) }) {
            switch try self.outcome(of: subject, under: limit) {
            case .good: counts[limit.kind, default: (0, 0, 0, 0)].good += 1
            case .told: counts[limit.kind, default: (0, 0, 0, 0)].told += 1
            case .unlinked: counts[limit.kind, default: (0, 0, 0, 0)].unlinked += 1
            case .bad(let reason):
                counts[limit.kind, default: (0, 0, 0, 0)].bad += 1
                print("\(limit.kind) \(limit.value), \(subject.joined(separator: " ")): \(reason)")
                // It is seen when it happens, also in a file.
                fflush(nil)
            }
        }
        for (kind, count) in counts.sorted(by: { $0.key < $1.key }) {
            print(
                "\(kind): \(count.good) runs ended well, \(count.told) said what they lack, "
                    + "\(count.unlinked) could not load their libraries, \(count.bad) failed"
            )
        }
        return counts.values.allSatisfy { $0.bad == 0 }
    }

    private enum Outcome {
        case good
        case told
        /// The dynamic linker ended it before it began.
        case unlinked
        case bad(String)
    }

    private func outcome(of subject: [String], under limit: Limit) throws -> Outcome {
        let errors = self.folder.path(of: "errors")
        let script = "cd \"$0\" && exec </dev/null >/dev/null 2>errors && \(limit.prelude) && exec \"$@\""
        // In its low-memory mode, libwebp takes a minute for 100 megapixels, and several minutes on a busy machine.
        let seconds = limit.kind == "encodes" ? "600" : "60"
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/timeout")
        process.arguments =
            ["--kill-after=1", seconds, "/bin/bash", "-c", "umask 0; \(script)", self.folder.path, self.command]
            + subject
        process.environment = [
            "HOME": self.folder.path, "XDG_CACHE_HOME": self.folder.path(of: "cache"), "PATH": "/usr/bin:/bin",
            "SWIFT_BACKTRACE": "enable=no",
        ]
        try process.run()
        process.waitUntilExit()
        let text = String(decoding: try Data(contentsOf: URL(filePath: errors)), as: UTF8.self)
        let lines = text.split(separator: "\n")
        guard process.terminationReason == .exit else { return .bad("signal \(process.terminationStatus)") }
        switch process.terminationStatus {
        case 0: return lines.count <= 1 ? .good : .bad("exit 0 and \(lines.count) lines: \(text)")
        case 1:
            // One address in the list does not exist, and the command reports it too.
            let most = subject[0] == "prefetch" ? 2 : 1
            let isTold = (1...most).contains(lines.count) && lines.allSatisfy { $0.hasPrefix("tintype: ") }
            return isTold ? .told : .bad("exit 1 and \(lines.count) lines: \(text)")
        case 127 where text.contains("error while loading shared libraries"): return .unlinked
        case 124, 137: return .bad("it hung")
        case let code: return .bad("exit \(code): \(text)")
        }
    }
}
