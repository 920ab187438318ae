// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCaching
import TintypeCoding
import TintypeDownloading
import TintypeErrors
import TintypeRequests

@Suite struct LoadErrorTests {
    @Test func `parts are wrapped with their code and message`() throws {
        let coding = CodingError(code: .tooManyPixels, message: "Too many.")
        let error = try #require(LoadError.wrapping(coding) as? LoadError)
        #expect(error.code == .tooManyPixels)
        #expect(error.code.description == "tooManyPixels")
        #expect(error.message == "Too many.")
        #expect(error.underlyingError is CodingError)
    }

    @Test func `cancellation and load errors are themselves`() {
        #expect(LoadError.wrapping(CancellationError()) is CancellationError)
        let error = LoadError(code: .notInCache, message: "No.")
        #expect((LoadError.wrapping(error) as? LoadError)?.underlyingError == nil)
    }

    @Test(arguments: [
        CodingError.Code.notAnImage, .unsupportedFormat, .unsupportedFeature, .corrupt, .truncated, .tooManyPixels,
        .sideTooLong, .tooManyBytes, .invalidOptions, .encodingFailed, .outOfMemory,
    ])
    func `every coding code keeps its name`(code: CodingError.Code) {
        let error = LoadError.wrapping(CodingError(code: code, message: "")) as? LoadError
        #expect(error?.code.description == code.description)
    }

    @Test(arguments: [
        DownloadError.Code.schemeNotAllowed, .userInformationInURL, .malformedHost, .portNotAllowed, .hostNotAllowed,
        .addressNotAllowed, .tooSlow, .unacceptableContentType, .refused, .decryptionFailed,
    ])
    func `every code of a download keeps its name`(code: DownloadError.Code) {
        let error = LoadError.wrapping(DownloadError(code: code, message: "")) as? LoadError
        #expect(error?.code.description == code.description)
    }

    @Test(arguments: [
        (CacheError.Code.diskFull, LoadError.Code.diskFull), (.cacheNotWritable, .cacheNotWritable),
        (.diskFault, .cacheFailed),
    ])
    func `store errors have codes of their own`(code: CacheError.Code, expected: LoadError.Code) {
        #expect(LoadError(storing: CacheError(code: code, message: "")).code == expected)
    }

    @Test func `the localized description is the message`() {
        let error: any Error = LoadError(code: .notInCache, message: "It is not there.")
        #expect((error as? any LocalizedError)?.errorDescription == "It is not there.")
    }
}
