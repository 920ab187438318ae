/// How one request reaches its server, where it differs from what the configuration says for all.
struct TransportOptions: Equatable {
    var method = DownloadRequest.Method.get
    var tls: TLSPolicy?
    var proxy: ProxyPolicy?
    var credentials: Credentials?
    var cookieJar: CookieJar?
    var unixSocketPath: String?

    init(_ request: DownloadRequest) {
        self.method = request.method
        self.tls = request.tls
        self.proxy = request.proxy
        self.credentials = request.credentials
        self.cookieJar = request.cookieJar
        self.unixSocketPath = request.unixSocketPath
    }

    /// The same, or `nil` where any handle will do.
    var unlessOrdinary: TransportOptions? {
        let isOrdinary =
            self.method == .get && self.tls == nil && self.proxy == nil && self.credentials == nil
            && self.cookieJar == nil && self.unixSocketPath == nil
        return isOrdinary ? nil : self
    }
}
