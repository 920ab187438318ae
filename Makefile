# Tintype: the targets that people and continuous integration use.
# `make demo` and `make test` work on a fresh Debian 12 with the Swift toolchain.

SWIFT ?= swift
export SWIFT
SWIFT_SOURCES = Package.swift Sources Tests Benchmarks Checks Examples Fuzz

CORPUS ?= ../shared/corpus
FUZZ_SECONDS ?= 600
HUNT_SECONDS ?= 1200
HUNT_CODERS ?= jpeg png gif webp encode-jpeg encode-png encode-gif encode-webp
ATTACK_SECONDS ?= 600
TORTURES ?= CacheTorture DownloadTorture LoaderTorture CommandTorture FleetTorture

RELEASE = $$($(SWIFT) build -c release --show-bin-path)

FUZZERS = FuzzJPEG FuzzJPEGEntropy FuzzJPEGTransform FuzzPNG FuzzWebP FuzzGIF FuzzTransforms FuzzImageAddress FuzzRequestHead

# Suites without origins, processes and large images, and a few with them, for `make smoke`, and the test targets with them.
PURE_SUITES = 'TintypeConcurrencyTests|TintypeHTTPTests|TintypeImageTests|LoadTableTests|TransferQueueTests|MemoryCacheTests|MemoryConcurrencyTests|DecodeLanesTests'
# The same without the tests of the table of loads, which use one thread and take minutes under the thread sanitizer.
THREAD_SUITES = 'TintypeConcurrencyTests|TintypeHTTPTests|TintypeImageTests|TransferQueueTests|MemoryCacheTests|MemoryConcurrencyTests|DecodeLanesTests'
THREAD_TARGETS = TintypeConcurrencyTests,TintypeHTTPTests,TintypeImageTests,TintypeDownloadingTests,TintypeCachingTests,TintypeCodingTests
PURE_TARGETS = $(THREAD_TARGETS),TintypeFlightsTests,TintypeTests,TintypeServerTests
# Suites that need no trait of the package, for `make smallest`, and the test targets with them.
SMALLEST_TARGETS = TintypeCodingTests,TintypeDownloadingTests,TintypeHTTPTests
SMALLEST_SUITES = 'TraitTests|ContentCodingTests|PNG[A-Za-z]*Tests|GIFDamageTests|TintypeHTTPTests'
LOADING_SUITES = 'TintypeTests\.(Coalescing|Loading|CacheUse|Shutdown)Tests|TintypeDownloadingTests\.(Sharing|Transfer|Streaming|Crowd)Tests|DiskCacheTests|TintypeServerTests\.Served(Status|Caching)Tests'

.PHONY: help demo test docs examples lint format build build-all smallest bench counts fleet fleet-compare fleet-test conformance fuzz hunt torture attack page readme neighbours smoke smoke-release smoke-thread sanitize sanitize-thread sanitize-address clean

