# frozen_string_literal: true

module Bench
  # Runs the rows that were asked for, and collects the samples.
  class Runner
    # @param suite [Suite]
    # @param options [Options]
    # @param output [IO] for a line of progress a sample
    def initialize(suite, options, output: $stderr)
      @suite = suite
      @options = options
      @output = output
      @flags = yjit? ? ["--yjit"] : []
    end

    # @return [Boolean] whether the children run with YJIT
    def yjit? = @options.yjit? && Environment.yjit?

    # @return [Hash] see Report
    def run
      environment = Environment.new(yjit: yjit?).to_h
      probed = contestants.to_h { |contestant| [contestant, probe(contestant)] }
      present = probed.select { |_, answer| answer[:version] }.keys
      { suite: @suite.name, title: @suite.title, rounds: @options.rounds, quick: @options.quick?, partial: partial?,
        environment:, reference: @suite.reference, charts: @suite.charts, legend: @suite.legend,
        contestants: probed.map { |contestant, answer| describe(contestant, answer) },
        rows: rows.map { |row| run_row(row, present) } }
    end

    private

    def rows = @options.only ? @options.only.map { |key| @suite.row(key) } : @suite.rows

    # A run of all rows by name is a whole one.
    def partial? = @suite.rows.any? { |row| !rows.include?(row) }

    def contestants
      @options.contestants ? @options.contestants.map { |key| @suite.contestant(key) } : @suite.participants
    end

    def describe(contestant, answer)
      { key: contestant.key, label: contestant.label, role: contestant.role, version: answer[:version],
        missing: answer[:failure] }
    end

    # @return [Hash] :version, or :failure with the reason why it is not here
    def probe(contestant)
      @suite.probe(contestant, ruby_flags: @flags)
            .tap { |answer| say("#{contestant.key}: #{answer[:version] || "not here: #{answer[:failure]}"}") }
    rescue Child::Failed => e
      say("#{contestant.key}: not here: #{e.message}")
      { failure: e.message }
    end

    def run_row(row, present)
      sets = present.to_h { |contestant| [contestant, SampleSet.new(contestant.key, failure: nil)] }
      excluded, taking_part = present.partition { |contestant| row.excludes(contestant) }
      excluded.each { |contestant| sets[contestant].exclude(row.excludes(contestant)) }
      taking_part = pair(taking_part, sets) if @options.quick? && @options.contestants.nil?
      measure(row, taking_part, sets)
      { key: row.key, title: row.title, unit: row.unit, better: row.better, compared: row.compared?,
        details: row.details, shown: row.shown, goals: row.goals.map(&:to_h), sets: sets.values.map(&:to_h) }
    end

    # One of Heddle's and one of the others show that a row runs.
    def pair(taking_part, sets)
      chosen = taking_part.partition { |contestant| contestant.role == :heddle }.filter_map(&:first)
      (taking_part - chosen).each { |contestant| sets[contestant].exclude("left out by --quick") }
      chosen
    end

    def measure(row, taking_part, sets)
      row.around(@options.quick?) do |extra|
        size = row.sizes(quick: @options.quick?).merge(extra)
        Interleaving.each(taking_part, @options.rounds) do |round, contestant|
          sample(row, contestant, size, round, sets[contestant])
        end
      end
    rescue Child::Failed => e
      taking_part.each { |contestant| sets[contestant].fail(e.message) }
      say("#{row.key}: #{e.message}")
    end

    # @return [Symbol] :drop when there is no use in another round
    def sample(row, contestant, size, round, set)
      sample = @suite.sample(row, contestant, size, ruby_flags: @flags)
      set.add(sample)
      say("#{row.key} #{round}/#{@options.rounds} #{contestant.key}: #{Figure.format(sample[:value])} #{row.unit}")
      :keep
    rescue Child::Failed => e
      set.fail(e.message)
      say("#{row.key} #{round}/#{@options.rounds} #{contestant.key}: failed: #{e.message}")
      :drop
    end

    def say(text) = @output.puts(text)
  end
end
