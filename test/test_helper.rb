# frozen_string_literal: true

# Loaded first by every test. One file runs by itself: `ruby -Ilib -Itest test/x_test.rb`.

require_relative "../bin/support/gem_paths"
# By name: otherwise RubyGems reads the specifications of all gems until it finds one with such a file.
%w[minitest rack].each { |name| gem name }
require "minitest/autorun"

# What programs keep for their user, such as a certificate for development, is not the user's here.
ENV["XDG_STATE_HOME"] ||= File.expand_path("../tmp/state", __dir__)

# Minitest would look for plugins in every installed gem: 0.2 s of processor time a process. None is used here.
def Minitest.load_plugins = nil

# Under nohup(1) it is ignored, and the programs that tests start would ignore it, too.
trap("HUP", "DEFAULT")

module Heddle
  # What tests share; included in every test case.
  module TestHelpers
    ROOT = File.expand_path("..", __dir__)

    # The Debian packages of the programs that tests may ask for; bin/setup --system installs them.
    PACKAGES = File.readlines(File.join(ROOT, "bin/packages.txt"), chomp: true).filter_map do |line|
      program, package = line.sub(/#.*/, "").split
      [program, package] if package
    end.to_h.freeze

    # Skips the test, by name, when a program that it needs is not installed. In CI (CI=true) a
    # skipped test fails the run.
    # @return [String] the path of the program
    def need_program(name)
      found = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR).map { |folder| File.join(folder, name) }
                 .find { |path| File.executable?(path) && !File.directory?(path) }
      found or skip("needs the program #{name} (Debian package #{PACKAGES.fetch(name)}): bin/setup --system")
    end

    # How often a test repeats what it does to meet a race. The nightly run sets HEDDLE_TEST_REPEAT, a factor.
    # @return [Integer]
    def repetitions(count) = count * Integer(ENV.fetch("HEDDLE_TEST_REPEAT", 1))

    # The selector that this run is for, `nil` for the default one.
    def selector_under_test = ENV["HEDDLE_SELECTOR"]&.to_sym

    # Whether this is the nightly run, or one that is as thorough.
    def self.nightly? = ENV.fetch("HEDDLE_TEST_REPEAT", "1") != "1"

    # Whether this run tests what hardly depends on the selector: with the default one, and in the nightly with each.
    def self.thorough? = ENV["HEDDLE_SELECTOR"].nil? || nightly?

    # The option `mode` of a server that this run is for, as options; none for the default one.
    def self.mode_under_test = ENV["HEDDLE_MODE"] ? { mode: ENV["HEDDLE_MODE"].to_sym } : {}

    def mode_under_test = Heddle::TestHelpers.mode_under_test
  end
end

Minitest::Test.include(Heddle::TestHelpers)

# Every test can be run with protections on: HEDDLE_TEST_PROTECT=all, or their names with commas between.
if (names = ENV.fetch("HEDDLE_TEST_PROTECT", nil))
  require "heddle"
  Heddle.enable(*(names == "all" ? %i[offload preempt stall_report] : names.split(",").map(&:to_sym)))
end
require_relative "support/callback_check"
require_relative "support/result_reporter" if ENV["HEDDLE_TEST_RESULT"]
