// SPDX-License-Identifier: Apache-2.0

public import Tintype

extension LoaderStatistics {
    /// The figures as Prometheus reads them (text exposition format, version 0.0.4), for a server's `/metrics`.
    ///
    /// Counters rise as long as the loader lives. The figures of the cache and of the downloads include other loaders that
    /// share them.
    ///
    /// ```swift
    /// let text = await loader.statistics().prometheusText(prefix: "images")
    /// ```
    ///
    /// - Parameter prefix: The beginning of each name: letters, digits and `_`; default `tintype`.
    /// - Returns: The lines, for a response of the type `text/plain; version=0.0.4`.
    public func prometheusText(prefix: String = "tintype") -> String {
        var text = PrometheusText(prefix: prefix)
        self.writeLoads(&text)
        self.writeDurations(&text)
        self.writeCaches(&text)
        self.writeDownloads(&text)
        return text.text
    }

    private func writeLoads(_ text: inout PrometheusText) {
        let loads = LoadActivity.Product.allCases.map { ($0.rawValue, self[$0]) }
        text.begin("loads_total", "counter", "Loads that began.")
        for (product, loads) in loads { text.add(loads.started, [("product", product)]) }
        text.begin("loads_joined_total", "counter", "Callers and loads that joined a load under way.")
        for (product, loads) in loads { text.add(loads.joined, [("product", product)]) }
        text.begin("loads_active", "gauge", "Loads that run now.")
        for (product, loads) in loads { text.add(loads.active, [("product", product)]) }
        text.begin("loads_hits_total", "counter", "Products that loads found in a tier, or callers ready on disk.")
        for (product, loads) in loads { text.add(loads.hits, product) }
        text.begin("loads_finished_total", "counter", "Loads that made their product, by where it came from.")
        for (product, loads) in loads { text.add(loads.finished, product) }
        text.begin("loads_failed_total", "counter", "Loads that failed, by the code of the error.")
        for (product, loads) in loads {
            for (code, count) in loads.failed.sorted(by: { $0.key < $1.key }) {
                text.add(count, [("product", product), ("code", code)])
            }
        }
        text.write(
            "remembered_failures_total",
            "counter",
            "Remembered failures that stood for an origin's answer.",
            self.rememberedFailures
        )
        text.begin("loads_refused_total", "counter", "Loads that the network policy refused.")
        for (product, loads) in loads { text.add(loads.refused, [("product", product)]) }
        text.begin("loads_cancelled_total", "counter", "Loads that every caller left.")
        for (product, loads) in loads { text.add(loads.cancelled, [("product", product)]) }
        text.write(
            "thumbnails_of_originals_total",
            "counter",
            "Thumbnails that were made of the decoded original in memory.",
            self.thumbnailsOfOriginals
        )
        text.write("decodes_total", "counter", "Images that were made of their bytes.", self.decodes)
    }

    private func writeDurations(_ text: inout PrometheusText) {
        text.begin("load_duration_seconds", "histogram", "How long loads took that made their product.")
        text.add(self.imageDuration, [("product", "image")])
        text.add(self.bytesDuration, [("product", "bytes")])
        text.add(self.encodedDuration, [("product", "encoded")])
        text.begin("load_part_duration_seconds", "histogram", "How long the parts of loads took.")
        let parts = [
            ("queue", self.queue), ("first_byte", self.firstByte), ("transfer", self.transfer), ("disk", self.disk),
            ("gate", self.gate), ("lane", self.lane), ("decode", self.decode), ("transform", self.transform),
            ("encode", self.encode),
        ]
        for (name, histogram) in parts { text.add(histogram, [("part", name)]) }
    }

