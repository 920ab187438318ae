// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// A key that signs requests as Amazon's services and compatible ones demand (AWS Signature Version 4).
///
/// libcurl signs the path and the query as they are sent, so a URL must already have their canonical spelling: every
/// byte escaped with upper-case digits, except for letters, digits, `-._~`, and slashes in the path.
package struct AWSSigningKey: Sendable, Hashable, CustomStringConvertible {
    /// The public name of the key.
    package let accessKey: String
    let secretKey: String
    let sessionToken: String?
    let region: String
    let service: String

    /// Creates a key for a service, such as `s3`, in a region, such as `eu-central-1`.
    ///
    /// A temporary key has a session token.
    package init(accessKey: String, secretKey: String, sessionToken: String? = nil, region: String, service: String) {
        self.accessKey = accessKey
        self.secretKey = secretKey
        self.sessionToken = sessionToken
        self.region = region
        self.service = service
    }

    /// The public name of the key, without its secrets.
    package var description: String { "the signing key \(self.accessKey)" }

    /// Returns the fields of a request that libcurl 7.88 does not add itself: it signs them as well.
    func fields(for body: RequestBody?) -> HeaderFields {
        var fields: HeaderFields = ["X-Amz-Content-Sha256": body?.digest ?? Self.digestOfNothing]
        if let sessionToken { fields.append(sessionToken, for: "X-Amz-Security-Token") }
        return fields
    }

    /// The parameter of libcurl that names the algorithm, the region and the service.
    var parameter: String { "aws:amz:\(self.region):\(self.service)" }

    /// Whether the parts are texts that libcurl reads as a whole.
    package var isSendable: Bool {
        // libcurl reads no more than 64 bytes of a region or a service, and ends them at a colon.
        let isScope = [self.region, self.service].allSatisfy {
            FieldText.isToken($0) && $0.utf8.count <= 64
        }
        return isScope && FieldText.isToken(self.accessKey) && FieldText.isPlain(self.secretKey)
            && FieldText.isPlain(self.sessionToken ?? "")
    }

    /// All that tells this key from others, secrets included: only for comparisons and digests.
    var identity: String {
        // Lengths keep two parts from looking like one.
        [self.accessKey, self.secretKey, self.sessionToken ?? "", self.region, self.service]
            .map { "\($0.utf8.count):\($0)" }.joined()
    }

    /// The SHA-256 of an empty body.
    private static let digestOfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
}
