# frozen_string_literal: true

require_relative "probe"

module Switch
  # What a check has seen under one server; `error` when it has not seen what every server has to show.
  Observation = Data.define(:value, :error) do
    def text = error || value.to_s
  end

  # A number that is compared as a number: Heddle's may be `allowed` times Puma's and `slack` more.
  Figure = Data.define(:number, :unit, :allowed, :slack) do
    def initialize(number:, unit:, slack:, allowed: 1.0) = super

    def to_s = "#{number.round(1)} #{unit}"

    def no_worse?(other) = number <= (other.number * allowed) + slack
  end

  Verdict = Data.define(:text, :passed)

  # One question to a served application. The block runs in a {Probe} and returns what it has seen; it raises when that
  # is wrong under any server.
  #
  # - at: the environment in which the application is to be served, `nil` when the check starts what it needs
  # - smoke: whether .ci/run has it, too
  # - known: why Heddle differs on purpose
  Check = Data.define(:name, :at, :smoke, :known, :block) do
    # @return [Observation]
    def observe(application)
      served = at && application.served(at)
      Observation.new(value: Probe.new(application, served).instance_exec(&block), error: nil)
    rescue StandardError => e
      place = e.backtrace.to_a.first(2).map { |line| line.delete_prefix("#{__dir__}/") }.join(" ← ")
      Observation.new(value: nil, error: "#{e.class}: #{e.message} (#{place})")
    end

    # @param puma [Observation]
    # @param heddle [Observation]
    # @return [Verdict]
    def verdict(puma, heddle)
      return Verdict.new(text: "failed", passed: false) if puma.error || heddle.error
      return figures(puma.value, heddle.value) if heddle.value.is_a?(Figure)
      return Verdict.new(text: "same", passed: true) if puma.value == heddle.value

      known ? Verdict.new(text: "known: #{known}", passed: true) : Verdict.new(text: "differs", passed: false)
    end

    private

    def figures(puma, heddle)
      heddle.no_worse?(puma) ? Verdict.new(text: "no worse", passed: true) : Verdict.new(text: "worse", passed: false)
    end
  end

  # Extends an application's class with its list of checks, which it loads from its folder `checks`.
  module Checks
    # @return [Array<Check>]
    def checks = @checks ||= []

    # @see Check
    def check(name, at: nil, smoke: false, known: nil, &block)
      checks << Check.new(name:, at:, smoke:, known:, block:)
    end
  end
end
