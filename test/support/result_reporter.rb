# frozen_string_literal: true

require "fileutils"
require "json"

module Heddle
  # Writes what a test process counted to the file named by HEDDLE_TEST_RESULT, for bin/test.
  class ResultReporter < Minitest::AbstractReporter
    def initialize(path)
      super()
      @path = path
      @counts = { passed: 0, failed: 0, skipped: 0 }
      @failed = []
      @skipped = []
    end

    # Who looks after a process that crashed or hangs finds in which test.
    def prerecord(klass, name) = File.write(running, "#{klass}##{name}")

    def record(result)
      name = "#{result.klass}##{result.name}"
      if result.skipped?
        @counts[:skipped] += 1
        @skipped << "#{name}: #{result.failure.message.lines.first.to_s.strip}"
      elsif result.passed?
        @counts[:passed] += 1
      else
        @counts[:failed] += 1
        @failed << "#{name}: #{result.failure.message.lines.first.to_s.strip[0, 200]}"
      end
    end

    def report
      FileUtils.rm_f(running)
      File.write(@path, JSON.generate(@counts.merge(failures: @failed, skips: @skipped)))
    end

    def passed? = @failed.empty?

    private

    def running = "#{@path}.running"
  end
end

$stdout.sync = true # what it has said is there when it crashes

Minitest.extensions << "heddle_result"

# Minitest calls this hook by its name.
def Minitest.plugin_heddle_result_init(_options)
  reporter << Heddle::ResultReporter.new(ENV.fetch("HEDDLE_TEST_RESULT"))
end
