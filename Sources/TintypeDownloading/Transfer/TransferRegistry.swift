// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// The transfers of an engine, their figures, and the news that their callers and observers are yet to receive.
///
/// Not sendable: only the loop's thread touches it, except for its ``events``.
final class TransferRegistry {
    let events = Broadcast<DownloadEvent>()
    private(set) var counters = DownloadCounters()
    private var transfers: [UInt64: Transfer] = [:]
    /// The same transfers by the requests that can share them; streams are not shared.
    private var transfersByIdentity: [SharedRequest: Transfer] = [:]
    /// The transfers that have bytes which their observers do not know of.
    private var news: [Transfer] = []
    /// The transfers that are over, and whose callers do not know yet.
    ///
    /// They are resumed together: each alone would wake a thread of its own.
    private var settled: [(transfer: Transfer, result: Result<DownloadResponse, any Error>)] = []
    /// Is notified of a transfer that has to wait for memory.
    var onMemoryShortage: ((Transfer) -> Void)?
    /// Made once for all transfers, which end before the registry does.
    private(set) lazy var report: (Transfer, Transfer.News) -> Void = { [unowned self] transfer, news in
        switch news {
        case .head:
            self.counters.receivedHeads += 1
            self.send(.receivedHead(status: transfer.status ?? 0), of: transfer)
        case .bytes: self.news.append(transfer)
        case .memoryShortage:
            self.counters.memoryWaits += 1
            self.onMemoryShortage?(transfer)
        }
    }

    /// The number of transfers that wait, run, or are in the hands of a hook.
    var count: Int { self.transfers.count }

    var all: some Sequence<Transfer> { self.transfers.values }

    subscript(id: UInt64) -> Transfer? { self.transfers[id] }

    /// Returns the transfer that `request` can share.
    func transfer(for request: SharedRequest) -> Transfer? { self.transfersByIdentity[request] }

    /// Returns the transfer that `request` can share, for one more caller.
    func share(_ request: SharedRequest) -> Transfer? {
        guard let transfer = self.transfersByIdentity[request] else { return nil }
        self.counters.shared += 1
        return transfer
    }

    /// Adds a transfer that starts.
    func insert(_ transfer: Transfer) {
        self.transfers[transfer.id] = transfer
        if !transfer.isStream { self.transfersByIdentity[transfer.identity] = transfer }
        self.counters.started += 1
        self.send(.started, of: transfer)
    }

    /// Removes a transfer that is over; its callers are resumed with ``resumeSettled()``.
    func settle(_ transfer: Transfer, _ result: Result<DownloadResponse, any Error>) {
        self.transfers[transfer.id] = nil
        if self.transfersByIdentity[transfer.identity] === transfer {
            self.transfersByIdentity[transfer.identity] = nil
        }
        self.counters.receivedBytes += transfer.metrics.bytes
        self.settled.append((transfer, result))
    }

    /// Records how a transfer ends, before its parts are taken from it.
    func willEnd(_ transfer: Transfer, _ result: Result<DownloadResponse, any Error>) {
        switch result {
        case .success(let response):
            self.counters.succeeded += 1
            if transfer.metrics.resumedBytes > 0 { self.counters.resumed += 1 }
            self.send(.finished(response.metrics), of: transfer)
        case .failure(let error as DownloadError):
            self.counters.failed += 1
            if error.isRefusal { self.counters.refused += 1 }
            self.send(.failed(error), of: transfer)
        case .failure:
            self.counters.cancelled += 1
            self.send(.cancelled, of: transfer)
        }
    }

    func didPlanRetry(of transfer: Transfer, after delay: Duration, _ error: DownloadError) {
        self.counters.retried += 1
        self.send(.retrying(after: delay, error), of: transfer)
    }

    func didReprioritize() {
        self.counters.reprioritized += 1
    }

    /// Resumes the callers of transfers that are over.
    func resumeSettled() {
        guard !self.settled.isEmpty else { return }
        for (transfer, result) in self.settled { transfer.audience.finish(result) }
        self.settled.removeAll(keepingCapacity: true)
    }

    /// Notifies observers of bytes.
    ///
    /// It precedes the end of a transfer, so that the last bytes are shown as well.
    func announceNews() {
        guard !self.news.isEmpty else { return }
        for transfer in self.news { transfer.announce() }
        self.news.removeAll(keepingCapacity: true)
    }

    private func send(_ kind: DownloadEvent.Kind, of transfer: Transfer) {
        guard self.events.hasObservers else { return }
        let url = DownloadError.url(transfer.address) ?? transfer.request.url
        self.events.send(DownloadEvent(transferID: transfer.id, url: url, kind: kind))
    }
}
