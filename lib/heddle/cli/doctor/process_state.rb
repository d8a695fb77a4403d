# frozen_string_literal: true

module Heddle
  module CLI
    class Doctor
      # Finds settings of a loaded Rails application that keep state in one process. Under Puma, which has one process
      # by default, such a setting works; several workers don't share the state.
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
                      advice: "use the adapter heddle, which reaches the clients of all workers " \
                              "(docs/rails.md#action-cable)")
        end

        def cache
          return unless defined?(::ActiveSupport::Cache::MemoryStore) && defined?(::Rails.cache)
          return unless ::Rails.cache.instance_of?(::ActiveSupport::Cache::MemoryStore)

          Finding.new(level: :warning, subject: "config.cache_store",
                      text: "memory_store: each worker has its own cache, and its own counters of rate limits",
                      advice: "use a store that workers share, such as solid_cache_store or redis_cache_store")
        end
      end
    end
  end
end
