# frozen_string_literal: true

require "support/bundle"
require "support/served_process"

# An example, served by `heddle serve` in the example's folder, with the gems of its own Gemfile if it
# needs any.
class ServedExample < ServedProcess
  EXAMPLES = File.expand_path("../../examples", __dir__)
  private_constant :EXAMPLES

  class << self
    # @return [Boolean] whether the gems of an example's Gemfile are installed for this Ruby
    def gems?(name) = Bundle.installed?(gemfile(name))

    # The environment in which Bundler finds what bin/setup installed.
    def bundle(name) = Bundle.environment(gemfile(name))

    private

    def gemfile(name) = File.join(EXAMPLES, name, "Gemfile")
  end

  # @param name [String] the example's folder in examples/
  # @param bundled [Boolean] whether it needs the gems of its Gemfile
  # @param environment [Hash] added to the process's environment
  # @param flags [Array<String>] of `heddle serve`
  def initialize(name, bundled: false, environment: {}, flags: [])
    environment = self.class.bundle(name).merge(environment) if bundled
    super([*HEDDLE, "serve", "--port", "0", *flags], environment: environment, folder: File.join(EXAMPLES, name))
  end

  # @return [Float] seconds that this many GETs took, all at once, each by a thread of ours
  # @yield [answer] each answer
  def all_at_once(count, path, &block)
    began = now
    Array.new(count) { Thread.new { get(path) } }.map(&:value).each(&block)
    now - began
  end

  # @return [Array<Array(Float, String)>] the lines of an answer that curl reads, with the seconds at which each came
  def lines_by_curl(curl, path)
    began = now
    IO.popen([curl, "--silent", "--show-error", "--no-buffer", at(path).to_s], err: %i[child out]) do |io|
      io.each_line.map { |line| [now - began, line] }
    end
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
