// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// A request whose hash is known, and whose copies cost a reference: it has a dozen parts that would each count one.
final class SharedRequest: Hashable, Sendable {
    let value: DownloadRequest
    private let hash: Int

    init(_ value: DownloadRequest) {
        self.value = value
        self.hash = value.hashValue
    }

    static func == (left: SharedRequest, right: SharedRequest) -> Bool {
        left === right || left.hash == right.hash && left.value == right.value
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(self.hash)
    }
}

/// A configuration whose copies cost a reference: it has three dozen parts.
final class SharedConfiguration: Sendable {
    let value: DownloadActor.Configuration

    init(_ value: DownloadActor.Configuration) {
        self.value = value
    }
}

/// The request of a transfer as it is sent, and the address that it goes to.
///
/// Redirects change the address, and take credentials out if they lead to another origin.
struct OutgoingRequest {
    private let configuration: SharedConfiguration
    private let shared: SharedRequest
    /// The address of the first byte.
    private let initialAddress: ResourceAddress
    /// The address of the next byte.
    private(set) var address: ResourceAddress
    /// The fields to send.
    private(set) var headers: HeaderFields
    /// How it differs from an ordinary request, or `nil`.
    private(set) var options: TransportOptions?

    init(_ shared: SharedRequest, address: ResourceAddress, configuration: SharedConfiguration) {
        self.configuration = configuration
        self.shared = shared
        self.initialAddress = address
        self.address = address
        self.headers = shared.value.headers
        self.options = TransportOptions(shared.value).unlessOrdinary
    }

    var request: DownloadRequest { self.shared.value }

    // MARK: Redirects

    /// Goes to the target of a redirect.
    mutating func redirect(to target: ResourceAddress) {
        if target.origin != self.address.origin {
            self.headers = Redirect.safeHeaders(self.headers)
            let options = self.options ?? TransportOptions(self.request)
            self.options = Redirect.safeOptions(options, configured: self.configuration.value.tls).unlessOrdinary
        }
        self.address = target
    }

    /// Goes back to the first address, for another try.
    mutating func restart() {
        self.address = self.initialAddress
        self.headers = self.request.headers
        self.options = TransportOptions(self.request).unlessOrdinary
    }

    // MARK: Policies

    var limits: TransferLimits { TransferLimits(self.request, self.configuration.value) }

    var networkPolicy: NetworkPolicy { self.request.networkPolicy ?? self.configuration.value.networkPolicy }

    var retryPolicy: RetryPolicy { self.request.retryPolicy ?? self.configuration.value.retryPolicy }

    var cookieJar: CookieJar? {
        guard let options else { return self.configuration.value.cookieJar }
        return CookiePolicy.jar(of: options.cookies, configured: self.configuration.value.cookieJar)
    }

    private var proxy: ProxyPolicy { self.options?.proxy ?? self.configuration.value.proxy }

    /// Whether every connection is to a proxy that the program named; with exceptions, some may be to the host.
    var leadsToProxy: Bool {
        if case .explicit(_, _, let exceptions) = self.proxy.value { exceptions.isEmpty } else { false }
    }

    /// Whether libcurl answers a challenge, of the server or the proxy, with a second request of its own.
    var answersChallenges: Bool {
        if case .digest? = self.options?.credentials?.value { return true }
        guard case .explicit(_, let credentials, _) = self.proxy.value, case .digest? = credentials?.value else {
            return false
        }
        return true
    }
}
