// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The shared parts of one run's benchmarks: plan, folders, origin, Python peers.
///
/// The session creates each part once, when the first row needs it. If that fails, it remembers the reason, and every
/// row that needs the part reports it.
actor Session {
    nonisolated let plan: Plan
    nonisolated let folders: Folders
    nonisolated let photographs: Photographs

    private var worker: Task<PythonWorker, any Error>?
    private var origin: Task<NginxOrigin, any Error>?

    init(plan: Plan) throws {
        self.plan = plan
        self.folders = try Folders()
        self.photographs = Photographs(folders: self.folders)
    }

    /// The Python peers.
    func python() async throws -> PythonWorker {
        let folders = self.folders
        let worker = self.worker ?? Task { try await PythonWorker(PythonEnvironment.prepare(in: folders)) }
        self.worker = worker
        return try await worker.value
    }

    /// The origin of the downloads.
    func nginx() async throws -> NginxOrigin {
        let folders = self.folders
        let origin = self.origin ?? Task { try await NginxOrigin.start(in: folders) }
        self.origin = origin
        return try await origin.value
    }

    /// Ends all processes, and removes temporary files.
    func end() async {
        try? await self.worker?.value.end()
        try? await self.origin?.value.end()
        self.folders.removeTemporary()
    }
}
