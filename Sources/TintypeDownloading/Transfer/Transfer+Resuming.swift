import FoundationEssentials
import TintypeConcurrency
import TintypeHTTP

// Going on where an earlier try, or an earlier process, broke off.

extension Transfer {
    /// Whether the request asks for the whole of a resource, of which a part can be asked for instead.
    var canResume: Bool {
        let codes = self.limits.acceptableStatusCodes
        guard self.request.method == .get, self.channel == nil, codes.contains(206), codes.contains(200) else {
            return false
        }
        let conditions = ["Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"]
        return self.requestHeaders.isEmpty || conditions.allSatisfy { self.requestHeaders[$0] == nil }
    }

    /// What is here of the body, if the rest can be asked for: the server offers it, the version is known for
    /// sure, and something is here but not all.
    var resumable: Resumption? {
        guard self.canResume, self.hasHead, let status, status == 200 || status == 206, self.isIdentity,
            self.body.count > 0, let expectedBytes, self.body.count < expectedBytes,
            status == 206 || self.responseHeaders["Accept-Ranges"]?.lowercased() == "bytes",
            let validator = Validators.strong(in: self.responseHeaders, now: self.responseTime)
                ?? self.resumption?.validator
        else { return nil }
        return Resumption(
            source: PartialBodyKey.source(self.address),
            validator: validator,
            offset: self.body.count,
            total: Int(expectedBytes),
            wholeHeaders: Resumption.fieldsOfWhole(self.responseHeaders)
        )
    }

    /// Whether the request that is sent now asks for the rest: only the address that the other bytes came from is
    /// told their validator, and can have the rest of them.
    var asksForRest: Bool {
        self.resumption.map { $0.source == PartialBodyKey.source(self.address) } ?? false
    }

    /// What is here of the body, to be kept for another transfer.
    ///
    /// The bytes are moved out: the transfer is over.
    func takePartialBody() -> PartialBody? {
        let control = CacheControl(self.responseHeaders.values(for: "Cache-Control"))
        guard !control.has("no-store"), let resumable else { return nil }
        return PartialBody(
            source: resumable.source,
            validator: resumable.validator,
            total: resumable.total,
            headers: resumable.wholeHeaders,
            bytes: self.takeBody(),
            claim: self.claim
        )
    }

    /// Takes the first bytes that an earlier transfer left.
    func resume(from partial: PartialBody) {
        guard partial.total <= self.limits.maximumBodySize, self.canResume else { return }
        let isKept = partial.bytes.withUnsafeBytes { self.body.append($0) == .appended }
        guard isKept else {
            self.body.removeAll()
            return
        }
        self.claim.set(self.body.heldByteCount())
        self.usedStoredPart = true
        self.resumption = Resumption(
            source: partial.source,
            validator: partial.validator,
            offset: partial.bytes.count,
            total: partial.total,
            wholeHeaders: partial.headers
        )
    }

    /// Decides what becomes of the bytes that are here, now that the answer to a `Range` has come.
    ///
    /// - Returns: Whether the response is of use; otherwise everything must be asked for again.
    func applyResumption(status: Int) -> Bool {
        guard let resumption else { return true }
        if status == 304, self.asksForRest {
            // The request had no condition that it could answer.
            self.mustRestart = true
            return false
        }
        guard status == 206 else {
            // The whole of it, perhaps another version.
            self.dropBody()
            return true
        }
        guard self.asksForRest, resumption.isContinued(by: self.responseHeaders), self.isIdentity,
            self.body.count == resumption.offset
        else {
            self.mustRestart = true
            return false
        }
        self.responseHeaders = resumption.completed(by: self.responseHeaders)
        self.metrics.resumedBytes = Int64(resumption.offset)
        return true
    }

    /// Whether `error` may only be how the server answers when it is asked for the rest: what is here must not stand
    /// in the way of the whole, with this load and each that follows.
    func failedResuming(_ error: DownloadError) -> Bool {
        guard self.hasAskedForRest else { return false }
        return switch error.code {
        case .invalidResponse, .emptyBody, .bodyTooLarge, .unacceptableContentType: true
        // Others are a matter of when is asked, or of what.
        case .badStatus: error.status.map { [304, 416, 501].contains($0) } ?? false
        // A rest that is whole and brings nothing; one that the transport cut has a cause.
        case .bodyCutShort: error.underlyingError == nil && self.body.count == self.resumption?.offset
        default: false
        }
    }

    /// Keeps what is here for the next try if the rest can be asked for, and drops it otherwise.
    func keepWhatCanBeResumed() {
        let isUntouched = self.resumption.map { $0.offset == self.body.count } ?? false
        if let resumable {
            self.resumption = resumable
        } else if !isUntouched {
            self.dropBody()
        }
    }

    /// Drops what is here; what observers saw of it was of another response.
    func dropBody() {
        if self.hasShownBytes { self.blindObservers() }
        self.resumption = nil
        self.metrics.resumedBytes = 0
        self.body.removeAll()
        self.latestProgress = nil
    }

    /// Whether observers have seen bytes of the body.
    var hasShownBytes: Bool { self.latestProgress.map { $0.receivedBytes > 0 } ?? false }
}
