# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Collects the details that workers report when they begin to serve, for the one boot line of all workers.
      class BootDetails
        # The keys of {Cluster.boot_details}.
        KEYS = %i[selector protection adapted].freeze
        private_constant :KEYS

        def initialize
          @details = nil
        end

        # @param worker [WorkerHandle]
        # @param message [MessageSocket::Message] whose values are {Cluster.boot_details}
        # @return [void]
        # @raise [MessageSocket::MalformedError]
        def add(worker, message)
          details = KEYS.to_h { |name| [name, message.fetch(name.to_s, String)] }
          @details = details unless @details && unprotected?(worker)
        end

        # @param configuration [Configuration]
        # @param size [Integer] how many workers there are
        # @return [Hash{Symbol => String}] {Cluster.boot_details} of all of them
        def summary(configuration, size)
          without = (0...size).first(configuration.unprotected_workers)
          return @details if without.empty? || without.size == size

          workers = "#{without.one? ? "worker" : "workers"} #{without.join(", ")}"
          { **@details, protection: "#{@details[:protection]}; none in #{workers}" }
        end

        private

        # Only the protections of the other workers are reported.
        def unprotected?(worker) = worker.index < worker.mold.configuration.unprotected_workers
      end
    end
  end
end
