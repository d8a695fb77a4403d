# frozen_string_literal: true

module Heddle
  class Server
    # How many connections this process accepts if `max_connections` is 0. Before a request runs, its connection uses a
    # bounded amount of memory. The limit is the number of connections that fit into the process's share, and into its
    # descriptors without those for bodies in files.
    module ConnectionLimit
      # Bytes of a connection besides a body that is complete in memory (`body_buffer`): 64 KiB of input that was not
      # read yet, and 48 KiB of a head and its fields.
      BYTES = 114_688
      # Descriptors for the application.
      RESERVE = 64
      # The minimum, however few descriptors there are.
      LEAST = 16
      # All descriptors per descriptor of a connection: a quarter of all is for bodies in files.
      BODIES = 4 / 3r
      private_constant :BYTES, :RESERVE, :LEAST, :BODIES

      class << self
        # @param configuration [Configuration]
        # @param descriptors [Integer] how many this process may have
        # @param memory [Integer, nil] bytes that all workers may use together; nil: not known
        # @return [Integer]
        def of(configuration, descriptors: Process.getrlimit(Process::RLIMIT_NOFILE).first,
               memory: configuration.memory_budget)
          return configuration.max_connections if configuration.max_connections > 0

          by_descriptors = descriptors - RESERVE - HTTP::Engine.body_files(descriptors)
          [[by_descriptors, by_memory(configuration, memory)].compact.min, LEAST].max
        end

        # @param configuration [Configuration]
        # @param memory [Integer, nil] as above
        # @return [Integer, nil] descriptors for all these connections and their bodies in files; nil: not known
        def descriptors(configuration, memory: configuration.memory_budget)
          most = configuration.max_connections
          most = by_memory(configuration, memory) if most == 0
          most && (([most, LEAST].max + RESERVE) * BODIES).ceil
        end

        private

        # All HTTP/2 connections share this memory. Each also has its own, which is as large as over HTTP/1.1.
        def http2_memory(configuration)
          configuration.http2 == :off ? 0 : configuration.http.http2_memory
        end

        def by_memory(configuration, memory)
          workers = configuration.worker_processes? ? configuration.worker_count : 1
          memory && ((memory / workers) - http2_memory(configuration)) / (BYTES + configuration.http.body_buffer)
        end
      end
    end
  end
end
