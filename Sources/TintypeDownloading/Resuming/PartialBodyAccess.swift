// SPDX-License-Identifier: Apache-2.0

/// Finds, stores and removes the first bytes of bodies whose transfers broke off.
struct PartialBodyAccess {
    /// The store, or `nil` if the downloader keeps no partial bodies.
    let store: PartialBodyStore?
    private let configuration: SharedConfiguration

    init(_ configuration: SharedConfiguration) {
        self.configuration = configuration
        self.store = configuration.value.partialBodies.map { PartialBodyStore($0) }
    }

    private func key(of transfer: Transfer) -> PartialBodyKey? {
        PartialBodyKey(transfer.request, self.configuration.value)
    }

    /// Returns false if the store has no part of a transfer's body.
    func mayHavePart(of transfer: Transfer) -> Bool {
        guard let store, transfer.canResume, let key = self.key(of: transfer) else { return false }
        return store.mayHave(key)
    }

    /// Stores the part of a body that another transfer can complete, and removes a part that is complete or refused.
    ///
    /// The transfer is over.
    func settle(_ transfer: Transfer, _ result: Result<DownloadResponse, any Error>) {
        guard let store else { return }
        switch result {
        case .success: self.removePart(of: transfer)
        case .failure(let error):
            let cause = error as? DownloadError
            if let cause, Self.mustRemovePart(after: cause, hasAskedForRest: transfer.hasAskedForRest) {
                self.removePart(of: transfer)
            }
            let isWorthResuming = cause.map(Self.isWorthResuming(after:)) ?? (error is CancellationError)
            guard isWorthResuming, let key = self.key(of: transfer), let partial = transfer.takePartialBody() else {
                return
            }
            store.insert(partial, for: key)
        }
    }

    /// Removes the part that a transfer took from the store.
    func removePart(of transfer: Transfer) {
        guard let store, transfer.usedStoredPart, let key = self.key(of: transfer) else { return }
        transfer.usedStoredPart = false
        store.remove(key)
    }

    /// Whether the error may be the server's answer to a request for the rest, and would come back every time.
    static func mustRemovePart(after error: DownloadError, hasAskedForRest: Bool) -> Bool {
        switch error.code {
        case .invalidResponse: true
        case .badStatus where hasAskedForRest: true
        case .badStatus: error.status.map { 400..<500 ~= $0 && $0 != 408 && $0 != 429 } ?? false
        default: false
        }
    }

    /// Whether the rest may come another time; limits and refusals would come back.
    static func isWorthResuming(after error: DownloadError) -> Bool {
        [.connectionLost, .bodyCutShort, .timedOut, .tooSlow].contains(error.code)
    }
}
