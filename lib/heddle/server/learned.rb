# frozen_string_literal: true

module Heddle
  class Server
    # Endpoints that have held up a worker by native code that kept Ruby's lock, and for how long: known to all workers,
    # to those that come after them, and to the master that replaces this one. What was long ago counts less and less.
    class Learned
      # Endpoints that there is room for; then the one with the lowest score is forgotten.
      SLOTS = 128
      # What can't be told from anything else by who else serves it.
      CAUSE = :native_with_gvl
      private_constant :SLOTS, :CAUSE

      # @return [Net::Learned]
      attr_reader :table

      # @param table [Net::Learned]
      def initialize(table = Net::Learned.new(SLOTS))
        @table = table
      end

      # @param configuration [Configuration] says how soon it forgets
      # @return [void]
      def follow(configuration) = table.judge(configuration.learned_half_life, 0)

      # @param stall [Stall] that has come to its end in this process
      # @return [void]
      def call(stall)
        table.note(stall.request, stall.seconds) if stall.cause == CAUSE && stall.request
      end

      # @return [Array<Hash{Symbol => Object}>] `endpoint`, `score` in seconds, `stalls`, `last` (seconds since 1970);
      #   the highest score first
      def to_a
        now = Time.now.to_f
        found = Array.new(table.slots) { |slot| table.read(slot) }.compact
        found.sort_by { |_, score,| -score }.map do |endpoint, score, stalls, ago|
          { endpoint:, score: score.round(3), stalls:, last: (now - ago).round(1) }
        end
      end

      # @param endpoint [String, nil] such as "GET /users/:id"; nil: all
      # @return [Integer] how many were known
      def forget(endpoint = nil) = table.forget(endpoint)
    end
  end
end
