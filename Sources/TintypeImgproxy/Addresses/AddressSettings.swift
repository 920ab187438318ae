// SPDX-License-Identifier: Apache-2.0

/// The part of a server's configuration that decides what its URLs mean.
package struct AddressSettings: Sendable {
    /// The start of every path, such as `/images`.
    ///
    /// Slashes at its ends do not count.
    package var pathPrefix = ""
    /// The text in front of every source that does not start with it.
    package var baseURL = ""
    /// The replacements in a source, which apply in order and before `baseURL`.
    package var replacements: [SourceReplacement] = []
    /// Whether the last segment of a Base64 source is a file name, which is ignored.
    package var base64IncludesFileName = false
    /// The text between the arguments of an option.
    package var argumentSeparator = ":"
    /// The text between the key of an object and its version.
    ///
    /// Empty if there are no versions.
    package var objectVersionSeparator = "?"
    /// The options of each preset by its name, as in URLs: `rs:fill:300:300/q:80`.
    ///
    /// `default` applies to every URL.
    package var presets: [String: String] = [:]
    /// Whether URLs have the names of presets instead of options.
    package var acceptsOnlyPresets = false
    /// The names of options that URLs may use, each as the URL spells it.
    ///
    /// Empty allows all.
    package var allowedOptions: Set<String> = []
    /// Whether URLs may change the limits.
    package var allowsSecurityOptions = false
    /// The signer that checks signatures.
    ///
    /// `nil` accepts any signature.
    package var signer: URLSigner?
    /// The texts that are accepted as signatures.
    package var trustedSignatures: [String] = []
    /// The kinds of sources that are enabled.
    package var schemes: Set<SourceScheme> = [.http, .https]
    /// The options before the presets and the URL set any.
    package var defaults = ProcessingOptions()

    package init() {}
}

/// A mistake in a server's configuration.
package struct AddressSettingsError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The mistake, and what to do about it.
    package let message: String

    package var description: String { self.message }
}
