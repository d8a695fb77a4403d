# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Collects the details that workers report when they begin to serve. The master logs one line with them for all
      # workers.
      class BootDetails
        # The keys of {Cluster.boot_details}.
        KEYS = %i[selector protection adapted].freeze
        private_constant :KEYS

        def initialize
          @details = nil
        end

        # @param worker [WorkerHandle]
        # @param message [MessageSocket::Message] a message with the values of {Cluster.boot_details}
        # @return [void]
        # @raise [MessageSocket::MalformedError]
        def add(worker, message)
          details = KEYS.to_h { |name| [name, message.fetch(name.to_s, String)] }
          @details = details unless @details && unprotected?(worker)
        end

        # @param configuration [Configuration]
        # @param size [Integer] the number of workers
        # @return [Hash{Symbol => String}] {Cluster.boot_details} for all workers together
        def summary(configuration, size)
          without = (0...size).first(configuration.unprotected_workers)
          return @details if without.empty? || without.size == size

          workers = "#{without.one? ? "worker" : "workers"} #{without.join(", ")}"
          { **@details, protection: "#{@details[:protection]}; none in #{workers}" }
        end

        private

        # The details of unprotected workers (option `canary_unprotected`) count only until a protected worker has
        # reported its own.
        def unprotected?(worker) = worker.index < worker.mold.configuration.unprotected_workers
      end
    end
  end
end
