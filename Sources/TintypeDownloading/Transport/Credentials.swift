// SPDX-License-Identifier: Apache-2.0

/// The proof of the user's identity for a server or a proxy.
///
/// It goes only to the origin that the request names, wherever redirects lead.
public struct Credentials: Sendable, Hashable, CustomStringConvertible {
    enum Value: Sendable, Hashable {
        case basic(user: String, password: String)
        case digest(user: String, password: String)
        case bearer(token: String)
        case awsSignature(AWSSigningKey)

        /// Strings that are merely canonically equivalent are two names: they are sent as they are.
        static func == (left: Value, right: Value) -> Bool {
            func areSame(_ left: String, _ right: String) -> Bool { left.utf8.elementsEqual(right.utf8) }
            return switch (left, right) {
            case (.basic(let user, let password), .basic(let otherUser, let otherPassword)),
                (.digest(let user, let password), .digest(let otherUser, let otherPassword)):
                areSame(user, otherUser) && areSame(password, otherPassword)
            case (.bearer(let token), .bearer(let other)): areSame(token, other)
            case (.awsSignature(let key), .awsSignature(let other)): areSame(key.identity, other.identity)
            default: false
            }
        }
    }

    let value: Value

    /// A name and a password, sent as they are (RFC 7617): only for `https`.
    ///
    /// ```swift
    /// let request = DownloadRequest(url: url, credentials: .basic(user: "anna", password: token))
    /// ```
    public static func basic(user: String, password: String) -> Credentials {
        Credentials(value: .basic(user: user, password: password))
    }

    /// A name and a password, of which only a digest is sent (RFC 7616); costs one more round trip.
    ///
    /// ```swift
    /// let request = DownloadRequest(url: url, credentials: .digest(user: "anna", password: token))
    /// ```
    public static func digest(user: String, password: String) -> Credentials {
        Credentials(value: .digest(user: user, password: password))
    }

    /// A token, sent as it is (RFC 6750).
    ///
    /// ```swift
    /// let request = DownloadRequest(url: url, credentials: .bearer(token))
    /// ```
    public static func bearer(_ token: String) -> Credentials {
        Credentials(value: .bearer(token: token))
    }

    /// A key that signs each request for a service of Amazon's or a compatible one (AWS Signature Version 4).
    ///
    /// Only the signature is sent, and the session token if there is one.
    package static func awsSignature(_ key: AWSSigningKey) -> Credentials {
        Credentials(value: .awsSignature(key))
    }

    /// All that tells these credentials from others, secrets included: only for digests.
    package var identity: String {
        // The length keeps a name and a password from looking like another pair.
        func pair(_ user: String, _ password: String) -> String { "\(user.utf8.count):\(user):\(password)" }
        return switch self.value {
        case .basic(let user, let password): "basic:" + pair(user, password)
        case .digest(let user, let password): "digest:" + pair(user, password)
        case .bearer(let token): "bearer:" + token
        case .awsSignature(let key): "aws:" + key.identity
        }
    }

    /// The kind; what is secret is not shown.
    public var description: String {
        switch self.value {
        case .basic: "basic credentials"
        case .digest: "digest credentials"
        case .bearer: "a bearer token"
        case .awsSignature: "a signing key"
        }
    }
}
