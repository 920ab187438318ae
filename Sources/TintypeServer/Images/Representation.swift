// SPDX-License-Identifier: Apache-2.0

import Tintype

/// An encoded image as answers send it, from memory or from a file.
enum Representation: Sendable {
    case response(EncodedResponse)
    case file(EncodedFile)

    init(_ response: EncodedResponse) {
        self = .response(response)
    }

    var body: ServerAnswer.Body {
        switch self {
        case .response(let response): .data(response.data)
        case .file(let file): .file(file.file, offset: file.file.offset, count: file.file.byteCount)
        }
    }

    var source: LoadSource { if case .response(let response) = self { response.source } else { .disk } }

    var mediaType: String {
        switch self {
        case .response(let response): response.mediaType
        case .file(let file): file.mediaType
        }
    }

    /// The name of the format, such as `jpeg`.
    var formatName: String { self.metadata.formatName ?? "other" }

    var etag: String {
        switch self {
        case .response(let response): response.etag
        case .file(let file): file.etag
        }
    }

    var size: (width: Int, height: Int) {
        switch self {
        case .response(let response): (response.width, response.height)
        case .file(let file): (file.width, file.height)
        }
    }

    var metadata: EntryMetadata {
        switch self {
        case .response(let response): response.metadata
        case .file(let file): file.metadata
        }
    }
}