help:
	@echo 'make demo      build for release, load real photographs over HTTP, show the times'
	@echo 'make test      run all tests'
	@echo 'make build     build the library and the command for release: .build/release/tintype'
	@echo 'make build-all build the packages beside the root: Benchmarks, Checks, Examples, Fuzz'
	@echo 'make smallest  build without the traits of the package, and run the tests that need none'
	@echo 'make docs      make the documentation site in .build/docs; compile the examples in the comments,'
	@echo '               and compare the public types with Docs/public-types.txt'
	@echo 'make examples  test the examples, with a Redis server'
	@echo 'make lint      check format and house rules'
	@echo 'make format    format all Swift and C files'
	@echo 'make bench     measure against the peers (minutes; results in Benchmarks/results)'
	@echo 'make counts    compare counted rows with Benchmarks/Thresholds: allocations, suspensions, the walk'
	@echo 'make fleet     simulate fleets of up to 1,000 servers, and draw the charts of Docs/fleet.md (minutes)'
	@echo 'make fleet-compare  compare the simulation with three real servers (minutes)'
	@echo 'make fleet-test  test that simulation'
	@echo 'make conformance  decode the corpus and count right, refused and wrong files;'
	@echo '                  turn its JPEGs without loss and compare their coefficients'
	@echo 'make fuzz      fuzz every coder, FUZZ_SECONDS=600 each'
	@echo 'make hunt      search for small files and for images that take long or much memory,'
	@echo '               HUNT_SECONDS=1200 a coder'
	@echo 'make torture   kill processes that use a disk cache, flip its bits, fill its disk;'
	@echo '               ten thousand downloads at once, a storm of cancellations;'
	@echo '               a thousand images loaded in every way by tasks that leave at random;'
	@echo '               storms of reloads, for 300 s, none of which may leave an older image;'
	@echo '               the command under all limits of descriptors, memory and threads;'
	@echo '               servers that share a Redis, whose processes are killed, paused and cut off for 600 s'
	@echo 'make attack    load from hostile origins beside healthy ones, ATTACK_SECONDS=600'
	@echo "make page      test the server's web page in headless Chromium"
	@echo "make readme    build and run the README's first program"
	@echo 'make neighbours  build a program beside targets with the names of other packages'
	@echo 'make smoke     run a part of the tests optimised, and a part under the thread sanitizer'
	@echo 'make sanitize  run all tests under the thread and the address sanitizer, and the torture of the'
	@echo '               loader under the first'
	@echo '               (sanitize-thread and sanitize-address: under one)'
	@echo 'make clean     remove what was built'

demo:
	@.ci/setup build
	@echo 'Building for release; the first time takes some minutes.'
	@$(SWIFT) build -c release --product tintype
	@.ci/beside Examples -c release --product TintypeDemo
	@"$(RELEASE)/TintypeDemo"

test:
	@.ci/setup test
	$(SWIFT) test --explicit-target-dependency-import-check error

build:
	@.ci/setup build
	$(SWIFT) build -c release --product tintype

# Debug builds: they show that everything compiles, and share what the tests have compiled.
build-all:
	@.ci/setup examples
	@for package in Benchmarks Checks Examples Fuzz; do \
	    echo "$$package:"; .ci/beside $$package || exit 1; \
	done

# The examples run beside a real Redis server.
examples:
	@.ci/setup examples
	@.ci/beside Examples --build-tests
	$(SWIFT) test --package-path Examples --scratch-path .build --skip-build

# All need what the tests have compiled.
docs:
	@.ci/setup build
	@$(SWIFT) build
	@.ci/docs
	@.ci/public-types
	@.ci/doc-examples

lint:
	@.ci/setup lint
	@.ci/lint

format:
	$(SWIFT) format --in-place --parallel --recursive $(SWIFT_SOURCES)
	git ls-files -z '*.c' '*.h' | xargs -0 clang-format -i

# The other test targets compile only with all traits. libcurl may load libbrotli and libzstd by itself.
smallest:
	@.ci/setup test
	TINTYPE_TESTS=$(SMALLEST_TARGETS) $(SWIFT) test --disable-default-traits --disable-xctest \
	    --scratch-path .build-smallest --filter $(SMALLEST_SUITES)
	@! readelf -d .build-smallest/debug/tintype | grep -E 'NEEDED.*lib(brotli|zstd|lcms2|isal|webp)'

bench:
	@.ci/setup bench
	@# The rows of the server run the command, which the package of the benchmarks does not build.
	$(SWIFT) build -c release --product tintype
	.ci/beside Benchmarks -c release --product TintypeBenchmarks
	"$(RELEASE)/TintypeBenchmarks" $(BENCH)

counts:
	@.ci/setup bench
	@.ci/walk --check
	@.ci/beside Benchmarks -c release --product TintypeBenchmarks
	@Benchmarks/check-counts "$(RELEASE)/TintypeBenchmarks"

# The simulation needs no library: both build in seconds.
fleet:
	@.ci/beside Benchmarks -c release --product FleetSimulation
	@Benchmarks/FleetSimulation/run "$(RELEASE)/FleetSimulation"

