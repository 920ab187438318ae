// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// A transfer's share of libcurl while it runs.
struct ActiveTransfer {
    let handle: EasyHandle
    /// libcurl does not copy them.
    let headers: HeaderList
    /// The origin that the transfer's place belongs to.
    let origin: String
    /// Whether the transfer has given its place to others.
    var isLagging = false
}

/// The easy handles of an engine: running ones, waiting ones, and handles that still look up a name for a transfer that
/// has ended.
struct HandlePool {
    private let configuration: SharedConfiguration
    /// The fields of every request, or `nil` if they cannot be sent: each request then fails.
    private let defaultHeaders: HeaderList?
    private var active: [UInt64: ActiveTransfer] = [:]
    private var idle: [EasyHandle] = []
    /// The transfers that are over and whose look-up goes on, by their easy handle.
    ///
    /// A look-up has a thread and descriptors, and cannot be ended. It keeps the transfer's place, so that there are no
    /// more of them than places, however many transfers are cancelled. Its connect limit ends it, too.
    private var lookUps: [UnsafeMutableRawPointer: ActiveTransfer] = [:]

    init(configuration: SharedConfiguration) {
        self.configuration = configuration
        self.defaultHeaders = try? HeaderList(configuration.value.requestHeaders)
    }

    /// The number of transfers that run.
    var count: Int { self.active.count }

    /// The identifiers of the transfers that run.
    var ids: some Collection<UInt64> { self.active.keys }

    subscript(id: UInt64) -> ActiveTransfer? { self.active[id] }

    /// The handle that runs a transfer.
    func handle(of id: UInt64) -> EasyHandle? { self.active[id]?.handle }

    /// The transfers that share a connection.
    func transfers(on descriptor: CInt) -> [(id: UInt64, handle: EasyHandle)] {
        self.active.lazy.filter { $0.value.handle.sharedDescriptor == descriptor }.map { ($0.key, $0.value.handle) }
    }

    /// Records that a transfer has given its place to others, or has one again.
    mutating func setLagging(_ isLagging: Bool, of id: UInt64) {
        self.active[id]?.isLagging = isLagging
    }

    /// Hands the request of a transfer to libcurl.
    mutating func start(_ transfer: Transfer, on multi: CurlMulti) throws(DownloadError) {
        let options = transfer.outgoing.options
        let idle = options == nil ? self.idle.popLast() : nil
        guard let handle = idle ?? EasyHandle(options: options, configuration: self.configuration.value, multi: multi)
        else {
            throw .outOfMemory(at: transfer.address)
        }
        let headers = try self.headers(of: transfer)
        if transfer.request.networkPolicy != nil { multi.mixesPolicies = true }
        handle.prepare(for: transfer, headers: headers, activeCount: self.active.count)
        guard multi.add(handle.easy) else {
            handle.transfer = nil
            throw .outOfMemory(at: transfer.address)
        }
        self.active[transfer.id] = ActiveTransfer(
            handle: handle,
            headers: headers,
            origin: transfer.address.origin
        )
    }

    private func headers(of transfer: Transfer) throws(DownloadError) -> HeaderList {
        var own = transfer.outgoing.headers
        if case .awsSignature(let key)? = transfer.outgoing.options?.credentials?.value {
            own += key.fields(for: transfer.request.method.body)
        }
        let rest = transfer.asksForRest ? transfer.resumption : nil
        if let defaultHeaders, own.isEmpty, rest == nil { return defaultHeaders }
        var headers = self.configuration.value.requestHeaders
        for field in own { headers.set(nil, for: field.name) }
        return try HeaderList(headers + own + (rest?.headers ?? [:]))
    }

    /// Takes a transfer away from libcurl.
    ///
    /// - Returns: The share whose place is free now; `nil` if a look-up keeps the place.
    mutating func finish(
        _ active: ActiveTransfer,
        id: UInt64,
        isComplete: Bool,
        on multi: CurlMulti?
    ) -> ActiveTransfer? {
        self.active[id] = nil
        let handle = active.handle
        defer { handle.transfer = nil }
        guard isComplete || !handle.isLookingUp else {
            // Without a transfer, no address is good enough to connect to: the look-up is the last that it does.
            self.lookUps[handle.easy] = active
            return nil
        }
        self.release(handle, on: multi)
        return active
    }

    /// Ends a look-up whose transfer is over.
    ///
    /// - Returns: The share whose place is free now; `nil` if the handle has no such look-up.
    mutating func finishLookUp(of easy: UnsafeMutableRawPointer, on multi: CurlMulti?) -> ActiveTransfer? {
        guard !self.lookUps.isEmpty, let active = self.lookUps.removeValue(forKey: easy) else { return nil }
        self.release(active.handle, on: multi)
        return active
    }

    private mutating func release(_ handle: EasyHandle, on multi: CurlMulti?) {
        multi?.remove(handle.easy)
        multi?.endRest(of: handle)
        handle.releaseConnection()
        if handle.isReusable { self.idle.append(handle) }
    }

    /// Frees all handles, which must be gone before their multi handle.
    mutating func removeAll(on multi: CurlMulti?) {
        for active in self.active.values { multi?.remove(active.handle.easy) }
        for easy in self.lookUps.keys { multi?.remove(easy) }
        self.active = [:]
        self.lookUps = [:]
        self.idle = []
    }
}
