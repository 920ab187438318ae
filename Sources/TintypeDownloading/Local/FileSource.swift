// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// A file to read, and how to open it.
package struct FileSource: Sendable {
    /// The URL of the response and of errors.
    let url: URL
    let address: ResourceAddress
    /// The name for messages.
    let name: String
    /// The status of the response; with one, the response has a `Last-Modified` as well.
    let status: Int?
    /// Opens the file with these flags; returns the descriptor, or -1 with `errno` set.
    ///
    /// Runs on the thread of the reader, which may block.
    let open: @Sendable (_ flags: CInt) -> CInt

    /// Creates the source of a URL whose scheme only a fetcher knows, with the status 200.
    package init(url: URL, name: String, open: @escaping @Sendable (_ flags: CInt) -> CInt) {
        self.url = url
        self.address = ResourceAddress(ofFile: url)
        self.name = name
        self.status = 200
        self.open = open
    }

    /// Creates the source of a `file:` URL.
    init(_ address: ResourceAddress, url: URL) throws(DownloadError) {
        let path = try FilePath(address)
        self.url = url
        self.address = address
        self.name = path.text
        self.status = nil
        self.open = { path.open($0) }
    }
}
