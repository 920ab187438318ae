// SPDX-License-Identifier: Apache-2.0

/// An operation on a decoded image, compared with the peers in the Python worker.
extension Contest {
    /// A peer, and the worker's job for it.
    struct Peer: Sendable {
        let name: String
        let job: String
        let options: PythonWorker.JobOptions

        init(_ name: String, _ job: String, _ options: PythonWorker.JobOptions) {
            self.name = name
            self.job = job
            self.options = options
        }
    }

    /// Wall time, and processor time that must be `bar` times less than that of each peer.
    static func ofOperation(
        _ name: String,
        peers: [Peer],
        path: String,
        bar: Double,
        _ session: Session,
        check: @escaping @Sendable (_ width: Int, _ height: Int) throws -> Void,
        ours: () async throws -> Contestant
    ) async throws -> [Row] {
        var contest = Contest()
        await contest.enterOurs(ours)
        for peer in peers {
            await contest.enter(peer.name) {
                try await session.python().contestant(job: peer.job, path: path, options: peer.options, check: check)
            }
        }
        try await contest.measure(session.plan.limited(to: 11))
        return contest.rows(named: name, .wall(.milliseconds))
            + contest.rows(named: name, .cpu(.milliseconds)) { _ in [.times(bar)] }
    }
}
