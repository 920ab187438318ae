import CCurl
import FoundationEssentials

/// One download on its way: a request, the responses so far, and whoever waits.
///
/// Not sendable: only the loop's thread touches it.
final class Transfer {
    /// What libcurl should do after it handed something over.
    enum Verdict {
        case proceed
        case abort
    }

    /// The bytes that are read and thrown away of a body that nobody wants, so that the
    /// connection can be used again.
    private static let discardLimit: Int64 = 32 << 10
    private static let headerLimit = 256 << 10

    let id: UInt64
    /// What was asked for; equal requests join the transfer.
    let request: DownloadRequest
    let timeout: Duration
    let connectTimeout: Duration
    let allowsInvalidCertificates: Bool
    let maximumBodySize: Int
    let networkPolicy: NetworkPolicy
    private let acceptableStatusCodes: StatusCodes
    private var waiters: [UInt64: TransferWaiter] = [:]
    private var latestProgress: TransferProgress?

    /// Where the next byte comes from; redirects change it.
    private(set) var address: ResourceAddress
    /// The fields to send; redirects to another origin take the credentials out.
    private(set) var requestHeaders: HTTPHeaders
    var metrics = TransferMetrics()
    /// The addresses that the policy was asked about since the request was last sent.
    var connections = ConnectionRecord()
    /// When the request was handed to libcurl, and when something last arrived.
    private(set) var startTime = ContinuousClock.now
    private(set) var lastProgress = ContinuousClock.now
    /// The same two moments for the head of the response, in the time that people use.
    private(set) var requestTime = Date()
    private(set) var responseTime = Date()

    /// Why it was aborted from a callback.
    private(set) var failure: DownloadError?
    private(set) var status: Int?
    private(set) var responseHeaders = HTTPHeaders()
    /// Whether the whole head of the final response (not of an informational one) is here.
    private(set) var hasHead = false
    private var headerBytes = 0
    private var discardedBytes: Int64 = 0
    private var expectedBytes: Int64?
    private var body: BodyBuffer

    init(
        id: UInt64,
        request: DownloadRequest,
        address: ResourceAddress,
        configuration: DownloadActor.Configuration
    ) {
        self.id = id
        self.request = request
        self.address = address
        self.requestHeaders = request.headers
        self.timeout = request.timeout ?? configuration.timeout
        self.connectTimeout = request.connectTimeout ?? configuration.connectTimeout
        self.networkPolicy = configuration.networkPolicy
        self.allowsInvalidCertificates = request.allowsInvalidCertificates
        self.maximumBodySize = request.maximumBodySize ?? configuration.maximumBodySize
        self.acceptableStatusCodes = request.acceptableStatusCodes ?? configuration.acceptableStatusCodes
        self.body = BodyBuffer(limit: self.maximumBodySize)
    }

    /// Whether the request accepts the status of the final response.
    var isSuccess: Bool { self.status.map(self.acceptableStatusCodes.contains) ?? false }

    var receivedBytes: Int { self.body.count }

    // MARK: Who waits

    var hasWaiters: Bool { !self.waiters.isEmpty }

    func join(_ id: UInt64, _ waiter: TransferWaiter) {
        self.waiters[id] = waiter
        if let latestProgress { waiter.observer?(latestProgress) }
        if let show = waiter.bytesObserver, self.body.count > 0 { show(self.body.copy()) }
    }

    /// Takes a waiter out, if it is still there.
    func leave(_ id: UInt64) -> TransferWaiter? {
        self.waiters.removeValue(forKey: id)
    }

    /// Resumes whoever waits, once; a second call does nothing.
    func finish(_ result: Result<DownloadResponse, any Error>) {
        let waiters = self.waiters
        self.waiters = [:]
        for waiter in waiters.values { waiter.continuation.resume(with: result) }
    }

    private func report(_ progress: TransferProgress) {
        self.latestProgress = progress
        for waiter in self.waiters.values { waiter.observer?(progress) }
    }

