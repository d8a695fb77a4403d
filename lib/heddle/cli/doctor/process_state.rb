# frozen_string_literal: true

module Heddle
  module CLI
    class Doctor
      # Settings of a loaded Rails application that keep state in one process. Puma serves with one process by default;
      # several workers don't see each other's state.
      class ProcessState
        # @param configuration [Server::Configuration]
        def initialize(configuration)
          @configuration = configuration
        end

        # @return [Array<Finding>]
        def findings
          return [] unless @configuration.worker_processes? && @configuration.worker_count > 1

          [cable, cache].compact
        end

        private

        def cable
          settings = ::ActionCable.server.config.cable if defined?(::ActionCable.server)
          return unless settings && settings["adapter"] == "async"

          Finding.new(level: :warning, subject: "config/cable.yml",
                      text: "adapter async: a broadcast reaches only the clients of the worker that sends it",
                      advice: "adapter heddle reaches those of all workers (docs/rails.md#action-cable)")
        end

        def cache
          return unless defined?(::ActiveSupport::Cache::MemoryStore) && defined?(::Rails.cache)
          return unless ::Rails.cache.instance_of?(::ActiveSupport::Cache::MemoryStore)

          Finding.new(level: :warning, subject: "config.cache_store",
                      text: "memory_store: each worker has a cache of its own, and counts rate limits on its own",
                      advice: "use a store that workers share, such as solid_cache_store or redis_cache_store")
        end
      end
    end
  end
end