    private func writeCaches(_ text: inout PrometheusText) {
        let memory = self.cache.memory
        text.write("memory_entries", "gauge", "Images in memory.", memory.count)
        text.write("memory_bytes", "gauge", "Bytes that the images in memory are counted with.", memory.cost)
        text.write("memory_hits_total", "counter", "Look-ups in memory that found an image.", memory.hits)
        text.write("memory_misses_total", "counter", "Look-ups in memory that found none.", memory.misses)
        text.write("memory_evictions_total", "counter", "Images that were dropped for room.", memory.evictions)
        text.write("encoded_entries", "gauge", "Encoded images in memory.", memory.encodedCount)
        text.write("encoded_bytes", "gauge", "Bytes that they are counted with.", memory.encodedCost)
        text.write("encoded_hits_total", "counter", "Look-ups that found an encoded image.", memory.encodedHits)
        text.write("encoded_misses_total", "counter", "Look-ups that found none.", memory.encodedMisses)
        let disks = self.cache.disks.map { ([("directory", $0.directory)], $0) }
        func write(_ name: String, _ type: String, _ help: String, _ value: (DiskStatistics) -> Int) {
            text.begin(name, type, help)
            for (labels, disk) in disks { text.add(value(disk), labels) }
        }
        write("disk_entries", "gauge", "Entries on disk.") { $0.entryCount }
        write("disk_bytes", "gauge", "Bytes of the entries' files.") { $0.byteCount }
        write("disk_limit_bytes", "gauge", "Bytes that the files may take.") { $0.sizeLimit }
        write("disk_hits_total", "counter", "Look-ups on disk that found an entry.") { $0.hits }
        write("disk_misses_total", "counter", "Look-ups on disk that found none.") { $0.misses }
        write("disk_evictions_total", "counter", "Entries that were removed to keep the limit.") { $0.evictions }
        write("disk_store_errors_total", "counter", "Stores that failed.") { $0.storeErrors }
        func writeTier(_ name: String, _ help: String, _ value: (TierStatistics) -> Int) {
            text.begin(name, "counter", help)
            for tier in self.cache.tiers { text.add(value(tier), [("tier", tier.name)]) }
        }
        writeTier("tier_hits_total", "Look-ups in a byte tier that found an entry.") { $0.hits }
        writeTier("tier_misses_total", "Look-ups in a byte tier that found no entry.") { $0.misses }
        writeTier("tier_read_failures_total", "Look-ups that failed or took too long.") { $0.readFailures }
        writeTier("tier_write_failures_total", "Stores and removals that failed.") { $0.writeFailures }
        writeTier("tier_fills_total", "Entries of farther tiers that were stored in this one.") { $0.fills }
    }

    private func writeDownloads(_ text: inout PrometheusText) {
        let downloads = self.downloads
        text.write("downloads_total", "counter", "Transfers that were asked for.", downloads.started)
        text.write("downloads_shared_total", "counter", "Callers that joined a transfer.", downloads.shared)
        text.write("downloads_succeeded_total", "counter", "Transfers that gave a body.", downloads.succeeded)
        text.write("downloads_failed_total", "counter", "Transfers that failed.", downloads.failed)
        text.write("downloads_cancelled_total", "counter", "Transfers that every caller left.", downloads.cancelled)
        text.write("downloads_refused_total", "counter", "What the network policy refused.", downloads.refused)
        text.write("downloads_retried_total", "counter", "Tries after the first ones.", downloads.retried)
        text.write("downloads_active", "gauge", "Transfers in progress.", downloads.active)
        text.write("downloads_waiting", "gauge", "Transfers that wait.", downloads.waiting)
        text.write("downloads_bytes_total", "counter", "Bytes of body received.", Int(downloads.receivedBytes))
        text.write("bodies_bytes", "gauge", "Bytes of bodies in memory.", downloads.bodyBytes)
    }
}

extension PrometheusText {
    /// Adds a value for each source of a product.
    fileprivate mutating func add(_ values: [LoadSource: Int], _ product: String) {
        for (source, count) in values.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            self.add(count, [("product", product), ("source", source.rawValue)])
        }
    }
}