    /// Copies what arrived, once, for those who decode while it comes.
    private func show(_ bytes: UnsafeRawBufferPointer) {
        let observers = self.waiters.values.compactMap(\.bytesObserver)
        guard !observers.isEmpty else { return }
        let copy = Data(bytes)
        for show in observers { show(copy) }
    }

    // MARK: On the way

    func willStart() {
        self.startTime = .now
        self.lastProgress = self.startTime
        self.requestTime = Date()
    }

    /// Takes the target of a redirect; what the old response left behind is dropped.
    func redirect(to target: ResourceAddress) {
        if target.origin != self.address.origin {
            for name in ["Authorization", "Cookie", "Proxy-Authorization"] { self.requestHeaders.set(nil, for: name) }
        }
        self.address = target
        self.metrics.redirectCount += 1
        self.resetResponse()
        self.hasHead = false
    }

    /// Moves the body out; the transfer is over.
    func takeBody() -> Data {
        self.body.takeData()
    }

    // MARK: What arrives

    /// Takes one line of a head: the status line, a field, or the empty line after the last.
    func receive(headerLine bytes: UnsafeRawBufferPointer) -> Verdict {
        self.lastProgress = .now
        // After the head only trailers come; nobody asked for those.
        guard !self.hasHead else { return .proceed }
        self.headerBytes += bytes.count
        guard self.headerBytes <= Self.headerLimit else {
            return self.abort(
                .invalidResponse("its header has more than \(Self.headerLimit) bytes", at: self.address)
            )
        }
        switch HeaderLine(bytes) {
        case .status(let status):
            self.resetResponse()
            self.status = status
        case .field(let name, let value): self.responseHeaders.append(value, for: name)
        case .continuation(let value): self.responseHeaders.fold(value)
        case .end: return self.receiveEndOfHead()
        case .malformed: break
        }
        return .proceed
    }

    func receive(body bytes: UnsafeRawBufferPointer) -> Verdict {
        self.lastProgress = .now
        guard self.isSuccess else {
            self.discardedBytes += Int64(bytes.count)
            return self.discardedBytes > Self.discardLimit ? .abort : .proceed
        }
        switch self.body.append(bytes) {
        case .appended: break
        case .overLimit: return self.abort(self.bodyTooLarge(declared: nil))
        case .outOfMemory: return self.abort(.outOfMemory(at: self.address))
        }
        self.report(TransferProgress(receivedBytes: Int64(self.body.count), expectedBytes: self.expectedBytes))
        self.show(bytes)
        return .proceed
    }

    private func receiveEndOfHead() -> Verdict {
        guard let status, status >= 200 else { return .proceed }
        self.hasHead = true
        self.responseTime = Date()
        let declared = self.responseHeaders["Content-Length"].flatMap { Int64($0) }
        guard self.isSuccess else { return declared ?? 0 > Self.discardLimit ? .abort : .proceed }
        guard let declared else { return .proceed }
        guard declared <= Int64(self.maximumBodySize) else { return self.abort(self.bodyTooLarge(declared: declared)) }
        let encoding = self.responseHeaders["Content-Encoding"]?.lowercased() ?? "identity"
        if encoding == "identity" { self.expectedBytes = declared }
        self.body.reserve(declared: Int(declared))
        return .proceed
    }

    private func resetResponse() {
        self.status = nil
        self.responseHeaders.removeAll()
        self.headerBytes = 0
        self.discardedBytes = 0
        self.expectedBytes = nil
    }

    private func abort(_ failure: DownloadError) -> Verdict {
        self.failure = failure
        return .abort
    }

    private func bodyTooLarge(declared: Int64?) -> DownloadError {
        .bodyTooLarge(
            limit: self.maximumBodySize,
            declared: declared,
            status: self.status,
            headers: self.responseHeaders,
            at: self.address
        )
    }
}
