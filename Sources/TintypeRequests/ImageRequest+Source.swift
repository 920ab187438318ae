// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeDownloading
public import TintypeHTTP

extension ImageRequest {
    /// The origin of the bytes, and everything that changes them before the cache stores them.
    ///
    /// Requests that differ in it have bytes and images of their own in the cache. Cache keys contain secrets and the
    /// names of functions only as digests.
    public struct Source: Sendable, Hashable {
        /// The URL of the image: an `http:`, `https:`, `file:` or `data:` URL, or one that the fetcher knows.
        public var url: URL
        /// The header fields to send in addition to the loader's own.
        ///
        /// Under policies that follow HTTP's freshness, a field that states a preference, such as `Accept-Language`,
        /// separates the bytes on disk only if the response's `Vary` names it. Other fields always separate them.
        public var headers: HeaderFields {
            get { self.fields }
            set { self.fields = newValue }
        }
        private var fields: HeaderFields
        /// The text that replaces the URL in cache keys.
        ///
        /// `nil` uses the result of `LoaderActor.Configuration.keyFilter`, or the URL. With a key, URLs that are
        /// signed or that expire name one image: their loads share a flight, which uses the URL of the first one. The
        /// other properties of the source, such as the credentials, separate requests as before.
        public var cacheKey: String?
        /// The credentials of the user, or `nil` for the loader's.
        public var credentials: Credentials?
        /// The cookie jar to use, if any, or `nil` for the loader's.
        public var cookies: CookiePolicy?
        /// The fetcher of the bytes, or `nil` for the loader's.
        public var fetcher: Named<any ImageFetching>?
        /// The hooks of this request, each of which replaces the loader's function of the same name.
        public var hooks: Named<LoadHooks>?
    }
}

extension ImageRequest.Source {
    /// Creates a source; by default with everything but the URL from the loader.
    ///
    /// ```swift
    /// let source = ImageRequest.Source(url: url, cacheKey: "photo-17", credentials: .bearer(token))
    /// let image = try await loader.image(for: ImageRequest(source: source))
    /// ```
    // It calls the compiler's initialiser, which fills the storage of a request in place. An initialiser that assigns the
    // properties copies the source, which takes a third of the time of making a request. The name `fields` tells the two
    // initialisers apart.
    public init(
        url: URL,
        headers: HeaderFields = [:],
        cacheKey: String? = nil,
        credentials: Credentials? = nil,
        cookies: CookiePolicy? = nil,
        fetcher: Named<any ImageFetching>? = nil,
        hooks: Named<LoadHooks>? = nil
    ) {
        self.init(
            url: url,
            fields: headers,
            cacheKey: cacheKey,
            credentials: credentials,
            cookies: cookies,
            fetcher: fetcher,
            hooks: hooks
        )
    }
}

extension ImageRequest {
    /// The text for HTTP's rules instead of the field `Authorization`; never sent.
    package var authorization: String? { self.headers["Authorization"] ?? self.source.credentials?.identity }

    /// The fields of the request for HTTP's rules.
    package var judgedHeaders: HeaderFields {
        guard self.headers["Authorization"] == nil, let authorization else { return self.headers }
        return self.headers + [HeaderField(name: "Authorization", value: authorization)]
    }
}