fleet-compare:
	@.ci/setup bench
	$(SWIFT) build -c release --product tintype
	@.ci/beside Benchmarks -c release --product FleetSimulation
	@Benchmarks/FleetSimulation/compare "$(RELEASE)/tintype" "$(RELEASE)/FleetSimulation" 150

fleet-test:
	@.ci/beside Benchmarks --product tintype-benchmarksPackageTests
	$(SWIFT) test --package-path Benchmarks --scratch-path .build --skip-build --disable-xctest

conformance:
	@.ci/setup build
	@.ci/beside Checks -c release --product TintypeConformance
	@"$(RELEASE)/TintypeConformance"

# SwiftPM's own address sanitizer flag drops the coverage; the compiler's keeps both.
fuzz:
	@.ci/setup build
	@for fuzzer in $(FUZZERS); do Fuzz/run $$fuzzer $(FUZZ_SECONDS) $(CORPUS) || exit 1; done

# Every coder is searched, also behind one that has a file over its budget.
hunt:
	@.ci/setup build
	@.ci/beside Checks -c release --product SlowFiles
	@failed=0; for coder in $(HUNT_CODERS); do \
	    "$(RELEASE)/SlowFiles" hunt $$coder $(HUNT_SECONDS) || failed=1; \
	done; exit $$failed

# Every part runs, also behind one that has failed. The downloads need 12,000 descriptors. CacheTorture is a program of the
# root, because tests run it as well.
torture:
	@.ci/setup test
	@$(SWIFT) build -c release --product tintype
	@failed=; for part in $(TORTURES); do \
	    echo "$$part:"; \
	    case $$part in CacheTorture) package=. ;; *) package=Checks ;; esac; \
	    .ci/beside $$package -c release --product $$part && \
	    "$(RELEASE)/$$part" || failed="$$failed $$part"; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

attack:
	@.ci/setup attack
	.ci/beside Checks -c release --product HostileOrigins
	"$(RELEASE)/HostileOrigins" $(ATTACK_SECONDS)

# The optimiser has bugs that no debug build shows; the suites are those of few seconds.
smoke-release:
	@.ci/setup test
	TINTYPE_TESTS=$(PURE_TARGETS) $(SWIFT) test --disable-xctest -c release -Xswiftc -enable-testing --scratch-path .build-release \
	    --filter $(PURE_SUITES) --filter $(LOADING_SUITES)

smoke-thread:
	@.ci/setup test
	TINTYPE_TESTS=$(THREAD_TARGETS) SANITIZE_THREAD=1 $(SWIFT) test --disable-xctest --sanitize=thread \
	    --scratch-path .build-thread \
	    --filter $(THREAD_SUITES)

# Chromium is large, so continuous integration leaves it out.
page:
	@.ci/setup page
	@$(SWIFT) build --product tintype
	@.ci/page

readme:
	@.ci/setup build
	@.ci/readme

neighbours:
	@.ci/setup build
	@.ci/neighbours

smoke: smoke-release smoke-thread

sanitize: sanitize-thread sanitize-address

# `SANITIZE_THREAD` swaps the lock for one that the sanitizer sees.
sanitize-thread:
	@.ci/setup test
	SANITIZE_THREAD=1 $(SWIFT) test --sanitize=thread --scratch-path .build-thread
	SANITIZE_THREAD=1 BUILD_FOLDER=.build-thread .ci/beside Checks --sanitize=thread --product LoaderTorture
	.build-thread/debug/LoaderTorture

# XCTest's own runner, which has no tests here, leaks. The sanitizer takes for leaks what only pointers lead to that have
# bits of Swift's in them (static values, weak references), and cannot look where a test permits no thread.
sanitize-address:
	@.ci/setup test
	ASAN_OPTIONS=detect_leaks=0 $(SWIFT) test --disable-xctest --sanitize=address --scratch-path .build-address

clean:
	rm -rf .build .build-smallest .build-release .build-thread .build-address Benchmarks/.venv Benchmarks/results Tests/.venv
