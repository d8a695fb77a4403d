# frozen_string_literal: true

module Bench
  # What a row wants of Heddle: a share of what another one reaches, or a figure of its own.
  class Goal
    NAMES = { value: "", cpu_us: " µs of CPU", mean_ms: " ms mean", p50_ms: " ms p50", p99_ms: " ms p99",
              objects: " objects", gone_ms: " ms until gone", errors: " errors" }.freeze
    BEST = "best"

    # @param of [Symbol] :value, or a detail of the row
    # @param at_least [Numeric, nil]
    # @param at_most [Numeric, nil]
    # @param than [String, nil] the goal is a ratio to this contestant, or to the best of the peers (BEST): how many
    #   times as good the value is, or the quotient of a detail
    # @param unit [String] of a figure that is compared with no one
    # @param whose [String, nil] the contestant that has the goal; nil: the best of Heddle's
    def initialize(of: "value", at_least: nil, at_most: nil, than: nil, unit: nil, whose: nil)
      @of = of.to_sym
      @at_least = at_least
      @at_most = at_most
      @than = than
      @unit = unit
      @whose = whose
    end

    # @param row [RowResult]
    # @return [String] the goal and how it stands: "≥ 1.2 × best: 1.31, met"
    def verdict(row)
      figure = figure(row)
      return "#{words}: –" unless figure

      "#{words}: #{@than ? figure.round(2) : Figure.format(figure)}, #{met?(figure) ? "met" : "missed"}"
    end

    # @return [Hash] what `new` takes
    def to_h = { of: @of, at_least: @at_least, at_most: @at_most, than: @than, unit: @unit, whose: @whose }.compact

    private

    def words
      bound = "#{"#{@whose} " if @whose}#{bound_words}"
      return "#{bound} × #{@than}#{NAMES.fetch(@of)}" if @than

      @unit ? "#{bound} #{@unit}" : "#{bound}#{NAMES.fetch(@of)}"
    end

    def bound_words = @at_least ? "≥ #{grouped(@at_least)}" : "≤ #{grouped(@at_most)}"

    def grouped(number) = number.is_a?(Integer) ? Figure.grouped(number) : number.to_s

    def figure(row)
      whose = @whose ? row.set(@whose) : row.best_heddle
      return whose&.median(@of) unless @than

      return quotient(whose, row.set(@than)) unless @of == :value

      @than == BEST ? row.advantage(whose) : row.ratio(whose, row.set(@than))
    end

    def quotient(whose, other)
      whose.median(@of).fdiv(other.median(@of)) if whose&.complete? && other&.complete?
    end

    def met?(figure) = @at_least ? figure >= @at_least : figure <= @at_most
  end
end
