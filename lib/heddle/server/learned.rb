# frozen_string_literal: true

require "socket"

module Heddle
  class Server
    # Endpoints that have held up a worker by native code that kept Ruby's lock, and for how long: known to all workers,
    # to those that come after them, and to the master that replaces this one. What was long ago counts less and less.
    class Learned
      # Endpoints that there is room for; then the one with the lowest score is forgotten.
      SLOTS = 128
      # What can't be told from anything else by who else serves it.
      CAUSE = :native_with_gvl
      # Bytes of what may be on the way to the quarantine, as the kernel counts them: some hundred requests.
      ON_THE_WAY = 65_536
      private_constant :SLOTS, :CAUSE, :ON_THE_WAY

      # @return [Net::Learned]
      attr_reader :table
      # @return [BasicSocket] where requests of learned endpoints are passed on
      attr_reader :giving
      # @return [BasicSocket] where the worker of the quarantine takes them
      attr_reader :taking

      # Of another process.
      # @param descriptors [Array<Integer>] see {#descriptors}
      # @return [Learned]
      # @raise [SystemCallError] it is of another version
      def self.for_fd(descriptors)
        table, *pair = descriptors
        new(Net::Learned.for_fd(table), pair.map { |one| UNIXSocket.for_fd(one) })
      end

      # @param table [Net::Learned]
      # @param pair [Array(BasicSocket, BasicSocket)]
      def initialize(table = Net::Learned.new(SLOTS), pair = UNIXSocket.pair(:SEQPACKET))
        @table = table
        @giving, @taking = pair
        @giving.setsockopt(Socket::SOL_SOCKET, Socket::SO_SNDBUF, ON_THE_WAY)
        @threshold = 0
      end

      # @return [Array<Integer>, nil] what another program needs; nil where memory goes over a fork only
      def descriptors
        memory = table.descriptor and [memory, giving.fileno, taking.fileno]
      end

      # @return [void]
      def close = [giving, taking].each(&:close)

      # @param configuration [Configuration] says how soon it forgets, and when an endpoint is the quarantine's
      # @return [void]
      def follow(configuration)
        @threshold = configuration.quarantine_after
        table.judge(configuration.learned_half_life, @threshold)
      end

      # @return [Integer, nil] the slot of the board whose worker is the quarantine
      def quarantine = table.quarantine

      # From now on the worker of this slot is.
      # @param slot [Integer] of the board
      # @return [void]
      def settle(slot) = table.quarantine = slot

      # It is not any more, if it was. Until there is another, every worker serves what comes to it.
      # @param slot [Integer] of the board
      # @return [void]
      def leave(slot)
        table.quarantine = nil if quarantine == slot
      end

      # @param stall [Stall] that has come to its end in this process
      # @return [void]
      def call(stall)
        table.note(stall.request, stall.seconds) if stall.cause == CAUSE && stall.request
      end

      # @return [Array<Hash{Symbol => Object}>] `endpoint`, `score` in seconds, `stalls`, `last` (seconds since 1970),
      #   `quarantined`; the highest score first
      def to_a
        now = Time.now.to_f
        found = Array.new(table.slots) { |slot| table.read(slot) }.compact
        found.sort_by { |_, score,| -score }.map do |endpoint, score, stalls, ago|
          { endpoint:, score: score.round(3), stalls:, last: (now - ago).round(1),
            quarantined: score > @threshold && !quarantine.nil? }
        end
      end

      # @param endpoint [String, nil] such as "GET /users/:id"; nil: all
      # @return [Integer] how many were known
      def forget(endpoint = nil) = table.forget(endpoint)
    end
  end
end
