# frozen_string_literal: true

module Bench
  # The kernel's limit on memory mappings a process may have, vm.max_map_count.
  module MapCount
    PATH = "/proc/sys/vm/max_map_count"
    RAISED = 1_000_000

    class << self
      # Set by --raise-map-count: a benchmark does not change a machine unasked.
      attr_accessor :allowed

      # @return [Integer, nil] nil where the system has no such limit
      def current
        File.read(PATH).to_i
      rescue Errno::ENOENT
        nil
      end

      # @return [Boolean]
      def may_raise? = allowed && Process.uid.zero? && File.writable?(PATH)

      # Runs the block with the limit raised, and restores it whatever happens but a kill.
      def raised
        before = current
        File.write(PATH, RAISED.to_s) if before < RAISED
        yield
      ensure
        File.write(PATH, before.to_s) if before && current != before
      end
    end
  end
end
