# frozen_string_literal: true

require "fileutils"
require "open3"

module Bench
  # Results that are kept under version control: a file of runs, each with its command, commit, date, machine and
  # versions, and for each row and contestant the median of the rounds with the least and the greatest of them. A later
  # run replaces the rows that it measures again, so one file may be filled by several runs.
  class StoredResult
    DIGITS = 4

    # A figure without a round would be none, and the figures of a smoke run mean nothing.
    class Refused < StandardError; end

    attr_reader :runs

    # @param path [String]
    def initialize(path)
      @path = path
      @runs = File.exist?(path) ? JSON.parse(File.read(path), symbolize_names: true).fetch(:runs) : []
    end

    # The commit that last changed what is measured: commits that change pages or benchmarks leave it as it is.
    #
    # @return [String] with a plus sign where the checkout has changes of it
    def self.commit
      words, status = Open3.capture2("git", "log", "-1", "--abbrev=8", "--format=%h", "--", "lib", "ext",
                                     chdir: ROOT, err: File::NULL)
      return "unknown" unless status.success?

      changes, = Open3.capture2("git", "status", "--porcelain", "--", "lib", "ext", chdir: ROOT)
      changes.empty? ? words.strip : "#{words.strip}+"
    end

    # @param result [Hash] what Runner#run gave
    # @param command [String] that repeats it
    # @param commit [String]
    # @return [self]
    # @raise [Refused]
    def add(result, command:, commit: StoredResult.commit)
      raise Refused, "a --quick run is not stored" if result[:quick]

      run = { command:, commit:, **circumstances(result), rows: result.fetch(:rows).map { |row| row_of(row) } }
      keys = run[:rows].map { |row| row[:key] }
      @runs = [*@runs.filter_map { |earlier| without(earlier, keys) }, run]
      self
    end

    # Writes the file: a line for each contestant of a row, so that a change shows what has changed.
    #
    # @return [String] the path
    def write
      FileUtils.mkdir_p(File.dirname(@path))
      File.write(@path, "{\"runs\": [\n#{runs.map { |run| text(run) }.join(",\n")}\n]}\n")
      @path
    end

    # @return [Array(Hash, Hash), nil] the run and the row
    def find(row_key)
      runs.each do |run|
        row = run.fetch(:rows).find { |one| one.fetch(:key) == row_key }
        return [run, row] if row
      end
      nil
    end

    private

    def circumstances(result)
      environment = result.fetch(:environment).transform_keys(&:to_s)
      { date: environment.delete("date"), rounds: result.fetch(:rounds), environment:,
        contestants: result.fetch(:contestants).select { |one| one[:version] }
                           .map { |one| one.slice(:key, :label, :role, :version) } }
    end

    def row_of(row)
      taking_part = row.fetch(:sets).reject { |set| set[:exclusion] }
      row.slice(:key, :title, :unit, :better).merge(sets: taking_part.map { |set| set_of(set, row.fetch(:details)) })
    end

    def set_of(set, details)
      samples = SampleSet.new(set[:contestant], **set.slice(:samples, :failure, :exclusion))
      return { contestant: samples.contestant, failure: samples.failure || "no sample" } unless samples.complete?

      found = details.map(&:to_sym).to_h { |detail| [detail, short(samples.median(detail))] }
      { contestant: samples.contestant, rounds: samples.samples.size, median: short(samples.median),
        least: short(samples.min), greatest: short(samples.max), **found.compact }
    end

    def short(number) = number && (number.zero? ? 0 : number.round(DIGITS - 1 - Math.log10(number.abs).floor))

    def without(run, keys)
      rows = run.fetch(:rows).reject { |row| keys.include?(row.fetch(:key)) }
      run.merge(rows:) unless rows.empty?
    end

    def text(run)
      rows = run.fetch(:rows).map do |row|
        sets = row.fetch(:sets).map { |set| "   #{JSON.generate(set)}" }.join(",\n")
        "  #{JSON.generate(row.except(:sets))[..-2]},\"sets\":[\n#{sets}\n  ]}"
      end
      " #{JSON.generate(run.except(:rows))[..-2]},\"rows\":[\n#{rows.join(",\n")}\n ]}"
    end
  end
end
