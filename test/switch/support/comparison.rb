# frozen_string_literal: true

require_relative "check"

module Switch
  # Runs the checks of an application under both servers, and prints a row for each.
  class Comparison
    SERVERS = %w[puma heddle].freeze
    # Characters of a cell; the lines below the table say everything.
    CELL = 60
    private_constant :CELL

    # @param name [String]
    # @param application [Application]
    # @param smoke [Boolean] only the checks that are marked so
    # @param names [Array<String>] only these checks; all without any
    def initialize(name, application, smoke: false, names: [], out: $stdout)
      @name = name
      @application = application
      @out = out
      chosen = application.class.checks.select do |check|
        names.empty? ? check.smoke || !smoke : names.include?(check.name)
      end
      # Those of one environment together: the application is restarted for each.
      @checks = chosen.sort_by.with_index { |check, index| [check.at.to_s, index] }
    end

    # @return [self]
    def run
      step("makes the application") { @application.make }
      seen = SERVERS.map do |server|
        step("switches it to #{server}") { @application.use(server) }
        @checks.map { |check| observe(check, server) }
      ensure
        @application.stop
      end
      @rows = @checks.zip(*seen).map { |check, puma, heddle| [check, puma, heddle, check.verdict(puma, heddle)] }
      print_table
      self
    end

    # @return [Array(Integer, Integer)] checks that have passed, and those that have not
    def counts = @rows.partition { |row| row.last.passed }.map(&:size)

    private

    def step(text)
      started = now
      result = yield
      @out.puts format("%<name>s: %<text>s: %<seconds>.1f s", name: @name, text:, seconds: now - started)
      result
    end

    def observe(check, server)
      step("#{server}: #{check.name}") { check.observe(@application) }
    end

    def print_table
      @out.puts "", "| check | puma | heddle | verdict |", "| - | - | - | - |"
      @rows.each do |check, puma, heddle, verdict|
        @out.puts "| #{[check.name, cell(puma.text), cell(heddle.text), verdict.text].join(" | ")} |"
      end
      @rows.reject { |row| row.last.passed }.each do |check, puma, heddle|
        @out.puts "", "#{check.name}:", "  puma: #{puma.text}", "  heddle: #{heddle.text}"
      end
      @out.puts
    end

    def cell(text)
      line = text.tr("|\n", "/ ")
      line.size > CELL ? "#{line[0, CELL - 1]}…" : line
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
