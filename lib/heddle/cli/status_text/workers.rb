# frozen_string_literal: true

module Heddle
  module CLI
    class StatusText
      # The table of the workers, one line for each.
      class Workers
        # The heading of each column, and a lambda that returns a worker's cell.
        COLUMNS = {
          "worker" => ->(one, _) { one[:index] }, "pid" => ->(one, _) { one[:pid] },
          "state" => ->(one, _) { one[:state] }, "req/s" => ->(_one, rate) { rate && Format.rate(rate) },
          "running" => ->(one, _) { one[:running] }, "waiting" => ->(one, _) { one[:waiting] },
          "transit" => ->(one, _) { one[:transit] }, "idle" => ->(one, _) { one[:idle] },
          "lag" => ->(one, _) { Format.duration(one[:lag]) },
          "fibers" => ->(one, _) { one[:fibers] }, "memory" => ->(one, _) { Format.bytes(one[:pss] || one[:memory]) },
          "gc" => ->(one, _) { one.dig(:gc, :count) },
          "up" => ->(one, _) { Format.duration(one[:uptime]) }
        }.freeze
        # The columns that are dropped, in this order, until the table is narrow enough.
        DISPENSABLE = %w[gc fibers idle up].freeze
        private_constant :COLUMNS, :DISPENSABLE

        # @param workers [Array<Hash>] see Server::WorkerStatus#to_h
        # @param columns [Integer]
        # @yieldparam worker [Hash]
        # @yieldreturn [Numeric, nil] requests a second of the worker
        def initialize(workers, columns:, &rate)
          @workers = workers
          @columns = columns
          @rate = rate
        end

        # @return [Array<Array>] the lines, as {Screen} expects them
        def lines
          table = COLUMNS.to_h do |name, cell|
            [name, [name, *@workers.map { |one| cell.call(one, @rate.call(one)).to_s }]]
          end
          DISPENSABLE.each { |name| table.delete(name) if width(table) > @columns }
          rows = table.values.map { |cells| pad(cells) }.transpose.map { |cells| cells.join("  ") }
          [[[rows.first, :title]], *rows.drop(1).zip(@workers).map { |row, one| styled(row, one) }]
        end

        private

        def pad(cells)
          width = cells.map(&:length).max
          cells.map { |cell| cell.rjust(width) }
        end

        def width(table) = table.values.sum { |cells| cells.map(&:length).max + 2 } - 2

        def styled(row, one) = [[row, one[:state] == "stuck" ? :bad : nil]]
      end
    end
  end
end
