# frozen_string_literal: true

module Heddle
  module CLI
    class Overview
      # The last minute of each loop as a line: how late it was by the height of a block, and a letter where it stood
      # still.
      class Loops
        # A lag below so many milliseconds is as high as its block.
        BOUNDS = [2, 5, 10, 20, 50, 100, 250, Float::INFINITY].freeze
        BLOCKS = "▁▂▃▄▅▆▇█".chars.freeze
        # The same for a terminal that knows only ASCII.
        PLAIN = "_.:-=+*#".chars.freeze
        # The letter of each cause (Stall::CAUSES), and its meaning.
        LETTERS = {
          "native" => ["N", "native code"], "native_with_gvl" => ["G", "native code that held Ruby's lock"],
          "ruby" => ["R", "Ruby code"], "waiting_for_gvl" => ["W", "waited for Ruby's lock"],
          "garbage_collection" => ["C", "garbage collection"]
        }.freeze
        # A lag of so many milliseconds has the colour of a stall.
        BAD = 100
        # How many cells of a report make one of the drawing: a minute in 60, 120 or 240 columns.
        GROUPS = [4, 2, 1].freeze
        # Columns beside the drawing: the worker before it, the worst after it.
        BESIDE = 19
        private_constant :BOUNDS, :BLOCKS, :PLAIN, :LETTERS, :BAD, :GROUPS, :BESIDE

        class << self
          # @param cause [String] of a stall
          # @return [String] one letter
          def letter(cause) = LETTERS.fetch(cause, ["?"]).first
        end

        # @param workers [Array<Hash>] see Server::WorkerStatus#to_h
        # @param columns [Integer]
        # @param plain [Boolean] whether nothing but ASCII may be drawn
        def initialize(workers, columns:, plain: false)
          @loops = workers.flat_map { |one| (one[:loops] || []).map { |found| [one[:index], found] } }
          @columns = columns
          @blocks = plain ? PLAIN : BLOCKS
        end

        # @return [Array<Array>] lines, see {Screen}
        def lines
          return [] if @loops.empty?

          [[["lag of the loops in the last #{span.round} s", :title], " (#{@blocks.first} below 2 ms, " \
                                                                      "#{@blocks.last} from 250 ms)"],
           *@loops.map { |index, found| line(index, found) }, *legend]
        end

        private

        def span = @loops.first.last.then { |found| found[:step] * found[:lags].size }

        # How many cells are drawn as one, so that it fits.
        def group(cells) = GROUPS.reverse.find { |size| cells / size <= @columns - BESIDE } || GROUPS.first

        def line(index, found)
          size = group(found[:lags].size)
          cells = found[:lags].each_slice(size).map { |lags| lags.compact.max }
          marks = marks(found[:stalls], cells.size, found[:step] * size)
          worst = [*found[:lags].compact, *found[:stalls].map { |one| one[:seconds] * 1e3 }].max
          ["#{index.to_s.rjust(3)}  ", *drawing(cells, marks), "  max #{Format.duration(worst && (worst / 1e3))}"]
        end

        def drawing(cells, marks)
          signs = cells.each_with_index.map { |lag, i| marks[i] ? [marks[i], :bad] : [block(lag), style(lag)] }
          signs.chunk_while { |one, other| one.last == other.last }
               .map { |run| [run.map(&:first).join, run.first.last] }
        end

        def style(lag) = (:bad if lag && lag >= BAD)

        def block(lag) = lag ? @blocks[BOUNDS.index { |bound| lag < bound }] : " "

        # @return [Hash{Integer => String}] the letters by their cells
        def marks(stalls, cells, step)
          stalls.each_with_object({}) do |one, marks|
            first = cells - 1 - (one[:ago] / step).floor
            last = cells - 1 - ([one[:ago] - one[:seconds], 0].max / step).floor
            ([first, 0].max..last).each { |cell| marks[cell] = self.class.letter(one[:cause]) }
          end
        end

        def legend
          seen = @loops.flat_map { |_, found| found[:stalls].map { |one| one[:cause] } }.uniq
          words = LETTERS.filter_map { |cause, (letter, text)| "#{letter} #{text}" if seen.include?(cause) }
          words.empty? ? [] : ["     it stood still: #{words.join(", ")}"]
        end
      end
    end
  end
end
