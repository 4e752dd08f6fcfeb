# SPDX-License-Identifier: Apache-2.0
# Thin: Meson builds (meson.build), the scripts of tools/ do the rest. Needs nothing but make, sh and apt to start.

PREFIX = /usr/local
DESTDIR =

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

demo: ## build, train a small GPT for some seconds under stepscope, show the report
	@tools/setup demo
	@tools/build build --buildtype=release -Dtests=false
	@tools/demo

test: ## all tests of the gate: normal, ASan+UBSan, TSan; last line: N passed, N failed
	@tools/setup test
	@tools/run_tests

test-all: ## the same and the slow tests, with everything they can use installed
	@tools/setup all
	@tools/run_tests --all

bench: ## the benchmarks behind the numbers in README.md
	@tools/setup all
	@tools/bench

lint: ## format, spelling, folder rule, documents, function length, clang-tidy
	@tools/setup lint
	@tools/build --configure build-test
	@tools/lint

format: ## put all C files into shape
	@tools/setup lint
	@tools/lint --format

install: ## PREFIX=/usr/local, DESTDIR= for packagers
	@tools/setup demo
	@tools/build build --buildtype=release -Dtests=false
	@meson configure build --prefix "$(PREFIX)"
	@meson install -C build --destdir "$(DESTDIR)"
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi
	@[ -n "$(DESTDIR)" ] || [ "$(PREFIX)" = /usr/local ] || [ "$(PREFIX)" = /usr ] || \
		echo "install: programs find libstepscope.so below $(PREFIX) with LD_LIBRARY_PATH or -Wl,-rpath"

clean: ## remove the build directories
	rm -rf build build-*/

.PHONY: help demo test test-all bench lint format install clean
