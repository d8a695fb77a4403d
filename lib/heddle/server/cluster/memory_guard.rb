# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Which workers use more memory than they may. A worker's memory is its PSS (proc(5)): resident memory would count
      # the mold's pages again for each.
      class MemoryGuard
        # The limit of each worker is up to this share lower, so that not all of them reach it at once.
        JITTER = 0.1
        private_constant :JITTER

        # @param pid [Integer]
        # @return [Integer, nil] bytes; nil: not known
        def self.pss(pid)
          File.read("/proc/#{pid}/smaps_rollup")[/^Pss:\s+(\d+) kB/, 1]&.to_i&.*(1_024)
        rescue SystemCallError
          nil
        end

        # @param random [Random]
        # @param measure [#call] a process's bytes
        def initialize(random: Random.new, measure: MemoryGuard.method(:pss))
          @random = random
          @measure = measure
          @shares = {}.compare_by_identity
        end

        # @param worker [WorkerHandle]
        # @param limit [Integer] bytes; 0: none
        # @return [Integer, nil] the bytes that it uses, if they are too many
        def excess(worker, limit)
          return if limit == 0

          share = (@shares[worker] ||= 1 - (@random.rand * JITTER))
          bytes = @measure.call(worker.pid)
          bytes if bytes && bytes > limit * share
        end

        # Forgets all workers but these.
        # @param workers [Array<WorkerHandle>]
        # @return [void]
        def retain(workers)
          @shares.keep_if { |worker, _| workers.include?(worker) }
        end
      end
    end
  end
end
