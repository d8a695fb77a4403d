# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Facts that workers report when they begin to serve: for the one boot line of all workers.
      class BootFacts
        # The names of {Cluster.facts}.
        FACTS = %i[selector protection].freeze
        private_constant :FACTS

        def initialize
          @facts = nil
        end

        # @param worker [WorkerHandle]
        # @param message [MessageSocket::Message] whose values are {Cluster.facts}
        # @return [void]
        # @raise [MessageSocket::Malformed]
        def hear(worker, message)
          facts = FACTS.to_h { |name| [name, message.fetch(name.to_s, String)] }
          @facts = facts unless @facts && unprotected?(worker)
        end

        # @param configuration [Configuration]
        # @param size [Integer] how many workers there are
        # @return [Hash{Symbol => String}] {Cluster.facts} of all of them
        def of_all(configuration, size)
          without = (0...size).first(configuration.unprotected_workers)
          return @facts if without.empty? || without.size == size

          workers = "#{without.one? ? "worker" : "workers"} #{without.join(", ")}"
          { **@facts, protection: "#{@facts[:protection]}; none in #{workers}" }
        end

        private

        # The others have the protections that it lacks.
        def unprotected?(worker) = worker.index < worker.mold.configuration.unprotected_workers
      end
    end
  end
end
