// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import TintypeCluster

struct ObjectListingTests {
    private func listing(_ content: String) -> ObjectListing? {
        let start =
            #"<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">"#
        return ObjectListing(Data("\(start)\(content)</ListBucketResult>".utf8))
    }

    @Test func `the last page has keys and no token`() throws {
        let listing = try #require(
            self.listing(
                """
                <Name>b</Name><Prefix>cache/</Prefix><IsTruncated>false</IsTruncated>
                <Contents><Key>cache/a</Key><Size>3</Size><Owner><ID>7</ID></Owner></Contents>
                <Contents><Key>cache/b</Key></Contents>
                """
            )
        )
        #expect(listing.keys == ["cache/a", "cache/b"])
        #expect(listing.nextPage == nil)
    }

    @Test func `a page before the last has the token of the next one`() throws {
        let listing = try #require(
            self.listing(
                "<IsTruncated>true</IsTruncated><Contents><Key>a</Key></Contents><NextContinuationToken>x&amp;y=</NextContinuationToken>"
            )
        )
        #expect(listing.nextPage == "x&y=")
    }

    @Test(arguments: ["", "<Contents/>", "<IsTruncated>false</IsTruncated>"])
    func `a page without objects has no keys`(content: String) throws {
        #expect(try #require(self.listing(content)).keys.isEmpty)
    }

    @Test(arguments: [
        ("a&amp;b", "a&b"), ("&lt;&gt;&quot;&apos;", "<>\"'"), ("&#38;&#x26;&#xE9;", "&&é"), ("é😀", "é😀"),
        ("&amp;lt;", "&lt;"), ("&unknown;", "&unknown;"), ("a&", "a&"), ("&#xD800;", "&#xD800;"),
    ])
    func `entities in keys are characters`(text: String, key: String) throws {
        #expect(try #require(self.listing("<Contents><Key>\(text)</Key></Contents>")).keys == [key])
    }

    @Test(arguments: [
        "", "text", "<html></html>", "<Error><Code>NoSuchBucket</Code></Error>",
        "<ListBucketResult><Contents><Key>a</Key></Contents>", "<ListBucketResult><Contents><Key>a</Key",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
    ])
    func `anything but a whole list is refused`(text: String) {
        #expect(ObjectListing(Data(text.utf8)) == nil)
    }
}
